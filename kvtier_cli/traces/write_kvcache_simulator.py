"""Writes traces for KVCache.AI's kvcache-simulator: ids and lengths in order of arrival, the size on each line."""

from __future__ import annotations

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.writer import TraceWriter, encoded


class KvcacheSimulatorWriter(TraceWriter):
    """The simulator heeds no times, and refuses requests without blocks or tokens."""

    HOLDS = frozenset({"output_length"})
    HOLDS_ORDER = False

    def cannot(self, request: Request) -> str | None:
        if not request.hash_ids:
            return "it has no blocks"
        return None if request.input_length else "its prompt has no tokens"

    def _record(self, request: Request) -> bytes:
        output = b"" if request.output_length is None else b',"output_length":%d' % request.output_length
        ids = encoded(request.hash_ids)
        return b'{"block_size":%d,"input_length":%d%b,"hash_ids":%b}\n' % (
            self.block_tokens,
            request.input_length,
            output,
            ids,
        )
