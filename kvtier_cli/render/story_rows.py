"""A story with a row a block: what each tier did, the outcome, and why. The ladder shows the same for many blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvtier_cli.render.cells import Drawn, draw_cell, draw_outcome
from kvtier_cli.render.console import Output, cell_width, columns, pad, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import Show, row_reason, words_of
from kvtier_cli.replay.story_model import Cell, RequestStory, StoryBlock

BLOCK_WIDTH: Final = 20
"""Cells of a block's name, unless it is to be shown whole."""

_SHORT_NAME: Final = 8
_LEAST_REASON: Final = 26
"""Cells that the reasons need beside their rows; with fewer they stand below them."""
_PLAIN_TO_SEE: Final = (Outcome.PRIMARY, Outcome.UNREACHED)


def row_lines(story: RequestStory, out: Output, show: Show, *, wide: bool = False) -> Iterator[str]:
    """The lines of the table. `show` makes names fit for sentences; with `wide` the blocks' names are whole.

    Where the reasons have no room beside the rows, only those stand below theirs that the symbols do not tell.
    """
    names = [out.shorten(plain(tier.name), NAME_WIDTH if wide else _SHORT_NAME) for tier in story.tiers]
    rows = [["#", "block", *names, "outcome"], *(_row(story, block, names, out, wide=wide) for block in story.blocks)]
    lines = _table(rows, out)
    if any(cell_width(line) > out.width for line in lines):
        # Too many tiers for a column each: their cells stand side by side, and their names above the table.
        yield from wrapped(f"tiers from left to right: {', '.join(names)}", out, indent=2)
        yield ""
        tiers = ["tiers", *("".join(cell.strip() for cell in row[2:-1]) for row in rows[1:])]
        lines = _table([[*row[:2], cells, row[-1]] for row, cells in zip(rows, tiers, strict=True)], out)
    left = max(map(cell_width, lines)) + 2
    beside = out.width - left >= _LEAST_REASON
    yield pad(lines[0], left) + "why" if beside else lines[0]
    for line, block in zip(lines[1:], story.blocks, strict=True):
        reason = plain(row_reason(story, block, show))
        if beside:
            first, *more = wrapped(reason, out, indent=left)
            yield pad(line, left) + first.lstrip()
            yield from more
        else:
            yield line
            if block.outcome not in _PLAIN_TO_SEE:
                yield from wrapped(reason, out, indent=5)


def _table(rows: list[list[str]], out: Output) -> list[str]:
    return columns(rows, ">", shrink=1, width=out.width, mark="…" if out.unicode else "..")


def _row(story: RequestStory, block: StoryBlock, names: list[str], out: Output, *, wide: bool) -> list[str]:
    name = plain(block.name)
    drawn = [
        draw_cell(cell, out, skipped=not tier.admitted) if cell is not Cell.BLANK else _not_reached(out)
        for cell, tier in zip(block.cells, story.tiers, strict=True)
    ]
    outcome = draw_outcome(block.outcome, out)
    return [
        f"{block.index:,}",
        name if wide else out.shorten(name, BLOCK_WIDTH),
        *(pad(out.style(*cell), cell_width(head), "^") for cell, head in zip(drawn, names, strict=True)),
        out.style(words_of(block.outcome), outcome.style),
    ]


def _not_reached(out: Output) -> Drawn:
    return Drawn(out.symbol("unreached"), "unreached")
