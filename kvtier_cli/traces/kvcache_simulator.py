"""The traces of KVCache.AI's kvcache-simulator: JSONL with `hash_ids`, `input_length`, `block_size`, in file order.

`block_tokens`, where it is there, lists the tokens of each block; the simulator heeds no times, so none are read.
"""

from __future__ import annotations

import msgspec

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request


class _IntRow(msgspec.Struct, gc=False):
    hash_ids: list[int]
    input_length: int
    block_size: int | None = None
    block_tokens: list[int] | None = None
    output_length: int | None = None


class _AnyRow(_IntRow, gc=False):
    hash_ids: list[int | str]  # type: ignore[assignment]


class KvcacheSimulatorReader(JsonLinesReader[_IntRow]):
    """Reads a trace made for kvcache-simulator, by its rules of what a record must have; see TraceReader."""

    TIME_UNIT = None
    USUAL = msgspec.json.Decoder(_IntRow)
    OTHER = msgspec.json.Decoder(_AnyRow)

    def _request(self, row: _IntRow, number: int) -> Request:
        self._check_length(row.input_length, number, "$.input_length")
        if row.output_length is not None:
            self._check_length(row.output_length, number, "$.output_length")
        if not row.hash_ids:
            raise self._wrong("expected at least one id", number, "$.hash_ids")
        if not row.input_length:
            raise self._wrong("expected a length of 1 token or more", number, "$.input_length")
        if row.block_tokens is not None:
            if len(row.block_tokens) != len(row.hash_ids):
                raise self._wrong("expected as many numbers as there are hash_ids", number, "$.block_tokens")
            if min(row.block_tokens) < 1:
                raise self._wrong("expected blocks of 1 token or more", number, "$.block_tokens")
        if row.block_size is not None:
            self._settle_block_tokens(row.block_size, number)
        ids: list[int | str] = row.hash_ids  # type: ignore[assignment]
        if type(row) is not _IntRow:
            ids = canonical_ids(ids)
        return Request(self.requests, number, row.input_length, ids, row.output_length)

    def _wrong(self, message: str, number: int, path: str) -> InputError:
        return InputError(message, file=self.source.name, line=number, path=path)
