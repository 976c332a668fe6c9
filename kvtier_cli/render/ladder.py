"""The ladder: a row a tier in the order asked, a column a block, the outcome below. For any number of blocks.

Where the blocks do not fit side by side they go on in further bands of whole tens, in which empty rows are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvtier_cli.render.cells import Drawn, draw_outcome, styled, tier_cells
from kvtier_cli.render.console import Output, cell_width, pad, plain
from kvtier_cli.render.noted_table import NAME_WIDTH
from kvtier_cli.replay.story_model import RequestStory, StoryTier

TEN: Final = 10
"""Blocks between two gaps: what can be counted at a glance."""

_WIDE: Final = 70
"""From so many columns on there is room for whole names, and for what the tiers declare."""
_NARROW_NAME: Final = 10
_ROOMY_TENS: Final = 4

_Label = tuple[str, str]
"""Text and style."""


class _Row(NamedTuple):
    """One line of each band: what stands left of the cells, and the cells of all blocks."""

    labels: tuple[_Label, ...]
    cells: list[Drawn]

    def has_any(self, start: int, end: int) -> bool:
        return any(cell.symbol != " " for cell in self.cells[start:end])


def ladder_lines(story: RequestStory, out: Output, *, wide: bool = False) -> Iterator[str]:
    """The lines of the ladder; none ends with blanks, and none is wider than `out`, unless names are to be whole
    (`wide`)."""
    name_width = sys.maxsize if wide else NAME_WIDTH if out.width >= _WIDE else _NARROW_NAME
    ladder = _Ladder(story, out, name_width, declared=out.width >= _WIDE)
    if not ladder.is_roomy:
        ladder = _Ladder(story, out, name_width, declared=False)
    total, size = len(story.blocks), ladder.band
    yield from ladder.draw(0, min(size, total))
    drawn, start = list(ladder.draw_rows(0, size)), size
    while start < total:
        end = min(start + size, total)
        rows = list(ladder.draw_rows(start, end))
        # A long request's end is the same over and over: one line stands for its bands, but for the last.
        alike = start
        while end < total and rows == drawn and list(ladder.draw_rows(end, end + size)) == rows:
            start, end = end, min(end + size, total)
        if start > alike:
            yield ""
            yield out.style(f" blocks {alike:,} to {start - 1:,}: as above", "muted")
        yield ""
        yield from ladder.draw(start, end)
        drawn, start = rows, end


class _Ladder:
    """A story laid out for a width, with or without the column of what the tiers declare."""

    def __init__(self, story: RequestStory, out: Output, name_width: int, *, declared: bool) -> None:
        self._out = out
        self._name_width = name_width
        self._declared = declared
        self._blocks = len(story.blocks)
        self._heads = ("tier", "declared", "filter") if declared else ("tier", "filter")
        self._gap = " " * len(self._heads)
        self._rows = [
            _Row(self._tier_labels(tier, position), tier_cells(story, position, out))
            for position, tier in enumerate(story.tiers)
        ]
        labels = (("=", "bold"), ("outcome", "muted"), ("", ""))[: len(self._heads)]
        self._rows.append(_Row(labels, [draw_outcome(block.outcome, out) for block in story.blocks]))
        columns = zip(self._heads, *([text for text, _ in row.labels] for row in self._rows), strict=True)
        self._widths = [max(map(cell_width, column)) for column in columns]
        left = 1 + sum(self._widths) + len(self._gap) * len(self._widths)
        self._tens = max((out.width - left + 1) // (TEN + 1), 1)

    @property
    def band(self) -> int:
        """How many blocks stand side by side."""
        return self._tens * TEN

    @property
    def is_roomy(self) -> bool:
        """Whether there is no reason to save columns."""
        return self._tens >= _ROOMY_TENS or self.band >= self._blocks

    def _tier_labels(self, tier: StoryTier, position: int) -> tuple[_Label, ...]:
        out = self._out
        name = (out.shorten(plain(tier.name), self._name_width), "bold")
        if position == 0:
            declares, verdict = "primary", ("always", "muted")
        else:
            sides = [side.value.lower() for side in (tier.medium, tier.locality) if side is not None]
            declares = " ".join(sides) or out.symbol("none")
            verdict = ("admitted", "good") if tier.admitted else ("SKIPPED", "filtered")
        return (name, (declares, "muted"), verdict) if self._declared else (name, verdict)

    def draw(self, start: int, end: int) -> Iterator[str]:
        """A band with the numbers of its blocks above it."""
        numbers = "".join(pad(f"{number:,}", TEN + 1) for number in range(start, end, TEN))
        heads = self._heads if start == 0 else ("",) * len(self._heads)
        left = self._left([(head, "") for head in heads])
        yield self._out.style(f"{left}{numbers}".rstrip(), "muted")
        yield from self.draw_rows(start, end)

    def draw_rows(self, start: int, end: int) -> Iterator[str]:
        """The rows of a band. Behind the first one the columns between name and cells are blank."""
        for row in self._rows:
            if start == 0:
                labels = list(row.labels)
            elif row.has_any(start, end):
                labels = [row.labels[0], *[("", "")] * (len(row.labels) - 1)]
            else:
                continue
            yield (self._left(labels) + self._spaced(row.cells[start:end])).rstrip()

    def _left(self, labels: list[_Label]) -> str:
        out = self._out
        texts = [out.style(text, style) if style and text else text for text, style in labels]
        return " " + "".join(pad(text, width) + self._gap for text, width in zip(texts, self._widths, strict=True))

    def _spaced(self, cells: list[Drawn]) -> str:
        tens = [cells[start : start + TEN] for start in range(0, len(cells), TEN)]
        spaced = [cell for ten in tens for cell in (*ten, Drawn())]
        return styled(spaced, self._out)
