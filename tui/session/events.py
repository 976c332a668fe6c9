"""The latest decisions of a replay, in the order they were made: what, when, for which request. Bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from kvtier_cli.tiering.jobs import JobResult, TransferJob
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.observer import Observer

KEPT: Final = 1_000
_JOINED: Final = 2


class EventKind(Enum):
    """What happened, in the words of the events pane."""

    PROMOTE = "promote"
    EVICT = "evict"
    STORE = "store"
    REFUSE = "refuse"
    LOAD = "load"
    CASCADE = "cascade"
    DENY = "deny"
    SKIP = "skip"
    FAIL = "fail"
    WAIT = "wait"
    FINISH = "finish"
    RESET = "reset"


class Event(NamedTuple):
    """One decision. `step` counts ends of steps; `tier` where one is concerned, `blocks` how many, `job` its id."""

    step: int
    request: Hashable
    kind: EventKind
    tier: str | None = None
    blocks: int = 0
    job: int | None = None
    said: str = ""


class EventLog(Observer):
    """Hears what `manager` decides but for single lookups, which would cost the replay its speed."""

    def __init__(self, manager: TieringManager) -> None:
        self._counters = manager.counters
        self._events: deque[Event] = deque(maxlen=KEPT)
        self.submitted: dict[int, int] = {}
        """Running job → the step in which it was submitted."""

    def latest(self, count: int = KEPT) -> tuple[Event, ...]:
        """The last events, the latest first."""
        events = self._events
        return tuple(events[-at] for at in range(1, min(count, len(events)) + 1))

    def add(
        self,
        kind: EventKind,
        request: Hashable,
        tier: str | None = None,
        blocks: int = 0,
        job: int | None = None,
        said: str = "",
    ) -> None:
        event = Event(self._counters.steps, request, kind, tier, blocks, job, said)
        # Promotions block by block, each with what it evicts, are one event each of many blocks.
        events = self._events
        for at in range(1, min(_JOINED, len(events)) + 1):
            other = events[-at]
            if job is None and other[:4] == event[:4] and other.job is None and not said:
                events[-at] = other._replace(blocks=other.blocks + blocks)
                return
        events.append(event)

    def clear(self) -> None:
        """Forget all: the replay goes on elsewhere."""
        self._events.clear()
        self.submitted.clear()

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        self.add(EventKind.PROMOTE, req_id, tier, len(keys))

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        self.add(EventKind.EVICT, req_id, tier, len(keys))

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        if keys:
            self.add(EventKind.STORE, req_id, None, len(keys))

    def on_refused(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        self.add(EventKind.REFUSE, req_id, None, len(keys))

    def on_loaded(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        if keys:
            self.add(EventKind.LOAD, req_id, None, len(keys))

    def on_job_submitted(self, job: TransferJob) -> None:
        self.submitted[job.job_id] = self._counters.steps
        if job.kind is JobKind.CASCADE:
            self.add(EventKind.CASCADE, job.req_id, job.tier, len(job.keys), job.job_id)

    def on_job_finished(self, result: JobResult) -> None:
        self.submitted.pop(result.job.job_id, None)
        if result.failed:
            self.add(EventKind.FAIL, result.job.req_id, result.job.tier, len(result.failed), result.job.job_id)

    def on_request_finished(self, req_id: Hashable) -> None:
        self.add(EventKind.FINISH, req_id)

    def on_reset(self) -> None:
        self.add(EventKind.RESET, None)
