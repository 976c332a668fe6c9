"""Secondary tiers: the interface that vLLM's have, and the one tier of ours, a job queue over a block store."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

from kvtier_cli.errors import ManagerError
from kvtier_cli.tiering.jobs import JobResult, RequestContext, TransferJob
from kvtier_cli.tiering.model import BlockKey, JobKind, Locality, LookupResult, Medium
from kvtier_cli.tiering.stores import BlockStore, MemoryStore
from kvtier_cli.tiering.topology import TierSpec

_NO_BLOCKS: frozenset[BlockKey] = frozenset()
_NONE: tuple[JobResult, ...] = ()
_CASCADE = JobKind.CASCADE
_JOB = itemgetter(1)


class SecondaryTierManager(ABC):
    """What the manager calls on a secondary tier. One of your own needs the abstract methods; the rest may stay.

    A `medium` or `locality` of None is not declared: it passes that side of every filter. With `request_level` the
    tier also gets the blocks of a request that the primary had ready before.
    """

    name: str
    medium: Medium | None = None
    locality: Locality | None = None
    request_level: bool = False
    tell_evicted: Callable[[Hashable, str, Sequence[BlockKey]], None] | None = None
    """Set by the manager while somebody listens: to be called with the request, this tier's name and the blocks that
    left to make room for that request's."""

    @abstractmethod
    def lookup(self, key: BlockKey, context: RequestContext) -> LookupResult:
        """HIT, MISS, or RETRY where the answer is not there yet."""

    def lookup_run(self, keys: Iterable[BlockKey], context: RequestContext) -> list[BlockKey] | None:
        """The leading blocks of `keys` that `lookup` would answer with a HIT, one after another; empty where the first
        is a MISS. A tier that cannot tell at once, nor by `holds`, says None, and is asked block by block."""
        return None

    @abstractmethod
    def submit_store(self, job: TransferJob) -> None:
        """Begin to write `job.keys`; the primary keeps them pinned until the job is reported as finished."""

    @abstractmethod
    def submit_load(self, job: TransferJob) -> None:
        """Begin to read `job.keys` into the primary's slots."""

    @abstractmethod
    def get_finished_jobs(self) -> Iterable[JobResult]:
        """The jobs that have ended since the last call, in the order of their submission."""

    @abstractmethod
    def drain_jobs(self) -> None:
        """Bring every running job to its end; the next `get_finished_jobs` reports them all."""

    def touch(self, keys: Sequence[BlockKey], context: RequestContext) -> None:  # noqa: B027 - may stay as it is
        """The blocks are in use: make them recent, the last first."""

    def on_new_request(self, context: RequestContext) -> None:  # noqa: B027 - may stay as it is
        """A request has arrived."""

    def on_request_finished(self, context: RequestContext) -> None:  # noqa: B027 - may stay as it is
        """A request is over, with all its stores."""

    def on_schedule_end(self) -> None:  # noqa: B027 - may stay as it is
        """A step has ended."""

    def is_at_work(self) -> bool:
        """Whether the tier wants another step although no job runs."""
        return False

    def holds(self, key: BlockKey) -> bool | None:
        """A peek that changes and counts nothing; None where the tier cannot tell."""
        return None

    def blocks(self) -> Sequence[BlockKey]:
        """What the tier holds, least recent first, as far as it can tell."""
        return ()

    def size(self) -> int:
        """How many blocks the tier holds, as far as it can tell."""
        return len(self.blocks())


class SecondaryTier(SecondaryTierManager):
    """A store behind a queue: latency in steps, a capacity in blocks (None: unlimited), retries and faults.

    The clock counts ends of steps. A job submitted at count c with latency L is due when the count reaches c+L, and
    takes effect when a poll reports it. The first `lookup_retry` lookups of a block, by whatever requests, answer
    RETRY; that is forgotten when the last request that asked for the block is finished here. `offline` makes lookups
    miss and jobs fail; `fail_rate` makes that share of the jobs' blocks fail, by a generator seeded with `seed`.
    """

    def __init__(self, spec: TierSpec, store: BlockStore | None = None) -> None:
        self.spec = spec
        self.name = spec.name
        self.medium = spec.medium
        self.locality = spec.locality
        self.request_level = spec.request_level
        self.offline = spec.offline
        self.store: BlockStore = store or MemoryStore()
        self.damaged: dict[BlockKey, str] = {}
        """Blocks whose payload a load found damaged, each with what was wrong when that happened last."""
        self._index = self.store.index
        self._count = 0
        self._running: list[tuple[int, TransferJob]] = []
        self._last_due = 0  # no running job is due later
        self._lookups: dict[BlockKey, int] = {}
        self._asking: dict[BlockKey, set[Hashable]] = {}
        self._asked_by: dict[Hashable, set[BlockKey]] = {}
        self._has_faults = bool(spec.fail_rate or spec.fail_loads or spec.fail_stores)
        self._random = random.Random(spec.seed)  # noqa: S311 - faults on demand, no secret
        self.draws = 0
        """How many blocks of jobs have met `fail_rate` so far."""

    def lookup(self, key: BlockKey, context: RequestContext) -> LookupResult:
        if self.offline:
            return LookupResult.MISS
        if self.spec.lookup_retry and self._is_retried(key, context.req_id):
            return LookupResult.RETRY
        return LookupResult.HIT if key in self._index else LookupResult.MISS

    def lookup_run(self, keys: Iterable[BlockKey], context: RequestContext) -> list[BlockKey] | None:
        if self.offline or self.spec.lookup_retry:
            return None
        return list(takewhile(self._index.__contains__, keys))

    def _is_retried(self, key: BlockKey, req_id: Hashable) -> bool:
        self._asking.setdefault(key, set()).add(req_id)
        self._asked_by.setdefault(req_id, set()).add(key)
        lookups = self._lookups.get(key, 0)
        if lookups >= self.spec.lookup_retry:
            return False
        self._lookups[key] = lookups + 1
        return True

    def on_request_finished(self, context: RequestContext) -> None:
        if not self._asked_by:
            return
        for key in self._asked_by.pop(context.req_id, ()):
            requests = self._asking[key]
            requests.discard(context.req_id)
            if not requests:
                del self._asking[key]
                self._lookups.pop(key, None)

    def submit_store(self, job: TransferJob) -> None:
        due = self._count + self.spec.store_latency
        self._running.append((due, job))
        self._last_due = max(self._last_due, due)

    def submit_load(self, job: TransferJob) -> None:
        due = self._count + self.spec.load_latency
        self._running.append((due, job))
        self._last_due = max(self._last_due, due)

    def on_schedule_end(self) -> None:
        self._count += 1

    def get_finished_jobs(self) -> Iterable[JobResult]:
        running, count = self._running, self._count
        if not running:
            return _NONE
        if self._last_due <= count:
            self._running = []
            return list(map(self._finish, map(_JOB, running)))
        due = [job for when, job in running if when <= count]
        self._running = [entry for entry in running if entry[0] > count]
        return [self._finish(job) for job in due]

    def drain_jobs(self) -> None:
        self._running = [(self._count, job) for _, job in self._running]
        self._last_due = self._count

    def _finish(self, job: TransferJob) -> JobResult:
        failed = self._unlucky(job) if self._has_faults or self.offline else _NO_BLOCKS
        if job.kind is _CASCADE:
            evicted = self._put(job.keys, failed, repeats=self.request_level)
            if evicted and self.tell_evicted is not None:
                self.tell_evicted(job.req_id, self.name, evicted)
        else:
            failed = self._read(job.keys, failed)
        return JobResult(job, failed)

    def _read(self, keys: Sequence[BlockKey], failed: frozenset[BlockKey]) -> frozenset[BlockKey]:
        """Read blocks for a promotion, but for those that fail anyway; which of `keys` fail in the end."""
        gone = [key for key in keys if key not in self._index]
        failed = failed.union(gone) if gone else failed
        loaded = [key for key in keys if key not in failed] if failed else keys
        damaged = self.store.read(loaded)
        if damaged:
            self.damaged.update(damaged)
            failed = failed.union(damaged)
            loaded = [key for key in loaded if key not in damaged]
        self.store.refresh(loaded)
        return failed

    def _unlucky(self, job: TransferJob) -> frozenset[BlockKey]:
        """The blocks of a job that fail whatever the tier holds."""
        if self.offline:
            return frozenset(job.keys)
        marked = self.spec.fail_stores if job.kind is JobKind.CASCADE else self.spec.fail_loads
        failed = marked.intersection(job.keys) if marked else marked
        if self.spec.fail_rate:
            draw = self._random.random
            self.draws += len(job.keys)
            failed = failed.union([key for key in job.keys if draw() < self.spec.fail_rate])
        return failed

    def seed(self, keys: Sequence[BlockKey]) -> None:
        """Put blocks in as a store would, without a job and whatever `fail_stores` says."""
        self._put(keys, _NO_BLOCKS, repeats=True)

    def restore(self, keys: Sequence[BlockKey]) -> None:
        """Hold exactly these blocks, least recent first; not more than fit, no repeats."""
        self.store.write((), list(self._index))
        self.store.write(keys)

    def dump_state(self) -> dict[str, Any]:
        """Everything that decides how the tier goes on, but for its blocks: these are `memory`'s."""
        return {
            "offline": self.offline,
            "damaged": dict(self.damaged),
            "count": self._count,
            "running": tuple(self._running),
            "last_due": self._last_due,
            "lookups": dict(self._lookups),
            "asked_by": {req_id: tuple(keys) for req_id, keys in self._asked_by.items()},
            "random": self._random.getstate() if self.spec.fail_rate else None,
            "draws": self.draws,
        }

    def load_state(self, state: Mapping[str, Any], blocks: Sequence[BlockKey]) -> None:
        """Go back to a state that `dump_state` gave, with the `blocks` that there were then, least recent first. It may
        be loaded again."""
        store = self.memory
        store.hold(blocks)
        self._index = store.index
        self.offline = state["offline"]
        self.damaged = dict(state["damaged"])
        self._count = state["count"]
        self._running = list(state["running"])
        self._last_due = state["last_due"]
        self.remember_lookups(state["lookups"], state["asked_by"])
        self.draws = state["draws"]
        self._random = random.Random(self.spec.seed)  # noqa: S311 - faults on demand, no secret
        if state["random"] is not None:
            self._random.setstate(state["random"])

    def lookups_remembered(self) -> tuple[dict[BlockKey, int], dict[Hashable, list[BlockKey]]]:
        """For `lookup_retry`: block → its lookups that said RETRY, and request → the blocks that it asked for."""
        return dict(self._lookups), {req_id: list(keys) for req_id, keys in self._asked_by.items()}

    def remember_lookups(
        self, lookups: Mapping[BlockKey, int], asked_by: Mapping[Hashable, Iterable[BlockKey]]
    ) -> None:
        """Go on from what `lookups_remembered` gave."""
        self._lookups = dict(lookups)
        self._asked_by = {req_id: set(keys) for req_id, keys in asked_by.items()}
        self._asking = {}
        for req_id, asked in self._asked_by.items():
            for key in asked:
                self._asking.setdefault(key, set()).add(req_id)

    def skip_draws(self, count: int) -> None:
        """Go on as if so many blocks had met `fail_rate` since the tier was made."""
        self._random = random.Random(self.spec.seed)  # noqa: S311 - faults on demand, no secret
        self.draws = count
        for _ in range(count):
            self._random.random()

    @property
    def memory(self) -> MemoryStore:
        """Its store, if that is one in memory. Raises ManagerError where it is not."""
        if not isinstance(self.store, MemoryStore):
            raise ManagerError(f"tier {self.name} keeps its blocks on disk, and these cannot be put back")
        return self.store

    def due_in(self, job_id: int) -> int:
        """How many ends of steps a running job still waits for; 0 where the next poll reports it."""
        return next(max(0, when - self._count) for when, job in self._running if job.job_id == job_id)

    def set_due(self, job_id: int, steps: int) -> None:
        """Let a running job wait for `steps` more ends of steps, whatever its latency."""
        when = self._count + steps
        self._running = [(when if job.job_id == job_id else due, job) for due, job in self._running]
        self._last_due = max(self._last_due, when)

    def _put(self, keys: Sequence[BlockKey], failed: frozenset[BlockKey], *, repeats: bool) -> Sequence[BlockKey]:
        """Store blocks and return what they evicted; `repeats` says whether one may stand in `keys` twice (only what
        was parked can)."""
        index, capacity = self._index, self.spec.capacity
        new = index.keys().isdisjoint(keys) and not (repeats and len(set(keys)) < len(keys))
        if new and not failed and (capacity is None or len(keys) <= capacity):
            excess = 0 if capacity is None else len(index) + len(keys) - capacity
            evicted = self.store.oldest(excess) if excess > 0 else ()
            self.store.write(keys, evicted)
            return evicted
        return self._put_one_by_one([key for key in keys if key not in failed])

    def _put_one_by_one(self, keys: Sequence[BlockKey]) -> Sequence[BlockKey]:
        """The general case: blocks that are held already, repeats, more blocks than fit."""
        index, capacity = self._index, self.spec.capacity
        if capacity == 0:
            return ()
        recent: dict[BlockKey, None] = {}
        evicted: dict[BlockKey, None] = {}
        size = len(index)
        untouched = self.store.least_recent_first()
        for key in keys:
            if key in recent:
                del recent[key]
            elif key not in index or key in evicted:
                if size == capacity:
                    victim = next((held for held in untouched if held not in recent), None)
                    if victim is None:
                        victim = next(iter(recent))
                        del recent[victim]
                    evicted[victim] = None
                else:
                    size += 1
            recent[key] = None
        leaving = [key for key in evicted if key in index and key not in recent]
        self.store.write([key for key in recent if key not in index], leaving, list(recent))
        return leaving

    def touch(self, keys: Sequence[BlockKey], context: RequestContext) -> None:
        held = dict.fromkeys(key for key in keys if key in self._index)
        self.store.refresh(list(reversed(held)))

    def holds(self, key: BlockKey) -> bool:
        return key in self._index

    def blocks(self) -> Sequence[BlockKey]:
        return list(self.store.least_recent_first())

    def size(self) -> int:
        return len(self._index)
