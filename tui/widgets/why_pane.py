"""Why the block under the cursor was served or not: a row a tier, and what it comes to."""

from __future__ import annotations

from kvtier_cli.render.cells import draw_cell
from kvtier_cli.render.console import cell_width, plain
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.story_model import Cell, RequestStory, StoryBlock
from tui.lines import Line, cut, mark_of, padded
from tui.session.views import Moment, Snapshot
from tui.suggest import wider_filter
from tui.widgets.pane import Pane
from tui.words import VERDICTS, comes_to, outcome_word, tier_said, why_title


class WhyPane(Pane):
    """Reads the block under the cursor from the dashboard."""

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.styles.height = self.top + 2 + len(snapshot.topology.tiers) + (1 if self.dashboard.is_tall else 0)
        self.refresh_changed()

    def _block(self) -> tuple[Moment, RequestStory, StoryBlock] | None:
        moment = None if self.snapshot is None else self.snapshot.moment
        story = None if moment is None else moment.story
        if moment is None or story is None or not story.blocks:
            return None
        return moment, story, story.blocks[min(self.dashboard.block, len(story.blocks) - 1)]

    def pane_title(self) -> str:
        found = self._block()
        if found is None:
            return "Why"
        moment, story, block = found
        return f"Block {block.index:,}: on its way" if block.index in moment.pending else why_title(story, block)

    def line(self, y: int, width: int) -> Line:
        found = self._block()
        if found is None:
            said = self.snapshot.moment.said if self.snapshot and self.snapshot.moment else ()
            return [(f" {plain(said[y])}", "text")] if y < len(said) else []
        moment, story, block = found
        if y < len(story.tiers):
            return self._tier_line(story, block, y)
        if y == len(story.tiers):
            return self._end_line(moment, story, block)
        if y == len(story.tiers) + 1:
            return self._try_line(story, block)
        return []

    def _tier_line(self, story: RequestStory, block: StoryBlock, position: int) -> Line:
        tier, cell = story.tiers[position], block.cells[position]
        widest = min(16, max(cell_width(plain(each.name)) for each in story.tiers))
        name = padded(cut(plain(tier.name), widest, mark_of(self.out)), widest)
        leads = cell is Cell.SKIPPED_HOLDS
        line: Line = [(f" {position + 1} {name}  ", "bold" if leads else "text")]
        drawn = draw_cell(cell, self.out, skipped=not tier.admitted)
        verdict = VERDICTS[cell]
        if leads:
            line.append((padded(f" {drawn.symbol} {verdict}", 11), "filtered"))
        else:
            style = "muted" if cell in (Cell.BLANK, Cell.HOLDS, Cell.SKIPPED) else "text"
            line += [(" ", ""), (drawn.symbol, drawn.style or ""), (padded(f" {verdict}", 9), style)]
        said = plain(tier_said(story, block, position, self.short_name))
        return [*line, ("  ", ""), (said, "text" if leads else "muted")]

    def short_name(self, name: str) -> str:
        return self.out.shorten(plain(name), 24)

    def _end_line(self, moment: Moment, story: RequestStory, block: StoryBlock) -> Line:
        arrow = "→" if self.out.unicode else ">"
        answer = moment.pending.get(block.index)
        if answer is not None:
            return [
                (f" {arrow} ", "bold"),
                (answer.value, "pending"),
                (": a step completes it, then it is asked again", "text"),
            ]
        style = "alarm" if block.outcome is Outcome.FILTERED else block.outcome.value
        return [
            (f" {arrow} ", "bold"),
            (outcome_word(block.outcome), style),
            (f": {plain(comes_to(story, block, self.short_name))}", "text"),
        ]

    def _try_line(self, story: RequestStory, block: StoryBlock) -> Line:
        """What would admit the tier, where the filter is what stopped the request."""
        if block.outcome is not Outcome.FILTERED or story.stop is None:
            return []
        tier = next((tier for tier in story.tiers if tier.name == story.stop.tier), None)
        wider = None if tier is None else wider_filter(story.filter, tier.medium, tier.locality)
        if wider is None:
            return []
        text, words = wider
        keys = self.dashboard.key_names
        return [
            ("   try  ", "muted"),
            (keys("filter"), "key"),
            (" then ", "muted"),
            (text, "bold"),
            (f" ({words})      ", "muted"),
            (keys("copy"), "key"),
            (" copy as a command", "muted"),
        ]
