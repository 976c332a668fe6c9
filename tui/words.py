"""What each tier had to do with one block, in words; what comes of it is told by `replay/reasons.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.reasons import row_reason, stop_reason, words_of
from kvtier_cli.replay.story_model import Cell, RequestStory, StoryBlock
from kvtier_cli.wording import count
from tui.session.events import Event, EventKind

Show = Callable[[str], str]

VERDICTS: Final = {
    Cell.BLANK: "not asked",
    Cell.READY: "ready",
    Cell.PROMOTED: "promoted",
    Cell.MISS: "miss",
    Cell.RETRY: "retry",
    Cell.SKIPPED_HOLDS: "SKIPPED",
    Cell.SKIPPED: "skipped",
    Cell.NO_SLOT: "no slot",
    Cell.LOAD_FAILED: "failed",
    Cell.PENDING: "pending",
    Cell.HOLDS: "not asked",
}


def tier_said(story: RequestStory, block: StoryBlock, position: int, show: Show = str) -> str:
    """What tier `position` (0: the primary) had to do with `block`."""
    cell, tier = block.cells[position], story.tiers[position]
    stop = story.stop
    at_stop = stop is not None and stop.at == block.index
    if cell is Cell.BLANK:
        if stop is not None and block.index > stop.at:
            return "does not hold it"
        return "not asked: a tier before it had it"
    if position == 0:
        if cell is Cell.READY:
            return "ready" + (f" after {count(block.steps, 'step')}" if block.steps else "")
        if cell is Cell.PENDING:
            return "a write of it was on its way"
        if cell is Cell.HOLDS:
            return "holds it"
        evicted = (
            at_stop and stop is not None and stop.reason is AbsentReason.EVICTED and stop.evicted_from == tier.name
        )
        if evicted and stop is not None:
            return f"not resident: evicted by {'this request' if stop.by_itself else show(stop.by or '')}"
        return "not resident"
    said = {
        Cell.MISS: "asked, does not hold it",
        Cell.RETRY: "asked, answered: ask again later",
        Cell.SKIPPED_HOLDS: f"{tier.why}. It holds it.",
        Cell.SKIPPED: f"{tier.why}. It does not hold it.",
        Cell.NO_SLOT: "it has it, but the CPU tier could give no slot",
        Cell.LOAD_FAILED: "hit, and the load failed",
        Cell.HOLDS: "holds it",
        Cell.PROMOTED: "hit, promoted into the CPU tier"
        + ("" if block.steps is None else f": {count(block.steps, 'step')}"),
    }.get(cell, "")
    if cell is Cell.MISS and at_stop and stop is not None and stop.evicted_from == tier.name:
        return f"{said}: evicted by {'this request' if stop.by_itself else show(stop.by or '')}"
    return said


def comes_to(story: RequestStory, block: StoryBlock, show: Show = str) -> str:
    """Why the block ended as it did."""
    if story.stop is not None and story.stop.at == block.index:
        return stop_reason(story, show)
    return row_reason(story, block, show)


def why_title(story: RequestStory, block: StoryBlock) -> str:
    """The question that the pane answers."""
    if block.outcome in (Outcome.PRIMARY, Outcome.PROMOTED):
        return f"Block {block.index:,}: how it was served"
    return f"Block {block.index:,}: why it was not served"


def outcome_word(outcome: Outcome) -> str:
    """In capitals, for the line that says what it comes to."""
    return words_of(outcome).upper()


_EVENTS: Final = {
    EventKind.PROMOTE: "from {tier}",
    EventKind.EVICT: "from {tier}",
    EventKind.STORE: "into cpu",
    EventKind.REFUSE: "not enough slots at once",
    EventKind.LOAD: "from cpu",
    EventKind.CASCADE: "to {tier}, job {job:,}",
    EventKind.DENY: "{said}: {tier} hit, cpu had no slot",
    EventKind.SKIP: "{said}: {tier} holds it",
    EventKind.FAIL: "{tier}, job {job:,}",
    EventKind.WAIT: "{said}",
    EventKind.FINISH: "",
    EventKind.RESET: "the CPU tier was emptied",
}


def event_words(event: Event, show: Show = str, *, short: bool = False) -> str:
    """One event in a few words, without its kind; `short`: without its job too."""
    tier = "" if event.tier is None else show(event.tier)
    words = _EVENTS[event.kind].format(tier=tier, job=event.job or 0, said=event.said)
    if short:
        words = words.partition(", job")[0]
    blocks = count(event.blocks, "block") if event.blocks else ""
    return f"{blocks} {words}".strip() if event.kind not in (EventKind.SKIP, EventKind.DENY) else words


EVENT_STYLES: Final = {
    EventKind.PROMOTE: "promoted",
    EventKind.EVICT: "muted",
    EventKind.STORE: "primary",
    EventKind.REFUSE: "denied",
    EventKind.LOAD: "primary",
    EventKind.CASCADE: "muted",
    EventKind.DENY: "denied",
    EventKind.SKIP: "alarm",
    EventKind.FAIL: "failed",
    EventKind.WAIT: "pending",
    EventKind.FINISH: "unreached",
    EventKind.RESET: "held",
}
