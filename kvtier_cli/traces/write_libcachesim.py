"""Writes traces as libCacheSim's CSV: an access to a block a line, of size 1, in order of arrival.

It is read with `-t csv` and `time-col=1,obj-id-col=2,obj-size-col=3,delimiter=,,has-header=true,obj-id-is-num=true`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.writer import TraceWriter

_LARGEST: Final = (1 << 64) - 1
_LATEST_MS: Final = (1 << 32) * 1000


class LibcachesimCsvWriter(TraceWriter):
    """Times are whole seconds. What one request asks for, and that it wants a prefix, cannot be said."""

    HOLDS = frozenset({"timestamp"})
    HOLDS_ORDER = False
    NEVER_HOLDS = "where a request begins and ends: each block is an access of its own"

    def __init__(self, stream: BinaryIO, block_tokens: int, *, tag_names: Sequence[str] = ()) -> None:
        super().__init__(stream, block_tokens, tag_names=tag_names)
        self._time = 0
        stream.write(b"time,obj_id,size\n")

    def cannot(self, request: Request) -> str | None:
        if any(isinstance(each, str) or not 0 <= each <= _LARGEST for each in request.hash_ids):
            return "not all of its ids are numbers from 0 to 2^64 - 1"
        if request.timestamp is not None and not 0 <= request.timestamp < _LATEST_MS:
            return "its time is not from 0 to 2^32 seconds"
        return None

    def _record(self, request: Request) -> bytes:
        if request.timestamp is not None:
            self._time = int(request.timestamp // 1000)
            self.lost["milliseconds of timestamp"] += request.timestamp % 1000 != 0
        return "".join([f"{self._time},{each},1\n" for each in request.hash_ids]).encode()
