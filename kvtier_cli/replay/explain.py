"""Explains one request of a trace: its story, a block's life, what it would have got unfiltered. Renders nothing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from kvtier_cli.replay.life import BlockLife, Deed, LifeEvent
from kvtier_cli.replay.outcomes import AbsentReason, holders
from kvtier_cli.replay.placements import Placements
from kvtier_cli.replay.prompt import Prompt
from kvtier_cli.replay.story import tell_evictions
from kvtier_cli.replay.story_model import RequestStory, WithoutFilter
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.replay.trace_teller import TraceTeller
from kvtier_cli.replay.watchers import PassWatchers
from kvtier_cli.tiering.filters import FilterParse, parse_tier_filter
from kvtier_cli.tiering.model import Verdict


@dataclass(frozen=True, slots=True)
class LifeEntry:
    """One event of a block's life; see `LifeEvent`. `request` is a name; `own`: it is the request that is explained."""

    step: int
    deed: Deed
    request: str
    own: bool
    tier: str | None
    job: int | None
    unread: bool
    reason: AbsentReason | None


@dataclass(frozen=True, slots=True)
class LifeStory:
    """The life of the block at `index` of the request. `entries` lack its loads, of which there were so many, unless
    `whole`: then they reach to the end of the trace, with all loads, and `holders` are the tiers that have the block
    then; else to the moment at which the request was not served it."""

    index: int
    block: str
    whole: bool
    entries: tuple[LifeEntry, ...]
    loads: int
    holders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A request's story, and the life of the block that was asked for or at which it stopped (None: there is none)."""

    story: RequestStory
    life: LifeStory | None


def explain(
    run: TraceRun, index: int, prompt: Prompt, parse: FilterParse | None = None, *, block: int | None = None
) -> Explanation:
    """Replay `run`, and tell the story of its request `index` under the filter that holds for it there. `parse` is how
    the run's own filter reads, None where it has none.

    With `block`, a place in the `prompt`, the life is that block's, over the whole trace; without, that of the first
    block not served, up to then. The replay goes on until what the request has stored is in all tiers, or failed to
    get there, since that evicts too; what is left of the trace is then only read, for `run.warnings`.
    """
    manager = run.manager
    placements = Placements(manager)
    watched = prompt.keys if block is None else (prompt.keys[block],)
    life = BlockLife(manager, run.history, watched, loads=block is not None)
    run.listen(placements, life)
    run.loop.watcher = PassWatchers([run.sums, life])
    teller = TraceTeller(run)
    teller.replay(index)
    story = teller.tell(for_all=parse, placements=placements, observers=[life])
    told = None if block is not None else _life_before(teller, index, prompt, life, story)
    steps = teller.steps()
    while (block is not None or _is_storing(run, index)) and next(steps, None) is not None:
        pass
    while _is_storing(run, index) or (block is not None and manager.transfers.jobs):
        manager.on_schedule_end()
    teller.skip_rest()
    run.warn_of_filters()
    evicted = tell_evictions(placements.evictions, index, teller.block_name, teller.name)
    if block is not None:
        told = _whole_life(teller, index, prompt, life, block)
    return Explanation(replace(story, evicted=evicted), told)


def _is_storing(run: TraceRun, req_id: int) -> bool:
    """Whether something that the request has stored is still on its way to a tier."""
    manager = run.manager
    return req_id in manager.requests or any(job.req_id == req_id for job in manager.transfers.jobs.values())


def _life_before(
    teller: TraceTeller, index: int, prompt: Prompt, life: BlockLife, story: RequestStory
) -> LifeStory | None:
    """The life of the block at which the request stopped, up to then: called when the request is just over."""
    if story.stop is None:
        return None
    at = story.stop.at
    events = life.events[prompt.keys[at]]
    stops = (number for number, event in enumerate(events) if _is_stop_of(event, index))
    before = events[: next(stops, len(events))]
    loads = life.loads[prompt.keys[at]]  # the request itself has not loaded it
    return LifeStory(at, prompt.names[at], False, _entries(teller, index, before), loads, story.blocks[at].holders)


def _whole_life(teller: TraceTeller, index: int, prompt: Prompt, life: BlockLife, at: int) -> LifeStory:
    key = prompt.keys[at]
    entries = _entries(teller, index, life.events[key])
    return LifeStory(at, prompt.names[at], True, entries, life.loads[key], holders(teller.run.manager, key))


def _entries(teller: TraceTeller, index: int, events: Sequence[LifeEvent]) -> tuple[LifeEntry, ...]:
    return tuple(
        LifeEntry(
            event.step,
            event.deed,
            teller.name(event.req_id),
            event.req_id == index,
            event.tier,
            event.job,
            event.unread,
            event.reason,
        )
        for event in events
    )


def _is_stop_of(event: LifeEvent, req_id: Hashable) -> bool:
    return event.req_id == req_id and event.deed in _STOPS


_STOPS = frozenset({Deed.FILTERED, Deed.ABSENT, Deed.DENIED, Deed.FAILED, Deed.HELD, Deed.GAVE_UP, Deed.UNREACHED})


def filter_skipped(story: RequestStory) -> bool:
    """Whether the filter kept the request from asking a tier. If not, it would have got the same without it."""
    return any(Verdict.SKIPPED in look.verdicts for one in story.pass_looks for look in one.looks)


def without_filter(run: TraceRun, index: int) -> WithoutFilter:
    """What request `index` would have got without a filter: not an upper bound, it is replayed.

    Kept equal is all that was before it: the requests of the history run under the same filters as in the run that is
    explained, of which `run` is to be another one. Only this one request runs under none; the waits, promotions and
    evictions that come of that are its own.
    """
    teller = TraceTeller(run)
    teller.replay(index)
    story = teller.tell(parse_tier_filter())
    return WithoutFilter(story.served, story.served_by_tier())
