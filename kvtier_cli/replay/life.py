"""The lives of some blocks over a whole run: what was done to them, by whom, in which step. Keeps nothing of others."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from kvtier_cli.replay.outcomes import AbsentReason, BlockHistory, find_stop
from kvtier_cli.tiering.jobs import JobResult, TransferJob
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.topology import PRIMARY_NAME


class Deed(Enum):
    """What happened to a block. The last seven: it was the first block that a request was not served, and how
    (unreached: the request's cap on loads ended before it)."""

    STORED = "stored"
    REFUSED = "refused"
    CASCADED = "cascaded"
    NOT_CASCADED = "not_cascaded"
    PROMOTED = "promoted"
    LOAD_FAILED = "load_failed"
    LOADED = "loaded"
    EVICTED = "evicted"
    FILTERED = "filtered"
    ABSENT = "absent"
    DENIED = "denied"
    FAILED = "failed"
    HELD = "held"
    GAVE_UP = "gave_up"
    UNREACHED = "unreached"


class LifeEvent(NamedTuple):
    """One thing that happened to a block, after `step` ends of steps, by the doing of request `req_id`.

    `tier`: where it went to, came from, left or was not got from. `job` of a cascade or a failed load. `unread` of an
    eviction: nobody had read it in that tier. `reason` of an absent one.
    """

    step: int
    deed: Deed
    req_id: Hashable
    tier: str | None = None
    job: int | None = None
    unread: bool = False
    reason: AbsentReason | None = None


class BlockLife(Observer):
    """Hears of everything and keeps what concerns the blocks `watched`, in `events`; a `PassWatcher` too.

    With `loads` False it only counts them, in `loads`: a popular block is loaded by every request.
    """

    def __init__(
        self, manager: TieringManager, history: BlockHistory, watched: Collection[BlockKey], *, loads: bool = True
    ) -> None:
        self._manager = manager
        self._history = history
        self._watched = frozenset(watched)
        self._keeps_loads = loads
        self._tiers = {tier.name: tier for tier in manager.tiers}
        self._unread: dict[str, set[BlockKey]] = {name: set() for name in (PRIMARY_NAME, *self._tiers)}
        self._lies: dict[str, set[BlockKey]] = {name: set() for name in self._tiers}
        self._cascades: dict[tuple[str, BlockKey], list[TransferJob]] = {}
        self.events: dict[BlockKey, list[LifeEvent]] = {key: [] for key in watched}
        self.loads: dict[BlockKey, int] = dict.fromkeys(watched, 0)

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        for key in self._among(keys):
            self._unread[PRIMARY_NAME].add(key)
            self._add(key, Deed.STORED, req_id, PRIMARY_NAME)

    def on_refused(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        for key in self._among(keys):
            self._add(key, Deed.REFUSED, req_id, PRIMARY_NAME)

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        for key in self._among(keys):
            self._unread[tier].discard(key)
            self._unread[PRIMARY_NAME].add(key)
            self._add(key, Deed.PROMOTED, req_id, tier)

    def on_loaded(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        for key in self._among(keys):
            self.loads[key] += 1
            self._unread[PRIMARY_NAME].discard(key)
            if self._keeps_loads:
                self._add(key, Deed.LOADED, req_id, PRIMARY_NAME)

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        for key in self._among(keys):
            running = self._cascades.get((tier, key))
            if running and key not in self._lies.get(tier, ()):
                self._arrive(running.pop(0), key)  # a tier carries out all that is due before any of it is reported
            unread = key in self._unread[tier]
            self._leave(tier, key)
            self._add(key, Deed.EVICTED, req_id, tier, unread=unread)

    def on_job_submitted(self, job: TransferJob) -> None:
        if job.kind is JobKind.CASCADE:
            for key in self._among(job.keys):
                self._cascades.setdefault((job.tier, key), []).append(job)

    def on_job_finished(self, result: JobResult) -> None:
        job = result.job
        for key in self._among(job.keys):
            if job.kind is JobKind.PROMOTION:
                if key in result.failed:
                    self._leave(PRIMARY_NAME, key)
                    if self._tiers[job.tier].holds(key) is False:
                        self._leave(job.tier, key)
                    self._add(key, Deed.LOAD_FAILED, job.req_id, job.tier, job=job.job_id)
                continue
            running = self._cascades.get((job.tier, key), [])
            if job not in running:
                continue  # told already: it has left the tier since
            running.remove(job)
            if key in result.failed or self._tiers[job.tier].holds(key) is False:
                self._add(key, Deed.NOT_CASCADED, job.req_id, job.tier, job=job.job_id)
            else:
                self._arrive(job, key)

    def on_reset(self) -> None:
        self._unread[PRIMARY_NAME].clear()

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        if loaded == len(keys) or keys[loaded] not in self._watched:
            return
        manager = self._manager
        stop = find_stop(manager, manager.requests[req_id], keys, loaded, gave_up, self._history)
        if stop is not None:
            tier = None if stop.tier is None else manager.tiers[stop.tier].name
            self._add(keys[loaded], Deed(stop.outcome.value), req_id, tier, reason=stop.reason)

    def _among(self, keys: Iterable[BlockKey]) -> list[BlockKey]:
        watched = self._watched
        return [] if watched.isdisjoint(keys) else list(dict.fromkeys(key for key in keys if key in watched))

    def _leave(self, tier: str, key: BlockKey) -> None:
        self._unread[tier].discard(key)
        if tier in self._lies:
            self._lies[tier].discard(key)

    def _arrive(self, job: TransferJob, key: BlockKey) -> None:
        if key not in self._lies[job.tier]:  # else it was only made recent
            self._lies[job.tier].add(key)
            self._unread[job.tier].add(key)
        self._add(key, Deed.CASCADED, job.req_id, job.tier, job=job.job_id)

    def _add(
        self,
        key: BlockKey,
        deed: Deed,
        req_id: Hashable,
        tier: str | None,
        *,
        job: int | None = None,
        unread: bool = False,
        reason: AbsentReason | None = None,
    ) -> None:
        step = self._manager.counters.steps
        self.events[key].append(LifeEvent(step, deed, req_id, tier, job, unread, reason))
