"""The base of formats whose JSON lines hold several requests each, as conversations do. Knows no field."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.json_lines import JsonLinesReader, Row
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.reader import TraceReader


class JsonGroupsReader(JsonLinesReader[Row]):
    """Reads a JSON value a line and the requests in it; see TraceReader. A line with one bad request is all bad."""

    @abstractmethod
    def _group(self, row: Row, line: bytes, number: int) -> list[Request]:
        """The requests of a row, the `number`-th line, whose text is `line`; counted from 0 anew in each group."""

    def read_fields(self) -> None:
        """A record holds several requests, whose fields are further inside."""

    def _request(self, row: Row, number: int) -> Request | None:
        raise NotImplementedError("a row holds several requests")

    def __iter__(self) -> Iterator[Request]:
        self._reset()
        try:
            for number, line, row in self._rows():
                try:
                    group = self._group(row, line, number)
                except InputError as fault:
                    self._bad_record(fault)
                    continue
                for request in group:
                    request.index = self.requests
                    self._count(request)
                    yield request
        except TraceFault as fault:
            raise self._after_requests(fault) from None
        if not self.requests:
            raise self._no_request()

    def first_fall(self) -> int | None:
        """See TraceReader: reads all, for one line has many times."""
        return TraceReader.first_fall(self)
