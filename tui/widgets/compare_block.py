"""The two stories of one block, side by side: what each tier did under A and under B."""

from __future__ import annotations

from kvtier_cli.render.cells import draw_cell
from kvtier_cli.render.console import cell_width, plain
from kvtier_cli.replay.reasons import words_of
from kvtier_cli.replay.story_model import Cell, RequestStory, StoryBlock
from tui.lines import Line, clip, cut, mark_of, padded, width_of
from tui.widgets.compare_panes import ComparePane
from tui.words import VERDICTS, comes_to, tier_said


class ComparedBlock(ComparePane):
    """`block` is the one under the cursor."""

    block = 0

    def _stories(self) -> list[tuple[RequestStory, StoryBlock]] | None:
        view = self.view
        if view is None or view.moments is None:
            return None
        found = []
        for moment in view.moments:
            story = moment.story
            if story is None or not story.blocks:
                return None
            found.append((story, story.blocks[min(self.block, len(story.blocks) - 1)]))
        return found

    def pane_title(self) -> str:
        stories = self._stories()
        if stories is None:
            return "Block"
        (_, first), (_, second) = stories
        if first.outcome is second.outcome:
            return f"Block {first.index:,}: {words_of(first.outcome)} in both"
        return f"Block {first.index:,}: {words_of(first.outcome)} in A, {words_of(second.outcome)} in B"

    def line(self, y: int, width: int) -> Line:
        stories = self._stories()
        if stories is None:
            return []
        tiers = stories[0][0].tiers
        names = max(cell_width(plain(tier.name)) for tier in tiers)
        left = min(names, 12) + 7
        half = (width - left) // 2
        if y < len(tiers):
            differs = stories[0][1].cells[y] is not stories[1][1].cells[y]
            unequal = "≠" if self.out.unicode else "!"
            name = padded(cut(plain(tiers[y].name), left - 7, mark_of(self.out)), left - 7)
            line: Line = [(f" {y + 1} {name} ", "bold" if differs else "text")]
            line.append((f"{unequal if differs else ' '} ", "bold"))
            parts = [self._tier(story, block, y) for story, block in stories]
        elif y == len(tiers):
            arrow = "→" if self.out.unicode else ">"
            line = [(padded(f" {arrow}", left), "bold")]
            parts = [[(plain(comes_to(story, block)), "text")] for story, block in stories]
        else:
            return []
        line.append((" " * max(left - width_of(line), 0), ""))
        for part in parts:
            clipped = clip(part, half - 2, mark_of(self.out))
            line += [*clipped, (" " * (half - width_of(clipped)), "")]
        return line

    def _tier(self, story: RequestStory, block: StoryBlock, position: int) -> Line:
        cell, tier = block.cells[position], story.tiers[position]
        drawn = draw_cell(cell, self.out, skipped=not tier.admitted)
        said = plain(tier_said(story, block, position))
        if cell is Cell.SKIPPED_HOLDS:
            return [(f" {drawn.symbol} {VERDICTS[cell]} ", "filtered"), (f" {said}", "text")]
        style = "promoted" if cell is Cell.PROMOTED else "muted" if cell is Cell.BLANK else "text"
        return [(f" {drawn.symbol} ", drawn.style), (padded(VERDICTS[cell], 9), style), (said, "muted")]
