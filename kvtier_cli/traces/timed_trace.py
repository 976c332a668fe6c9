"""What `vllm bench serve --dataset-name timed_trace` reads: any JSONL whose rows have ids, lengths and times.

`--fields` says what it calls them. As there, times are in seconds and blocks have 16 tokens unless the caller says
otherwise. Nothing in a row tells this format, so it is never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import FIELD_NAMES
from kvtier_cli.wording import shown

_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "hash_ids": (list[int | str],),
    "input_length": (int,),
    "output_length": (int | None, None),
    "timestamp": (int | float | None, None),
    "request_id": (int | str | None, None),
    "session_id": (int | str | None, None),
}


class TimedTraceReader(JsonLinesReader[Any]):
    """Reads a trace whose fields the caller names; see TraceReader."""

    BLOCK_TOKENS = 16
    TIME_UNIT = "s"
    TIME_UNIT_IS_OPEN = True
    TAKES_FIELDS = FIELD_NAMES

    def _reset(self) -> None:
        super()._reset()
        self._names = dict(zip(FIELD_NAMES, FIELD_NAMES, strict=True)) | dict(self.options.fields)
        self.IDS_FIELD = self._names["hash_ids"]
        self._unseen = {ours for ours, _ in self.options.fields}
        self._decode: Callable[[bytes], Any] | None = None

    def _usual(self) -> Callable[[bytes], Any]:
        if self._decode is None:  # a type of its own, too dear to be made again for each bad line
            self._decode = self._decoder(*FIELD_NAMES)
        return self._decode

    _other = _usual

    def read_fields(self) -> frozenset[str]:
        return frozenset(self._names.values())

    def _arrivals(self) -> Callable[[bytes], Any]:
        return self._decoder("timestamp")

    def _decoder(self, *fields: str) -> Callable[[bytes], Any]:
        """Decodes of a row these fields, by our names."""
        names = {name: self._names[name] for name in fields}
        twice = [theirs for theirs in names.values() if [*names.values()].count(theirs) > 1]
        try:
            row = msgspec.defstruct(
                "TimedRow", [(name, *_TYPES[name]) for name in fields], rename=names, gc=False, kw_only=True
            )
        except ValueError:
            raise TraceFault(
                f"two fields are read as {twice[0]}" if twice else "--fields: names may not hold quotes or backslashes",
                file=self.source.name,
            ) from None
        return msgspec.json.Decoder(row).decode

    def _request(self, row: Any, number: int) -> Request:
        names = self._names
        if self._unseen:
            self._unseen = {ours for ours in self._unseen if getattr(row, ours) is None}
        self._check_length(row.input_length, number, f"$.{names['input_length']}")
        if row.output_length is not None:
            self._check_length(row.output_length, number, f"$.{names['output_length']}")
        time = None if row.timestamp is None else self._time(row.timestamp, number, f"$.{names['timestamp']}")
        return Request(
            self.requests,
            number,
            row.input_length,
            canonical_ids(row.hash_ids),
            row.output_length,
            time,
            None if row.request_id is None else str(row.request_id),
            None,
            None if row.session_id is None else str(row.session_id),
        )

    def _remarks(self) -> list[str]:
        """A field that the caller named and no row has is a slip: the trace would be read as one without times, say."""
        unseen = [f"{shown(self._names[ours])} ({ours})" for ours in FIELD_NAMES if ours in self._unseen]
        return [f"no request has a field {each}" for each in unseen] if self.requests else []
