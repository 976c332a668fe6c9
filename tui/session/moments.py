"""How a manager stands at one moment, as views. Changes and counts nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from typing import Any, Final

from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import JobKind, LookupResult, Medium
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.topology import PRIMARY_NAME
from tui.session.events import EventLog
from tui.session.views import EventView, JobView, Moment, SlotsView, TierView

JOBS: Final = 200
"""So many of the running jobs are told."""

EVENTS: Final = 300


def moment_of(
    manager: TieringManager,
    index: int,
    label: str,
    story: RequestStory | None,
    events: EventLog,
    figures: Mapping[str, Any],
    request_name: Callable[[Hashable], str],
    pending: Mapping[int, LookupResult] | None = None,
    said: tuple[str, ...] = (),
) -> Moment:
    """The views of `manager` now. `figures` may be empty; the rates then are of what the manager counted."""
    return Moment(
        index,
        label,
        story,
        tier_views(manager, figures),
        tuple(_jobs(manager, events, request_name)),
        len(manager.transfers.jobs),
        _slots(manager),
        tuple(EventView(event, _name(event.request, request_name)) for event in events.latest(EVENTS)),
        manager.counters.steps,
        figures,
        pending or {},
        said,
    )


def declared(medium: Medium | None, locality: Any) -> str:
    """What a secondary tier declares: `storage local`, or that it does not."""
    words = [side.value.lower() for side in (medium, locality) if side is not None]
    return " ".join(words) or "not declared"


def tier_views(manager: TieringManager, figures: Mapping[str, Any]) -> tuple[TierView, ...]:
    """All tiers, the primary first."""
    counters, primary = manager.counters, manager.primary
    blocks: int = figures.get("blocks", 0)
    served: Mapping[str, int] = figures.get("served_by_tier", {})

    def of_all(name: str) -> float | None:
        return _share(served.get(name, 0), blocks)

    views = [
        TierView(
            PRIMARY_NAME,
            "primary",
            len(primary.resident),
            primary.capacity,
            counters.lookups,
            counters.primary_hits,
            _share(counters.primary_hits, counters.lookups),
            of_all(PRIMARY_NAME),
            0,
            0,
        )
    ]
    for at, tier in enumerate(manager.tiers):
        asked, hits = counters.asked[at], counters.hits[at]
        views.append(
            TierView(
                tier.name,
                declared(tier.medium, tier.locality),
                tier.size(),
                tier.spec.capacity if isinstance(tier, SecondaryTier) else None,
                asked,
                hits,
                _share(hits, asked),
                of_all(tier.name),
                counters.skipped[at],
                counters.promoted[at],
                bool(getattr(tier, "offline", False)),
            )
        )
    return tuple(views)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _jobs(manager: TieringManager, events: EventLog, name: Callable[[Hashable], str]) -> list[JobView]:
    tiers = {tier.name: tier for tier in manager.tiers}
    step = manager.counters.steps
    found = []
    for job in islice(manager.transfers.jobs.values(), JOBS):
        since = events.submitted.get(job.job_id)
        kind = "load" if job.kind is JobKind.PROMOTION else "store"
        age = None if since is None else step - since
        due = _due(tiers[job.tier], job.job_id)
        found.append(JobView(job.job_id, job.tier, kind, _name(job.req_id, name), len(job.keys), age, due))
    return found


def _due(tier: SecondaryTierManager, job_id: int) -> int | None:
    return tier.due_in(job_id) if isinstance(tier, SecondaryTier) else None


def _slots(manager: TieringManager) -> SlotsView:
    primary = manager.primary
    return SlotsView(primary.free, primary.evictable, len(primary.busy) - primary.pending, primary.pending)


def _name(request: Hashable, name: Callable[[Hashable], str]) -> str:
    return "" if request is None else name(request)
