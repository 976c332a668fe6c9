"""`kvtier explain` for people: the request's story, then its passes, what it stored and evicted, and a block's life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import noted_rows, noted_table, wrapped
from kvtier_cli.render.story_view import shows, story_lines
from kvtier_cli.replay.explain import Explanation, LifeStory
from kvtier_cli.replay.life_words import LifeRow, life_rows, short_life, whereabouts
from kvtier_cli.replay.pass_words import evicted_rows, pass_rows, promotion_sentence, store_sentence
from kvtier_cli.replay.reasons import Show, row_reason, words_of
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.wording import count

ROWS_AT_EACH_END: Final = 8
"""Of a long table so many rows are shown at its beginning and at its end, unless all are asked for."""


def explain_lines(explanation: Explanation, out: Output, *, rows: bool = False, wide: bool = False) -> Iterator[str]:
    """The text of `kvtier explain`, line by line. `rows`: all rows of each table; `wide`: names whole."""
    story, life, show = explanation.story, explanation.life, shows(out, wide=wide)
    if life is not None and life.whole:
        yield from _life_lines(story, life, out, show, rows=rows)
    else:
        before = None if life is None else short_life(life, show)
        yield from story_lines(story, out, rows=rows, wide=wide, more=before, scope=False)
        if story.blocks:
            yield ""
            yield from _passes(story, out, show, rows=rows)
        yield ""
        yield from _effects(story, out, show, rows=rows)
    yield ""
    yield from wrapped(SCOPE, out, indent=1, style="muted")


def _passes(story: RequestStory, out: Output, show: Show, *, rows: bool) -> Iterator[str]:
    table = []
    for row in pass_rows(story, show):
        at = f"{row.first:,}" if row.first == row.last else f"{row.first:,} to {row.last:,}"
        table.append([f"{row.number:,}", f"{row.step:,}", at, row.answer, plain(row.said)])
    yield from _long_table(
        ["pass", "step", "blocks", "answer", "what was said"], table, out, align=">><<", rows=rows, once=2
    )


def _effects(story: RequestStory, out: Output, show: Show, *, rows: bool) -> Iterator[str]:
    parts = [sentence for sentence in (promotion_sentence(story, show), store_sentence(story)) if sentence]
    evicted = len(story.evicted)
    parts.append(f"It evicted {count(evicted, 'block')}:" if evicted else "It evicted nothing.")
    yield from wrapped(plain(" ".join(parts)), out, indent=1)
    if story.evicted:
        yield ""
        table = [
            [row.tier, row.cause, f"{row.blocks:,}", f"{row.unread:,}", plain(row.put)]
            for row in evicted_rows(story, show, most=len(story.evicted) if rows else 3)
        ]
        yield from noted_table(
            ["from", "for its", "blocks", "unread", "how it got there"], table, out, align="<<>>", wrap=True
        )


def _life_lines(story: RequestStory, life: LifeStory, out: Output, show: Show, *, rows: bool) -> Iterator[str]:
    block = story.blocks[life.index]
    whose = show(story.label or "")
    outcome, why = words_of(block.outcome), row_reason(story, block, show)
    total = len(life.entries)
    yield from wrapped(
        f"Block {life.index:,} ({show(life.block)}) of {whose} is {outcome}: {plain(why)}.", out, style="bold"
    )
    yield from wrapped(
        f"Its whole life in the trace: {count(total, 'event')}, loaded {count(life.loads, 'time')}. "
        f"At the end {whereabouts(life, show)} {'have' if len(life.holders) > 1 else 'has'} it.",
        out,
    )
    if total:
        yield ""
        yield from life_table(life_rows(life, show), out, rows=rows)


def life_table(life: Sequence[LifeRow], out: Output, *, rows: bool) -> Iterator[str]:
    """The lines of the table of a block's life."""
    table = []
    for row in life:
        steps = f"{row.first:,}" if row.first == row.last else f"{row.first:,} to {row.last:,}"
        table.append([steps, f"{row.requests} <" if row.own else row.requests, plain(row.what)])
    yield from _long_table(["step", "by", "what happened"], table, out, align=">", rows=rows)


def _long_table(
    head: Sequence[str], table: Sequence[list[str]], out: Output, *, align: str, rows: bool, once: int = 0
) -> Iterator[str]:
    """Both ends of a table, or with `rows` all of it. Of rows that begin alike only the first shows its `once` leading
    cells."""
    hidden = 0 if rows else len(table) - 2 * ROWS_AT_EACH_END
    parts = [table] if hidden <= 1 else [table[:ROWS_AT_EACH_END], table[-ROWS_AT_EACH_END:]]
    shown = []
    for part in parts:
        before: list[str] = []
        for row in part:
            shown.append([*[""] * once, *row[once:]] if row[:once] == before[:once] != [] else row)
            before = row
    for number, lines in enumerate(noted_rows(head, shown, out, align=align, wrap=True)):
        yield from lines
        if len(parts) > 1 and number == ROWS_AT_EACH_END:
            yield out.style(f"  {hidden:,} more rows (--rows shows them)", "muted")
