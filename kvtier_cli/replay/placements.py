"""Who put each block into the tier where it lies, and what one request puts out of the tiers. Renders nothing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import NamedTuple

from kvtier_cli.tiering.jobs import JobResult, TransferJob
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.topology import PRIMARY_NAME


class How(Enum):
    """How a block came into a tier: from the GPU, from a secondary tier, or from the primary."""

    STORED = "stored"
    PROMOTED = "promoted"
    CASCADED = "cascaded"


class Cause(Enum):
    """For what a block was evicted."""

    PROMOTION = "promotion"
    STORE = "store"
    CASCADE = "cascade"


class Put(NamedTuple):
    """Which request put a block into a tier, how, and after how many ends of steps."""

    req_id: Hashable
    how: How
    step: int


class Eviction(NamedTuple):
    """One block that left `tier` after so many ends of steps. `put` is None where nobody knows who had put it there;
    `unread`: nobody has read it there since: loaded it from the primary, or promoted it from a secondary tier."""

    key: BlockKey
    tier: str
    cause: Cause
    step: int
    put: Put | None
    unread: bool


class Placements(Observer):
    """Remembers who put what where, for all blocks of those tiers that evict, and collects one request's evictions.

    Only what lies in a tier is remembered. What was there before it listened was put there by nobody it knows.
    """

    def __init__(self, manager: TieringManager) -> None:
        self._manager = manager
        self._tiers = {tier.name: tier for tier in manager.tiers if _evicts(tier)}
        names = (PRIMARY_NAME, *self._tiers)
        self._puts: dict[str, dict[BlockKey, Put]] = {name: {} for name in names}
        self._unread: dict[str, set[BlockKey]] = {name: set() for name in names}
        self._cascades: dict[str, dict[int, TransferJob]] = {name: {} for name in self._tiers}
        self._followed: Hashable = None
        self._pending: list[tuple[BlockKey, Put | None, bool]] = []
        self.evictions: list[Eviction] = []
        """What the request that is followed has evicted, in order."""

    def follow(self, req_id: Hashable) -> None:
        """Collect the evictions of this request from now on, those that its cascades cause later too."""
        self._followed = req_id
        self.evictions = []

    def put_by(self, tier: str, key: BlockKey) -> Put | None:
        """Who put a block that lies in `tier` there, where that is known."""
        return self._puts.get(tier, {}).get(key)

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        self._put(PRIMARY_NAME, keys, Put(req_id, How.STORED, self._step))
        self._tell_cause(Cause.STORE)

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        self._put(PRIMARY_NAME, keys, Put(req_id, How.PROMOTED, self._step))
        if tier in self._unread:
            self._unread[tier].difference_update(keys)
        self._tell_cause(Cause.PROMOTION)

    def on_loaded(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        self._unread[PRIMARY_NAME].difference_update(keys)

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        if tier not in self._puts:
            return
        if tier != PRIMARY_NAME:
            self._settle_until(req_id, tier, keys)
        puts, unread = self._puts[tier], self._unread[tier]
        if req_id == self._followed and self._followed is not None:
            gone = [(key, puts.get(key), key in unread) for key in keys]
            if tier == PRIMARY_NAME:
                self._pending = gone  # for what is told next
            else:
                self._keep(tier, Cause.CASCADE, gone)
        for key in keys:
            puts.pop(key, None)
        unread.difference_update(keys)

    def on_job_submitted(self, job: TransferJob) -> None:
        if job.kind is JobKind.CASCADE and job.tier in self._cascades:
            self._cascades[job.tier][job.job_id] = job

    def on_job_finished(self, result: JobResult) -> None:
        job = result.job
        if job.kind is JobKind.CASCADE:
            if job.tier in self._cascades and self._cascades[job.tier].pop(job.job_id, None) is not None:
                self._settle(job)
        elif result.failed:
            self._forget(PRIMARY_NAME, result.failed)
            if job.tier in self._tiers:  # damaged blocks are gone
                holds = self._tiers[job.tier].holds
                self._forget(job.tier, [key for key in result.failed if holds(key) is False])

    def on_reset(self) -> None:
        self._puts[PRIMARY_NAME].clear()
        self._unread[PRIMARY_NAME].clear()

    @property
    def _step(self) -> int:
        return self._manager.counters.steps

    def _put(self, tier: str, keys: Sequence[BlockKey], put: Put) -> None:
        self._puts[tier].update(dict.fromkeys(keys, put))
        self._unread[tier].update(keys)

    def _forget(self, tier: str, keys: Sequence[BlockKey] | frozenset[BlockKey]) -> None:
        for key in keys:
            self._puts[tier].pop(key, None)
        self._unread[tier].difference_update(keys)

    def _tell_cause(self, cause: Cause) -> None:
        if self._pending:
            self._keep(PRIMARY_NAME, cause, self._pending)
            self._pending = []

    def _keep(self, tier: str, cause: Cause, gone: Sequence[tuple[BlockKey, Put | None, bool]]) -> None:
        step = self._step
        self.evictions += [Eviction(key, tier, cause, step, put, unread) for key, put, unread in gone]

    def _settle_until(self, req_id: Hashable, tier: str, evicted: Sequence[BlockKey]) -> None:
        """A tier carries out all jobs of a poll before any is reported: what the cascades up to this request's put
        there, some of which may be `evicted` by now."""
        running = self._cascades[tier]
        for job_id in list(running):
            job = running.pop(job_id)
            self._settle(job, evicted)
            if job.req_id == req_id:
                return

    def _settle(self, job: TransferJob, evicted: Sequence[BlockKey] = ()) -> None:
        """A cascade has put those of its blocks into the tier that were not there before, and are now."""
        puts, holds = self._puts[job.tier], self._tiers[job.tier].holds
        gone = set(evicted)
        new = [key for key in job.keys if key not in puts and (key in gone or holds(key) is not False)]
        if new:
            self._put(job.tier, new, Put(job.req_id, How.CASCADED, self._step))


def _evicts(tier: SecondaryTierManager) -> bool:
    """Whether a tier may ever have to make room."""
    return not isinstance(tier, SecondaryTier) or tier.spec.capacity is not None
