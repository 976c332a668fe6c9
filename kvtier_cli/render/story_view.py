"""A request's story for people: what happened in one sentence, the picture, the reason, the legend, the scope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvtier_cli.render.cells import draw_outcome, legend
from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.ladder import ladder_lines
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.render.story_rows import row_lines
from kvtier_cli.replay.reasons import Show, deciding_line, headline
from kvtier_cli.replay.story_model import RequestStory

ROWS_UP_TO: Final = 10
"""So many blocks are shown with a row each, unless told otherwise; more as a ladder."""


def story_lines(
    story: RequestStory,
    out: Output,
    *,
    rows: bool = False,
    wide: bool = False,
    more: str | None = None,
    scope: bool = True,
) -> Iterator[str]:
    """The text of `kvtier lookup`, line by line. `rows`: a row a block whatever their number; `wide`: names whole;
    `more`: what else is to be said of the block that was not served."""
    show = shows(out, wide=wide)
    rows = rows or len(story.blocks) <= ROWS_UP_TO
    yield from _headline(story, out, headline(story, show))
    if story.blocks:
        yield ""
        if rows:
            yield from row_lines(story, out, show, wide=wide)
        else:
            yield from ladder_lines(story, out, wide=wide)
    deciding = deciding_line(story, show)
    if deciding is not None:
        yield ""
        yield from wrapped(deciding if more is None else f"{deciding} {more}", out, indent=1)
    if story.blocks:
        yield ""
        yield from legend(story.blocks, out, rows=rows)
    if scope:
        yield ""
        yield from wrapped(SCOPE, out, indent=1, style="muted")


def shows(out: Output, *, wide: bool = False) -> Show:
    """Makes names from files fit for sentences: inert, and shortened unless they are to be whole."""
    return lambda name: plain(name) if wide else out.shorten(plain(name), NAME_WIDTH)


def _headline(story: RequestStory, out: Output, text: str) -> Iterator[str]:
    """The sentences, behind the symbol of what stopped the request."""
    if story.stop is None:
        yield from wrapped(text, out, style="bold")
        return
    symbol = draw_outcome(story.stop.outcome, out)
    first, *more = wrapped(f"{symbol.symbol} {text}", out)
    yield f"{out.style(symbol.symbol, symbol.style)}{out.style(first[1:], 'bold')}"
    yield from (out.style(line, "bold") for line in more)
