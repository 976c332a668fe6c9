"""Lookups as cells of a ladder, and a request's story as it was in one of its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.story_model import Cell, Look, StoryBlock
from kvtier_cli.tiering.model import LookupResult, Verdict
from tui.session.views import Moment

_CELLS: Final = {
    Verdict.SKIPPED: Cell.SKIPPED,
    Verdict.MISS: Cell.MISS,
    Verdict.RETRY: Cell.RETRY,
    Verdict.NOT_REACHED: Cell.BLANK,
}


def cells_of(look: Look, names: Sequence[str], holders: Sequence[str]) -> tuple[Cell, ...]:
    """What one lookup heard, a cell a tier, the primary first. `names` are those of the secondary tiers."""
    first = Cell.MISS
    if not look.reached_tiers and look.result is LookupResult.HIT:
        first = Cell.READY
    elif not look.reached_tiers and look.result is LookupResult.HIT_PENDING:
        first = Cell.PENDING
    cells = [first]
    for name, verdict in zip(names, look.verdicts, strict=True):
        if verdict is Verdict.HIT:
            cells.append(Cell.PROMOTED if look.denied is None else Cell.NO_SLOT)
        elif verdict is Verdict.SKIPPED and name in holders:
            cells.append(Cell.SKIPPED_HOLDS)
        else:
            cells.append(_CELLS[verdict])
    return tuple(cells)


def at_pass(moment: Moment, number: int) -> Moment:
    """The moment as the request stood in its pass `number`, from 1; the last is how it ended.

    Which tiers hold what is known as of the last pass only.
    """
    story = moment.story
    if story is None or not 1 <= number < len(story.pass_looks):
        return moment
    looks = story.pass_looks[number - 1].looks
    names = [tier.name for tier in story.tiers[1:]]
    pending = {
        at: look.result
        for at, look in enumerate(looks)
        if look.result in (LookupResult.HIT_PENDING, LookupResult.RETRY)
    }
    blocks = tuple(
        _block(block, looks[block.index] if block.index < len(looks) else None, names) for block in story.blocks
    )
    return replace(moment, story=replace(story, blocks=blocks), pending=pending)


def _block(block: StoryBlock, look: Look | None, names: Sequence[str]) -> StoryBlock:
    if look is None:
        cells = tuple(Cell.HOLDS if name in block.holders else Cell.BLANK for name in ("", *names))
        return replace(block, cells=cells, outcome=Outcome.UNREACHED, result=None, verdicts=())
    outcome = Outcome.PRIMARY if look.result is LookupResult.HIT else block.outcome
    cells = cells_of(look, names, block.holders)
    return replace(block, cells=cells, outcome=outcome, result=look.result, verdicts=look.verdicts)
