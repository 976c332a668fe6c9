"""The ladder: a row a tier in the order asked, a column a block, the outcome below, and above it what happened."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip

from kvtier_cli.render.cells import Drawn, draw_cell, draw_outcome
from kvtier_cli.render.console import cell_width, plain
from kvtier_cli.replay.reasons import sentences
from kvtier_cli.replay.story_model import RequestStory, StoryBlock
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import LookupResult
from tui.bindings import MOVES, bindings
from tui.lines import TEN, Line, cells_line, cut, level_bar, mark_of, padded, spaced, width_of
from tui.session.views import Moment, Snapshot, TierView
from tui.widgets.pane import Pane

_PENDING = {LookupResult.HIT_PENDING: "pending", LookupResult.RETRY: "retry"}


class RequestPane(Pane, can_focus=True):
    """Lines: the sentence, the heads, the tiers, the outcome, and the name of the block under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MOVES)]

    class BlockMoved(Message):
        """The cursor is on another block."""

        def __init__(self, block: int) -> None:
            self.block = block
            super().__init__()

    class OtherRequest(Message):
        """The user wants so many requests further on."""

        def __init__(self, by: int) -> None:
            self.by = by
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.block = 0
        self.draft: FilterParse | None = None
        """The filter that is being typed: the verdicts show what it would change."""
        self._first = 0
        self._left = 0
        self._fits = TEN

    # Data

    @property
    def moment(self) -> Moment | None:
        return None if self.snapshot is None else self.snapshot.moment

    @property
    def story(self) -> RequestStory | None:
        moment = self.moment
        return None if moment is None else moment.story

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        tiers = 1 + len(snapshot.topology.tiers)
        self.styles.height = self.top + 3 + tiers + (1 if self.dashboard.is_tall else 0)
        self.refresh()

    def pane_title(self) -> str:
        snapshot, moment = self.snapshot, self.moment
        if snapshot is None or moment is None:
            return "Request"
        title = plain(moment.label)
        title = f"Request {title}" if moment.story is not None else title
        return f"{title} ({snapshot.busy} to {snapshot.cursor:,})" if moment.index != snapshot.cursor else title

    # Drawing

    def render_line(self, y: int) -> Strip:
        if y == 0:
            self._lay_out(self.size.width)
        return self._under_cursor(super().render_line(y), y - self.top)

    def _columns(self, width: int) -> list[tuple[str, int, str]]:
        """Head, cells and alignment of what stands left of the blocks."""
        tiers = self.moment.tiers if self.moment else ()
        names = [tier.name for tier in tiers]
        widest = max([4, *(cell_width(plain(name)) for name in names)])
        columns = [("tier", min(widest, 8 if width < 100 else 16), "<")]
        if width >= 100:
            columns.append(("declared", max([8, *(len(tier.declares) for tier in tiers)]), "<"))
        columns.append(("filter", 9, "<"))
        if width >= 100:
            columns.append(("holds", max([5, *(len(self._holds(tier)) for tier in tiers)]), "<"))
        if width >= 160:
            columns.append(("", 10, "<"))
        if width >= 50:
            columns.append(("full", 5, ">"))
        if width >= 60:
            columns.append(("of asked", 8, ">"))
        if width >= 160:
            columns.append(("of all", 6, ">"))
        return columns

    def _lay_out(self, width: int) -> None:
        self._left = 1 + sum(cells + 2 for _, cells, _ in self._columns(width))
        tens = max((width - self._left - 1) // (TEN + 1), 1)
        self._fits = tens * TEN
        if self.block < self._first or self.block >= self._first + self._fits:
            self._first = max(0, (self.block // TEN - tens // 2) * TEN)
        story = self.story
        if story is not None and len(story.blocks) <= self._fits:
            self._first = 0

    def line(self, y: int, width: int) -> Line:
        moment = self.moment
        if moment is None:
            fault = None if self.snapshot is None else self.snapshot.fault
            said = " replaying ..." if fault is None else f" Nothing was replayed. {plain(fault.message)}"
            return [(said, "muted")] if y == 0 else []
        if y == 0:
            return self._headline(moment, width)
        if y == 1:
            return self._heads(width)
        tier = y - 2
        if tier < len(moment.tiers):
            return self._tier_line(moment, tier, width)
        if tier == len(moment.tiers):
            return self._outcome_line(moment, width)
        return self._cursor_line(moment)

    def _headline(self, moment: Moment, width: int) -> Line:
        story = self.story
        if story is None:
            return [(" " + (" ".join(map(plain, moment.said)) or "No request was looked up yet."), "text")]
        said = [plain(text) for text in sentences(story, self.short_name)]
        line: Line = [(" ", "")]
        if moment.pending:
            at, answer = next(iter(moment.pending.items()))
            symbol = self.symbol(_PENDING[answer])
            return [*line, (f"{symbol} ", "pending"), (f"Block {at:,} is on its way: the lookup goes on.", "bold")]
        if story.stop is not None:
            drawn = draw_outcome(story.stop.outcome, self.out)
            filtered = story.stop.outcome.value == "filtered"
            line += [(drawn.symbol, "alarm" if filtered else drawn.style), (" ", ""), (said.pop(0), "bold")]
        for text in said:
            room = width - width_of(line) - 2
            if cell_width(text) > room:
                if text is said[0]:
                    line.append((("  " if len(line) > 1 else "") + _short_served(story, room), "text"))
                break
            line.append((("  " if len(line) > 1 else "") + text, "text"))
        return line

    def short_name(self, name: str) -> str:
        return self.out.shorten(plain(name), 16)

    def _heads(self, width: int) -> Line:
        text = " " + "".join(padded(head, cells, align) + "  " for head, cells, align in self._columns(width))
        numbers = ""
        story = self.story
        if story is not None:
            end = min(self._first + self._fits, len(story.blocks))
            numbers = "".join(padded(f"{number:,}", TEN + 1) for number in range(self._first, end, TEN))
        return [(padded(text, self._left) + numbers, "muted")]

    def _tier_line(self, moment: Moment, position: int, width: int) -> Line:
        tier, story = moment.tiers[position], self.story
        line: Line = [(" ", "")]
        for head, cells, align in self._columns(width):
            line += self._column(tier, position, head, cells, align)
            line.append(("  ", ""))
        if story is not None:
            blocks = self._visible(story)
            skipped = not story.tiers[position].admitted
            cells_drawn = [draw_cell(block.cells[position], self.out, skipped=skipped) for block in blocks]
            line += self._cells(cells_drawn, story)
        return line

    def _column(self, tier: TierView, position: int, head: str, cells: int, align: str) -> Line:
        if head == "tier":
            return [(padded(cut(plain(tier.name), cells, mark_of(self.out)), cells), "bold")]
        if head == "declared":
            return [(padded(tier.declares, cells), "muted")]
        if head == "filter":
            return self._verdict(tier, position, cells)
        if head == "holds":
            return [(padded(self._holds(tier), cells), "muted")]
        if head == "full":
            full = tier.full
            unlimited = self.symbol("gave_up") if self.out.unicode else "-"
            text = unlimited if full is None else f"{100 * full:.0f}%"
            return [(padded(text, cells, align), "muted" if full is None else "text")]
        if head == "":
            if tier.full is None:
                return [(" " * cells, "")]
            solid, rest = level_bar(tier.full, cells, self.out)
            return [(solid, "primary" if position == 0 else "equal"), (rest, "rule")]
        share = tier.of_asked if head == "of asked" else tier.of_all
        text = "-" if share is None else f"{100 * share:.1f}%"
        return [(padded(text, cells, align), "muted" if share is None else "text")]

    def _holds(self, tier: TierView) -> str:
        if tier.capacity is not None:
            return f"{tier.resident:,}/{tier.capacity:,}"
        return f"{tier.resident:,}" + (f"/{self.symbol('gave_up')}" if self.out.unicode else "")

    def _verdict(self, tier: TierView, position: int, cells: int) -> Line:
        if position == 0:
            return [(padded("always", cells), "muted")]
        spec = self.snapshot.topology.tiers[position - 1] if self.snapshot else None
        parse = self.snapshot.filter.parse if self.snapshot else None
        story = self.story
        admitted = story.tiers[position].admitted if story is not None else True
        if story is None and parse is not None and spec is not None:
            admitted = parse.filter.admits(spec.medium, spec.locality)
        if self.draft is not None and spec is not None:
            would = self.draft.filter.admits(spec.medium, spec.locality)
            if would != admitted:
                arrow = "→" if self.out.unicode else ">"
                return [(padded(f"{arrow}{'admitted' if would else 'SKIPPED'}", cells), "bold" if would else "alarm")]
        if tier.offline and admitted:
            return [(padded("offline", cells), "bad")]
        return [(padded("admitted", cells), "good")] if admitted else [(" SKIPPED ", "filtered")]

    def _visible(self, story: RequestStory) -> tuple[StoryBlock, ...]:
        return story.blocks[self._first : self._first + self._fits]

    def _cells(self, drawn: list[Drawn], story: RequestStory) -> Line:
        line = cells_line(spaced(drawn, start=self._first))
        if self._first + self._fits < len(story.blocks):
            line.append((self.symbol("cut"), "bold"))
        return line

    def _outcome_line(self, moment: Moment, width: int) -> Line:
        story = self.story
        if story is None:
            return []
        line: Line = [(" ", ""), (padded("=", self._columns(width)[0][1] + 2), "bold"), ("outcome  ", "bold")]
        served, total = story.served, len(story.blocks)
        text = f"{served:,} of {total:,}"
        tokens = story.tokens(served)
        if moment.pending:
            text = f"{len(moment.pending):,} on the way"
        elif tokens is not None and width >= 100:
            text += f" blocks, {tokens:,} of {story.tokens(total):,} tokens"
        line.append(
            (padded(cut(text, self._left - width_of(line) - 1, mark_of(self.out)), self._left - width_of(line)), "bold")
        )
        drawn = [
            Drawn(self.symbol(_PENDING[moment.pending[block.index]]), "pending")
            if block.index in moment.pending
            else draw_outcome(block.outcome, self.out)
            for block in self._visible(story)
        ]
        return [*line, *self._cells(drawn, story)]

    def _cursor_line(self, moment: Moment) -> Line:
        story = self.story
        if story is None or not story.blocks:
            return []
        block = story.blocks[min(self.block, len(story.blocks) - 1)]
        label = f" block {block.index:,}"
        if block.name != str(block.index):
            label += f" ({self.out.shorten(plain(block.name), 24)})"
        label += f"  {block.outcome.value.replace('_', ' ')}"
        at = self._column_of(block.index)
        mark = "▲" if self.out.unicode else "^"
        room = self.size.width - at - 1
        if room < cell_width(label) + 1:
            return [(" " * max(at - cell_width(label) - 1, 0), ""), (f"{label.strip()} ", "muted"), (mark, "bold")]
        return [(" " * at, ""), (mark, "bold"), (label, "muted")]

    def _column_of(self, block: int) -> int:
        at = block - self._first
        return self._left + at + at // TEN

    def _under_cursor(self, strip: Strip, y: int) -> Strip:
        """The cursor is a column: the background of its cell changes, and nothing else."""
        story, moment = self.story, self.moment
        if story is None or moment is None or not story.blocks or not 2 <= y <= 2 + len(moment.tiers):
            return strip
        at = self._column_of(min(self.block, len(story.blocks) - 1))
        if not self._left <= at < self.size.width:
            return strip
        cursor = self.palette.cursor_style
        cell = [
            Segment(text, style if text in self._filled else (style or Style()) + cursor)
            for text, style, _ in strip.crop(at, at + 1)
        ]
        return Strip.join([strip.crop(0, at), Strip(cell, 1), strip.crop(at + 1)])

    @property
    def _filled(self) -> tuple[str, ...]:
        """Cells with a background of their own, which leads the eye: it stays."""
        return (self.symbol("filtered"),)

    # Moving

    def go(self, block: int) -> None:
        """Put the cursor on a block."""
        story = self.story
        if story is None or not story.blocks:
            return
        self.block = max(0, min(block, len(story.blocks) - 1))
        self.refresh()
        self.post_message(self.BlockMoved(self.block))

    def action_left(self) -> None:
        self.go(self.block - 1)

    def action_right(self) -> None:
        self.go(self.block + 1)

    def action_up(self) -> None:
        self.post_message(self.OtherRequest(-1))

    def action_down(self) -> None:
        self.post_message(self.OtherRequest(1))

    def action_page(self, pages: int) -> None:
        self.go(self.block + pages * self._fits)

    def action_top(self) -> None:
        self.go(0)

    def action_bottom(self) -> None:
        story = self.story
        self.go(len(story.blocks) - 1 if story is not None else 0)

    def action_g(self) -> None:
        if self.dashboard.second_g():
            self.action_top()

    def action_choose(self) -> None:
        """The request is shown already."""

    def on_click(self, event: events.Click) -> None:
        at = event.x - self._left
        if at >= 0:
            self.go(self._first + at - at // (TEN + 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.go(self.block + TEN)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.go(self.block - TEN)


def _short_served(story: RequestStory, room: int) -> str:
    """How much was served, and what the filter cost, as far as `room` cells hold it."""
    served = f"{story.served:,} of {len(story.blocks):,} served"
    lost = f"; {story.lost_to_filter:,} lost to the filter (upper bound)" if story.lost_to_filter else ""
    return next((text for text in (f"{served}{lost}.", f"{served}.") if len(text) <= room), "")
