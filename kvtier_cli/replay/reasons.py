"""Why a block was served or not, in words: for the headline, the deciding line and a row. Decides nothing itself.

Names of tiers, requests and blocks come from files. `show` makes them fit for where the words go; by default they stay
as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.slots import SlotUse, SlotUser
from kvtier_cli.replay.story_model import Cell, RequestStory, StopStory, StoryBlock, WithoutFilter
from kvtier_cli.tiering.model import LookupResult, Verdict
from kvtier_cli.tiering.token_caps import LOAD_KEY, OFFLOAD_KEY
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.wording import count

Show = Callable[[str], str]

_CELL_WORDS: Final = {
    Cell.READY: "ready",
    Cell.PROMOTED: "hit",
    Cell.MISS: "miss",
    Cell.RETRY: "retry",
    Cell.SKIPPED_HOLDS: "skipped",
    Cell.SKIPPED: "skipped",
    Cell.NO_SLOT: "hit",
    Cell.LOAD_FAILED: "hit, load failed",
    Cell.PENDING: "pending",
}

_FATES: Final = {Outcome.FAILED: "failed to load", Outcome.GAVE_UP: "was given up"}


def headline(story: RequestStory, show: Show = str) -> str:
    """What happened to the request, in a few sentences: why it stopped, how much was served, from where."""
    return " ".join(sentences(story, show))


def sentences(story: RequestStory, show: Show = str) -> list[str]:
    """The sentences of the headline: why the request stopped (where it did), what was served, what the filter cost."""
    parts = [_stop_sentence(story, story.stop, show)] if story.stop is not None else []
    parts.append(_served_sentence(story, show))
    if story.lost_to_filter:
        parts.append(f"{story.lost_to_filter:,} lost to the filter (upper bound).")
    if story.without_filter is not None:
        parts.append(_without_sentence(story, story.without_filter, show))
    unstored = _unstored(story)
    if unstored:
        blocks = count(unstored, "block")
        parts.append(f"Its {OFFLOAD_KEY}{_cap(story, OFFLOAD_KEY)} kept {blocks} from being stored.")
    return parts


def deciding_line(story: RequestStory, show: Show = str) -> str | None:
    """What each tier said to the first block that was not served, and what that comes to; None where all were."""
    stop = story.stop
    if stop is None:
        return None
    block = story.blocks[stop.at]
    if stop.outcome is Outcome.UNREACHED:
        return f"block {stop.at:,} ({show(block.name)}) was not looked up: {_long_reason(story, stop, show)}."
    said = []
    for tier, cell in zip(story.tiers, block.cells, strict=True):
        if cell in _CELL_WORDS:
            words = f"{show(tier.name)} {_CELL_WORDS[cell]}"
            said.append(f"{words}, {tier.why}" if cell is Cell.SKIPPED_HOLDS and tier.name == stop.tier else words)
    name, fate = show(block.name), _FATES.get(stop.outcome, f"is {words_of(stop.outcome)}")
    why = "; ".join([*([", ".join(said)] if said else []), _long_reason(story, stop, show)])
    return f"block {stop.at:,} ({name}) {fate}: {why}."


def row_reason(story: RequestStory, block: StoryBlock, show: Show = str) -> str:
    """Why one block ended as it did, in a few words."""
    if block.outcome is Outcome.PRIMARY:
        return f"ready in {PRIMARY_NAME}" + (f" after {count(block.steps, 'step')}" if block.steps else "")
    if block.outcome is Outcome.PROMOTED:
        return f"from {show(block.tier or '')}" + ("" if block.steps is None else f", {count(block.steps, 'step')}")
    stop = story.stop
    assert stop is not None  # noqa: S101 - what was not served has a stop
    if block.outcome is Outcome.UNREACHED:
        if stop.outcome is Outcome.UNREACHED:
            held = f"{show(block.holders[0])} holds it" if block.holders else "not stored"
            return f"behind {LOAD_KEY} ({held})"
        holder = block.tier or next(iter(block.holders), None)
        return f"behind block {stop.at:,} ({'not stored' if holder is None else f'{show(holder)} holds it'})"
    if block.outcome is Outcome.FILTERED:
        why = next(tier.why for tier in story.tiers if tier.name == stop.tier)
        return f"{show(stop.tier or '')} holds it; {why}"
    if block.outcome is Outcome.DENIED:
        return f"{show(stop.tier or '')} hit, but no slot{_slots(story, stop.slots, show)}"
    return _long_reason(story, stop, show).removeprefix("it was ")


def stop_reason(story: RequestStory, show: Show = str) -> str:
    """Why the first block that was not served was not, in some detail; empty where all were served."""
    return _long_reason(story, story.stop, show) if story.stop is not None else ""


def words_of(outcome: Outcome) -> str:
    """An outcome as people write it: `gave up`, `absent`."""
    return outcome.value.replace("_", " ")


def joined(names: Iterable[str]) -> str:
    """`nvme`, `nvme and s3`, `nvme, s3 and peer`."""
    listed = list(names)
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


def _stop_sentence(story: RequestStory, stop: StopStory, show: Show) -> str:
    block, tier = f"block {stop.at:,}", show(stop.tier or "")
    if stop.outcome is Outcome.FILTERED:
        return f"The filter skipped {tier} at {block}, and {tier} holds it."
    if stop.outcome is Outcome.DENIED:
        return f"{tier} has {block}, but the CPU tier could give it no slot."
    if stop.outcome is Outcome.FAILED:
        return f"Loading {block} from {tier} failed."
    if stop.outcome is Outcome.HELD:
        return f"No tier was asked for {block}: promotions are held after a reset."
    if stop.outcome is Outcome.GAVE_UP:
        return f"Gave up waiting for {block} after {count(story.passes, 'pass', 'passes')}."
    if stop.outcome is Outcome.UNREACHED:
        cap = f"The request's {LOAD_KEY}{_cap(story, LOAD_KEY)}"
        return f"{cap} ends before {block}." if stop.at else f"{cap} is less than a block: nothing was looked up."
    if stop.reason is AbsentReason.OFFLINE:
        return f"{tier} holds {block}, but is offline."
    return f"No tier has {block}: {_long_reason(story, stop, show)}."


def _served_sentence(story: RequestStory, show: Show) -> str:
    total, served = len(story.blocks), story.served
    if not total:
        return "No blocks were looked up."
    if served == total:
        share = f"All {total:,} blocks served" if total > 1 else "The one block was served"
    else:
        share = f"{served:,} of {count(total, 'block')} served"
    tokens, all_tokens = story.tokens(served), story.tokens(total)
    if tokens is not None and all_tokens is not None:
        share += f" ({all_tokens:,} tokens)" if served == total else f" ({tokens:,} of {all_tokens:,} tokens)"
    sources = [f"{number:,} promoted from {show(tier)}" for tier, number in story.promoted_by_tier().items() if number]
    primary = story.counts()[Outcome.PRIMARY]
    if primary:
        sources.insert(0, f"{primary:,} primary")
    return f"{share}: {', '.join(sources)}." if sources else f"{share}."


def _without_sentence(story: RequestStory, without: WithoutFilter, show: Show) -> str:
    start = "Without the filter, after the same history,"
    if without.served == story.served:
        return f"{start} it would have been as many."
    sources = [
        f"{number:,} {'primary' if name == PRIMARY_NAME else f'promoted from {show(name)}'}"
        for name, number in without.by_tier.items()
        if number
    ]
    return f"{start} {without.served:,} would have been served{': ' if sources else ''}{', '.join(sources)}."


def _long_reason(story: RequestStory, stop: StopStory, show: Show) -> str:
    tier = show(stop.tier or "")
    by = _itself(story) if stop.by_itself else show(stop.by or "")
    if stop.outcome is Outcome.FILTERED:
        behind = {0: "this block", 1: "this block and the one after it"}
        return f"{tier} holds {behind.get(stop.held_behind, f'this block and the {stop.held_behind:,} after it')}"
    if stop.outcome is Outcome.DENIED:
        return f"the CPU tier could give no slot{_slots(story, stop.slots, show)}"
    if stop.outcome is Outcome.FAILED:
        why = f": {show(stop.failure)}" if stop.failure else ""
        return f"its load from {tier} failed{f' {stop.tries:,} times' if (stop.tries or 0) > 1 else ''}{why}"
    if stop.outcome is Outcome.HELD:
        return "promotions are held since the CPU tier was reset"
    if stop.outcome is Outcome.GAVE_UP:
        return _gave_up(story, stop, show)
    if stop.outcome is Outcome.UNREACHED:
        holders = story.blocks[stop.at].holders
        held = f"; {show(holders[0])} holds it" if holders else ""
        return f"{LOAD_KEY}{_cap(story, LOAD_KEY)} leaves {count(stop.at, 'whole block')} to load{held}"
    if stop.reason is AbsentReason.EVICTED:
        return f"it was evicted from {show(stop.evicted_from or '')} by {by}"
    if stop.reason is AbsentReason.REFUSED:
        return f"its store by {by} was refused, the CPU tier could not free enough slots at once"
    if stop.reason is AbsentReason.OFFLINE:
        return f"{tier} holds it, but is offline"
    return "it was never stored before"


def _cap(story: RequestStory, key: str) -> str:
    """A cap behind its name; nothing where it is not known, as of a request in a decision log."""
    caps = None if story.limits is None else story.limits.caps
    value = None if caps is None else caps.max_load if key == LOAD_KEY else caps.max_offload
    return "" if value is None else f" ({value:,})"


def _unstored(story: RequestStory) -> int:
    """Blocks that were not served, and that the request's cap kept from being stored."""
    return 0 if story.limits is None else max(0, len(story.blocks) - max(story.served, story.limits.store))


def _gave_up(story: RequestStory, stop: StopStory, show: Show) -> str:
    retried = stop.answer is LookupResult.RETRY
    tiers = joined(map(show, stop.waiting_for or ()))
    if stop.waiting_for is None:
        retried = Verdict.RETRY in story.blocks[stop.at].verdicts
        said = f"it could not be loaded in pass {story.passes:,}"
    elif retried:
        said = f"{tiers} still said retry in pass {story.passes:,}"
    elif stop.answer is LookupResult.HIT:
        said = f"it hit in pass {story.passes:,}, but a promotion of the same pass evicted it"
    else:
        said = f"it was still on its way{f' from {tiers}' if tiers else ''} in pass {story.passes:,}"
    if not retried and len(story.blocks) > story.primary_capacity:
        said += f"; the {len(story.blocks):,} blocks do not fit into the CPU tier's {story.primary_capacity:,}"
    return f"{said}; vLLM would wait on"


def _slots(story: RequestStory, slots: Iterable[SlotUse] | None, show: Show) -> str:
    """What took the slots, behind a colon; empty where that is not known."""
    if not story.primary_capacity:
        return ": it has none"
    return "" if slots is None else ": " + ", ".join(_slot_use(story, use, show) for use in slots)


def _slot_use(story: RequestStory, use: SlotUse, show: Show) -> str:
    if use.user is SlotUser.CASCADE:
        return f"{use.blocks:,} pinned by cascades to {joined(map(show, use.tiers))}"
    if use.user is SlotUser.LOAD:
        return f"{use.blocks:,} pinned by loads"
    whose = f" for {_itself(story)}" if use.own else ""
    if use.user is SlotUser.PROMOTION:
        return f"{use.blocks:,} on the way from {joined(map(show, use.tiers))}{whose}"
    return f"{count(use.blocks, 'write')} pending"


def _itself(story: RequestStory) -> str:
    return "this lookup" if story.label is None else "this request"
