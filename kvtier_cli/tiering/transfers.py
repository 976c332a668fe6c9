"""Jobs between the primary and the secondary tiers: queued promotions, cascades and their pins, polls, events.

It carries out what `manager.py` decides. A job's effects on the primary happen when a poll reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.jobs import JobResult, TransferJob
from kvtier_cli.tiering.model import BlockKey, JobKind, Medium, OffloadingEvent
from kvtier_cli.tiering.observer import Hooks
from kvtier_cli.tiering.primary import Primary
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTierManager

_CASCADE, _PROMOTION = JobKind.CASCADE, JobKind.PROMOTION


class QueuedPromotions(NamedTuple):
    """Promotions of one request from one tier that wait for the step's end."""

    tier: str
    req_id: Hashable
    keys: Sequence[BlockKey]


class _Cascade:
    """One set of blocks on its way to several tiers. The primary knows one pin a block for all its jobs."""

    __slots__ = ("keys", "running")

    def __init__(self, keys: Sequence[BlockKey], running: int) -> None:
        self.keys = keys
        self.running = running


class Transfers:
    """The transfers under way. Job ids count up from 0 in the order of submission, resets included."""

    def __init__(
        self,
        primary: Primary,
        tiers: Sequence[SecondaryTierManager],
        requests: Mapping[Hashable, RequestState],
        counters: Counters,
        hooks: Hooks,
        *,
        events: bool,
    ) -> None:
        self._primary = primary
        self._tiers = tiers
        self._requests = requests
        self._counters = counters
        self._hooks = hooks
        self._next_job = 0
        self.jobs: dict[int, TransferJob] = {}
        self._cascades: dict[int, _Cascade] = {}
        self._queued: dict[int, dict[Hashable, list[BlockKey]]] = {}
        self.collects_events = events
        self._primary_events: list[OffloadingEvent] = []
        self._tier_events: list[list[OffloadingEvent]] = [[] for _ in tiers]

    # Promotions

    def queue_promotions(self, tier: int, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """Blocks with pending slots wait for the step's end to be read from `tier`."""
        self._queued.setdefault(tier, {}).setdefault(req_id, []).extend(keys)

    def submit_promotions(self) -> None:
        """One job for each (tier, request), tiers in the order of their first queued promotion."""
        if not self._queued:
            return
        queued, self._queued = self._queued, {}
        hear = self._hooks.job_submitted
        for index, by_request in queued.items():
            tier = self._tiers[index]
            for req_id, keys in by_request.items():
                job_id = self._next_job
                self._next_job = job_id + 1
                job = self.jobs[job_id] = TransferJob(job_id, _PROMOTION, tier.name, req_id, keys)
                if hear is not None:
                    hear(job)
                tier.submit_load(job)

    # Cascades

    def cascade(self, tiers: Sequence[int], req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """Copy pinned blocks to `tiers`, a job each; when the last of them ends, each block loses one pin."""
        cascade = _Cascade(keys, len(tiers))
        hear = self._hooks.job_submitted
        for index in tiers:
            tier, job_id = self._tiers[index], self._next_job
            self._next_job = job_id + 1
            job = self.jobs[job_id] = TransferJob(job_id, _CASCADE, tier.name, req_id, keys)
            self._cascades[job_id] = cascade
            if hear is not None:
                hear(job)
            tier.submit_store(job)

    def retry_parked(self, request: RequestState) -> None:
        """Cascade those parked blocks of a request that are ready by now; drop those that left the primary."""
        primary = self._primary
        for tier in sorted(request.parked):
            waiting = [key for key in request.parked[tier] if key in primary.resident]
            ready = [key for key in waiting if primary.is_ready(key)]
            if ready:
                primary.pin(ready)
                self.cascade((tier,), request.context.req_id, ready)
            still = [key for key in waiting if not primary.is_ready(key)]
            if still:
                request.parked[tier] = still
            else:
                del request.parked[tier]

    # Ends of jobs

    def poll(self) -> None:
        """Take each tier's finished jobs, tiers in topology order, a tier's in the order of submission."""
        hear = self._hooks.job_finished
        for index, tier in enumerate(self._tiers):
            for result in tier.get_finished_jobs():
                job = self.jobs.pop(result.job.job_id)
                if job.kind is _CASCADE:
                    self._end_cascade(index, result)
                else:
                    self._end_promotion(index, result)
                if hear is not None:
                    hear(result)

    def _end_promotion(self, tier: int, result: JobResult) -> None:
        job, failed = result.job, result.failed
        loaded = job.keys
        request = self._requests.get(job.req_id)
        if failed:
            loaded = self._lose(tier, job, failed, request)
        self._primary.make_ready(loaded)
        self._counters.read[tier] += len(loaded)
        if request is not None and request.failed:
            for key in loaded:
                request.failed.pop(key, None)
        if self.collects_events:
            self.add_event(loaded, removed=False)

    def _lose(
        self, tier: int, job: TransferJob, failed: frozenset[BlockKey], request: RequestState | None
    ) -> list[BlockKey]:
        """Some blocks of a promotion did not make it: their slots are free again. Returns those that did."""
        lost = [key for key in job.keys if key in failed]
        self._primary.give_back(lost)
        self._counters.failed[tier] += len(lost)
        if request is not None:
            request.failed.update(dict.fromkeys(lost, tier))
            for key in lost:
                request.promoted.pop(key, None)
        return [key for key in job.keys if key not in failed]

    def _end_cascade(self, tier: int, result: JobResult) -> None:
        job = result.job
        cascade = self._cascades.pop(job.job_id)
        failed = result.failed
        self._counters.written[tier] += len(job.keys) - (sum(map(failed.__contains__, job.keys)) if failed else 0)
        cascade.running -= 1
        if not cascade.running:
            self._primary.unpin(cascade.keys)
        if self.collects_events and result.success:
            medium, locality = self._tiers[tier].medium, self._tiers[tier].locality
            if medium is not None:
                self._tier_events[tier].append(OffloadingEvent(medium, locality, False, job.keys))

    def drain(self) -> None:
        """Bring every running job to its end and take its effects; then forget what was only queued."""
        for tier in self._tiers:
            tier.drain_jobs()
        self.poll()
        self._queued.clear()

    # Putting back

    def dump_state(self) -> dict[str, Any]:
        """What is under way and which events wait, for `load_state`."""
        cascades: dict[int, tuple[_Cascade, list[int]]] = {}
        for job_id, cascade in self._cascades.items():
            cascades.setdefault(id(cascade), (cascade, []))[1].append(job_id)
        return {
            "next_job": self._next_job,
            "jobs": dict(self.jobs),
            "cascades": [(cascade.keys, cascade.running, tuple(jobs)) for cascade, jobs in cascades.values()],
            "queued": [
                (tier, req_id, tuple(keys))
                for tier, by_request in self._queued.items()
                for req_id, keys in by_request.items()
            ],
            "events": (tuple(self._primary_events), *map(tuple, self._tier_events)),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `dump_state` gave; it may be loaded again."""
        self._next_job = state["next_job"]
        self.jobs = dict(state["jobs"])
        self._cascades = {}
        for keys, running, jobs in state["cascades"]:
            self._cascades.update(dict.fromkeys(jobs, _Cascade(keys, running)))
        self._queued = {}
        for tier, req_id, keys in state["queued"]:
            self.queue_promotions(tier, req_id, keys)
        primary, *tiers = state["events"]
        self._primary_events = list(primary)
        self._tier_events = list(map(list, tiers))

    # What is under way, for display

    def queued(self) -> list[QueuedPromotions]:
        """Promotions that wait for the step's end, tiers in the order of their first."""
        return [
            QueuedPromotions(self._tiers[tier].name, req_id, keys)
            for tier, by_request in self._queued.items()
            for req_id, keys in by_request.items()
        ]

    def hidden_pins(self) -> dict[BlockKey, int]:
        """Block → pins beyond the one a cascade that the primary knows: one for each further running job."""
        extra: dict[BlockKey, int] = {}
        for cascade in {id(cascade): cascade for cascade in self._cascades.values()}.values():
            for key in cascade.keys:
                extra[key] = extra.get(key, 0) + cascade.running - 1
        return extra

    # Events

    def add_event(self, keys: Collection[BlockKey], *, removed: bool) -> None:
        """The primary reports blocks that became ready in it or were evicted from it; only while it `collects_events`,
        so that nobody else pays for the call."""
        if keys:
            self._primary_events.append(OffloadingEvent(Medium.CPU, None, removed, list(keys)))

    def take_events(self) -> list[OffloadingEvent]:
        """The primary's events in the order they happened, then each tier's, in topology order."""
        events = self._primary_events
        self._primary_events = []
        for waiting in self._tier_events:
            events += waiting
            waiting.clear()
        return events
