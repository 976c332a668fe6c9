"""The KV events of a replay as JSON lines: a line a step that had any, shaped like the batches that vLLM publishes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import msgspec

from kvtier_cli.tiering.kv_events import kv_events, wire_hash
from kvtier_cli.tiering.model import BlockKey, OffloadingEvent
from kvtier_cli.tiering.observer import Observer


class Digests(Protocol):
    """What gives the blocks of a run their digests."""

    def digest(self, key: Any) -> bytes:
        """32 bytes that name the block, as `BlockTable.digest` has them."""


class EventLog(Observer):
    """Writes `{"seq", "ts", "events", "data_parallel_rank"}` at each step's end.

    `seq` counts batches from 0. `ts` is in seconds, the arrival of the request as the trace has it (None where it has
    none): a replay knows no clock, and gives the same bytes each time.
    """

    def __init__(
        self,
        file: BinaryIO,
        take_events: Callable[[], list[OffloadingEvent]],
        table: Digests,
        arrival: Callable[[], float | None],
    ) -> None:
        self._file = file
        self._take_events = take_events
        self._table = table
        self._arrival = arrival
        self._encoder = msgspec.json.Encoder()
        self._hashes: dict[BlockKey, int] = {}
        self.batches = 0
        self.events = 0

    def on_step(self) -> None:
        events = kv_events(self._take_events(), self._hash)
        if not events:
            return
        batch = {"seq": self.batches, "ts": self._arrival(), "events": events, "data_parallel_rank": 0}
        self._file.write(self._encoder.encode(batch) + b"\n")
        self.batches += 1
        self.events += len(events)

    def _hash(self, key: BlockKey) -> int:
        found = self._hashes.get(key)
        if found is None:
            found = self._hashes[key] = wire_hash(self._table.digest(key))
        return found
