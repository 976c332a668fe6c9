"""The blocks of the request, a line each: what every tier said, the outcome and why."""

from __future__ import annotations

from kvtier_cli.render.cells import draw_cell, draw_outcome
from kvtier_cli.render.console import plain
from kvtier_cli.replay.reasons import row_reason, words_of
from kvtier_cli.replay.story_model import Cell, RequestStory
from tui.lines import Line, cut, mark_of, padded
from tui.session.views import Snapshot
from tui.widgets.list_pane import ListPane


class BlocksPane(ListPane):
    """The cursor is the block cursor of the ladder."""

    HEAD = 1

    def pane_title(self) -> str:
        story = self._story
        return "Blocks" if story is None else f"Blocks of {plain(story.label or 'the lookup')}"

    @property
    def _story(self) -> RequestStory | None:
        moment = None if self.snapshot is None else self.snapshot.moment
        return None if moment is None else moment.story

    @property
    def count(self) -> int:
        return 0 if self._story is None else len(self._story.blocks)

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.look_at(self.dashboard.block)

    def _names(self, story: RequestStory) -> list[str]:
        return [cut(plain(tier.name), 6, mark_of(self.out)) for tier in story.tiers]

    def head(self, y: int, width: int) -> Line:
        story = self._story
        if story is None:
            return []
        names = "".join(padded(name, 7) for name in self._names(story))
        return [(f" {'#':>5}  {'block':<14}{names}{'outcome':<11}why", "muted")]

    def row(self, index: int, width: int) -> Line:
        story, snapshot = self._story, self.snapshot
        if story is None or snapshot is None or snapshot.moment is None:
            return []
        block = story.blocks[index]
        line: Line = [
            (f" {index:>5,}  ", "muted"),
            (padded(self.out.shorten(plain(block.name), 13), 14), "text"),
        ]
        for cell, tier in zip(block.cells, story.tiers, strict=True):
            drawn = draw_cell(cell, self.out, skipped=not tier.admitted)
            symbol = self.symbol("unreached") if cell is Cell.BLANK else drawn.symbol
            line += [("  ", ""), (symbol, drawn.style or "unreached"), ("    ", "")]
        answer = snapshot.moment.pending.get(index)
        if answer is not None:
            return [*line, (padded("pending", 11), "pending"), (answer.value, "muted")]
        outcome = draw_outcome(block.outcome, self.out)
        style = "alarm" if outcome.style == "filtered" else outcome.style
        reason = plain(row_reason(story, block, lambda name: self.out.shorten(name, 16)))
        return [*line, (padded(words_of(block.outcome), 11), style), (reason, "muted")]
