"""LMCache's log of lookups: JSONL, a request a line with the hashes of its full chunks, as hex text.

`chunk_hashes` cover the prefix and list full chunks only; a chunk, a block here, has `chunk_size` tokens. A server's
log may hold several models, whose blocks are never the same: an id is `MODEL:HASH`.
"""

from __future__ import annotations

import msgspec

from kvtier_cli.traces.ids import LocalIds, canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request


class _Row(msgspec.Struct, gc=False):
    chunk_hashes: list[int | str]
    seq_len: int
    chunk_size: int | None = None
    timestamp: int | float | None = None
    request_id: int | str | None = None
    model_name: str | None = None


class LmcacheReader(JsonLinesReader[_Row]):
    """Reads a log of lookups; see TraceReader."""

    BLOCK_TOKENS = 256
    SIZE_IS_FIXED = True
    TIME_UNIT = "s"
    IDS_FIELD = "chunk_hashes"
    LISTS_TAILS = False
    USUAL = msgspec.json.Decoder(_Row)

    def _reset(self) -> None:
        super()._reset()
        self._ids = LocalIds()
        self._models: dict[str, int] = {}

    def _request(self, row: _Row, number: int) -> Request:
        self._check_length(row.seq_len, number, "$.seq_len")
        time = None if row.timestamp is None else self._time(row.timestamp, number)
        if row.chunk_size is not None:
            self._settle_block_tokens(row.chunk_size, number, "$.chunk_size")
        model = row.model_name or ""
        self._models[model] = self._models.get(model, 0) + 1
        return Request(
            self.requests,
            number,
            row.seq_len,
            self._ids.of(model, row.chunk_hashes) if model else canonical_ids(row.chunk_hashes),
            None,
            time,
            None if row.request_id is None else str(row.request_id),
        )

    def _remarks(self) -> list[str]:
        if len(self._models) < 2:
            return []
        most = max(self._models, key=lambda model: self._models[model])
        return [
            f"it holds requests of {len(self._models):,} models, which share no blocks; "
            f"{self._models[most]:,} of {self.requests:,} are of {most or 'no named one'}"
        ]
