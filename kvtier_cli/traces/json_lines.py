"""The base of all formats with a JSON object a line: lines in, rows decoded, requests out. Knows no field.

A format gives the shape of a row as a msgspec struct and a method that makes a request of one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.json_faults import json_fault
from kvtier_cli.traces.json_tags import Tags, tag_reader
from kvtier_cli.traces.lines import BoundedLines
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.reader import TraceReader

Row = TypeVar("Row")

_FAULTS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class Arrival(msgspec.Struct, gc=False):
    """Of a line only when its request arrived, in whatever unit: order is all that it tells."""

    timestamp: int | float | None = None


class JsonLinesReader(TraceReader, Generic[Row]):
    """Reads a JSON object a line; see TraceReader."""

    USUAL: ClassVar[msgspec.json.Decoder[Any]]
    """Decodes a line of the usual kind."""
    OTHER: ClassVar[msgspec.json.Decoder[Any] | None] = None
    """Decodes whatever lines there are; slower, so used from the first line on that is not of the usual kind. Its
    refusals are what is told. None: `USUAL` takes all."""
    ARRIVAL: ClassVar[type[msgspec.Struct]] = Arrival
    """Of a line the fields that `_arrival` wants."""
    HAS_HEADER: ClassVar[bool] = False
    """Whether the first line that is not blank says something about the trace; `_header` is given it."""

    FIELDS: ClassVar[tuple[str, ...]] = ()
    """The fields of a row, where a row with any other is refused."""

    on_record: Callable[[bytes], object] | None = None
    """Hears of each line that is a request, whole."""

    def read_fields(self) -> frozenset[str] | None:
        """The fields of a record that are read, be it only to check them; None where records are not made of fields
        of requests, or not all of them are looked at by their names. `on_record` hears of no record then."""
        usual = getattr(self, "USUAL", None)
        decoders = [decoder for decoder in (usual, self.OTHER) if decoder is not None]
        return frozenset(name for each in decoders for name in each.type.__struct_encode_fields__) if usual else None

    @abstractmethod
    def _request(self, row: Row, number: int) -> Request | None:
        """The request of a row, the `number`-th line; None for a row that is none and no fault either."""

    def _usual(self) -> Callable[[bytes], Row]:
        """What decodes lines of the usual kind."""
        return self.USUAL.decode

    def _other(self) -> Callable[[bytes], Row]:
        """What decodes lines from the first on that is not of the usual kind."""
        return (self.OTHER or self.USUAL).decode

    def _header(self, line: bytes, number: int) -> None:
        """Reads the line in front of the rows. Raises InputError."""

    def _arrivals(self) -> Callable[[bytes], Any]:
        """What decodes of a line the fields that `_arrival` wants."""
        return msgspec.json.Decoder(self.ARRIVAL).decode

    def _arrival(self, arrival: Any) -> int | float | None:
        """When the request of a line arrived."""
        time: int | float | None = arrival.timestamp
        return time

    def _tag_reader(self) -> Callable[[bytes], Tags] | None:
        """What reads the tags of a line; None where none are asked for."""
        return tag_reader(self.options.tags) if self.options.tags else None

    def __iter__(self) -> Iterator[Request]:
        self._reset()
        tags_of = self._tag_reader()
        request_of = self._request
        hear = self.on_record
        try:
            for number, line, row in self._rows():
                try:
                    request = request_of(row, number)
                except InputError as fault:
                    self._bad_record(fault)
                    continue
                if request is None:
                    continue
                if tags_of is not None:
                    request.tags = tags_of(line)
                if hear is not None:
                    hear(line)
                blocks = len(request.hash_ids)
                if -(-request.input_length // self.block_tokens) != blocks:
                    self._odd(request)
                self.requests += 1
                self.blocks += blocks
                yield request
        except TraceFault as fault:
            raise self._after_requests(fault) from None
        if not self.requests:
            raise self._no_request()

    def _rows(self) -> Iterator[tuple[int, bytes, Row]]:
        """The number, the text and the row of each line that is one; those that are none are bad records."""
        lines = BoundedLines(self.source, max_line_bytes=self._max_line_bytes, on_bytes=self._on_bytes)
        decode: Callable[[bytes], Row] = self._usual()
        numbered = enumerate(lines, 1)
        if self.HAS_HEADER:
            self._read_header(numbered)
        for number, line in numbered:
            self.lines = number
            try:
                if line is None:
                    raise self._too_long(number)
                try:
                    row = decode(line)
                    if not line.isascii():
                        line.decode("utf-8")  # msgspec does not look at what it skips
                except _FAULTS:
                    if not line.strip():
                        continue
                    decode = self._other()
                    row = self._read_again(decode, line, number, lines.unterminated)
            except InputError as fault:
                self._bad_record(fault)
                continue
            yield number, line, row

    def _read_header(self, numbered: Iterator[tuple[int, bytes | None]]) -> None:
        for number, line in numbered:
            self.lines = number
            if line is None:
                raise self._too_long(number)
            if line.strip():
                self._header(line, number)
                return

    def _read_again(self, decode: Callable[[bytes], Row], line: bytes, number: int, unterminated: bool) -> Row:
        """A line that is not of the usual kind, or is none at all."""
        try:
            row = decode(line)
            line.decode("utf-8")
            return row
        except _FAULTS as error:
            raise json_fault(
                line,
                error,
                file=self.source.name,
                number=number,
                unterminated=unterminated,
                fields=self.FIELDS,
            ) from None

    def first_fall(self) -> int | None:
        """See TraceReader; reads of each line the time alone.

        Only where that tells of a fall and bad lines are left out, all is read: the fall may be one of theirs.
        """
        fall = self._first_fall_of_times()
        return TraceReader.first_fall(self) if fall is not None and self._skip_bad else fall

    def _first_fall_of_times(self) -> int | None:
        if self.TIME_UNIT is None:
            return None
        decode = self._arrivals()
        arrival = self._arrival
        latest = float("-inf")
        try:
            for number, line in enumerate(BoundedLines(self.source, max_line_bytes=self._max_line_bytes), 1):
                try:
                    timestamp = None if line is None else arrival(decode(line))
                except _FAULTS:
                    continue
                if timestamp is not None:
                    if timestamp < latest:
                        return number
                    latest = timestamp
        except TraceFault:  # the reading proper says what is wrong
            pass
        return None
