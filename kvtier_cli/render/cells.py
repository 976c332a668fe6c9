"""How a story's cells and outcomes look: their symbols, their styles, and the legend of those that occur."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from kvtier_cli.render.console import Output, cell_width
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import words_of
from kvtier_cli.replay.story_model import Cell, RequestStory, StoryBlock

SYMBOL_OF: Final = {
    Cell.READY: "primary",
    Cell.PROMOTED: "promoted",
    Cell.MISS: "absent",
    Cell.RETRY: "retry",
    Cell.SKIPPED_HOLDS: "filtered",
    Cell.SKIPPED: "skipped",
    Cell.NO_SLOT: "denied",
    Cell.LOAD_FAILED: "failed",
    Cell.PENDING: "pending",
    Cell.HOLDS: "holds",
}
"""Cell → its symbol in `console.SYMBOLS`; a blank one has none."""

WORDS: Final = {
    Cell.READY: "primary",
    Cell.PROMOTED: "promoted",
    Cell.MISS: "miss",
    Cell.RETRY: "retry",
    Cell.SKIPPED_HOLDS: "skipped, holds it",
    Cell.SKIPPED: "skipped",
    Cell.NO_SLOT: "hit, no slot",
    Cell.LOAD_FAILED: "load failed",
    Cell.PENDING: "pending",
    Cell.HOLDS: "holds it, not asked",
}


class Drawn(NamedTuple):
    """One cell of a picture: a symbol of one cell's width, and the style it is drawn in (none where it is empty)."""

    symbol: str = " "
    style: str = ""


def tier_cells(story: RequestStory, position: int, out: Output) -> list[Drawn]:
    """A tier's row, a cell a block; `position` 0 is the primary."""
    skipped = not story.tiers[position].admitted
    return [draw_cell(block.cells[position], out, skipped=skipped) for block in story.blocks]


def draw_cell(cell: Cell, out: Output, *, skipped: bool = False) -> Drawn:
    """`skipped`: the filter skips the tier. What such a tier holds leads the eye, though nobody asked for it."""
    if cell is Cell.BLANK:
        return Drawn()
    name = SYMBOL_OF[cell]
    return Drawn(out.symbol(name), "holds_skipped" if skipped and cell is Cell.HOLDS else name)


def draw_outcome(outcome: Outcome, out: Output) -> Drawn:
    """A block's outcome."""
    return Drawn(out.symbol(outcome.value), outcome.value)


def styled(cells: Iterable[Drawn], out: Output) -> str:
    """The cells side by side, with as few colour codes as they need, and no blanks at the end."""
    drawn = list(cells)
    while drawn and drawn[-1].symbol == " ":
        drawn.pop()
    runs = groupby(drawn, key=lambda cell: cell.style)
    texts = (("".join(cell.symbol for cell in run), style) for style, run in runs)
    return "".join(out.style(text, style) if style else text for text, style in texts)


def legend(blocks: Sequence[StoryBlock], out: Output, *, rows: bool = False) -> Iterator[str]:
    """What the symbols that occur stand for, in lines of `out.width`.

    A symbol that is a block's outcome goes by the outcome's word, and by its tiers' word too where it stands for more.
    `rows`: in a table with a row a block a tier that was not reached has a symbol as well.
    """
    words: dict[str, dict[str, None]] = {}
    for outcome in dict.fromkeys(block.outcome for block in blocks):
        words.setdefault(outcome.value, {})[words_of(outcome)] = None
    for block in blocks:
        for cell in block.cells:
            if cell is not Cell.BLANK and SYMBOL_OF[cell] != block.outcome.value:
                words.setdefault(SYMBOL_OF[cell], {})[WORDS[cell]] = None
    if rows and any(Cell.BLANK in block.cells for block in blocks):
        words.setdefault("unreached", {"not reached": None})
    order = [*(outcome.value for outcome in Outcome), *SYMBOL_OF.values()]
    indent, line = " ", ""
    for name in sorted(words, key=order.index):
        entry = f"{out.style(out.symbol(name), name)} {', '.join(words[name])}"
        longer = f"{line}  {entry}" if line else indent + entry
        if line and cell_width(longer) > out.width:
            yield line
            longer = indent + entry
        line = longer
    if line:
        yield line
