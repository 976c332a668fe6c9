"""The panes of the comparison: the totals, the two outcomes of the request, and the requests that differ."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.style import Style
from textual.binding import BindingType
from textual.message import Message

from kvtier_cli.render.cells import Drawn, draw_outcome
from kvtier_cli.render.console import plain
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.tiering.filters import ALL
from tui.bindings import MOVES, bindings
from tui.lines import TEN, Line, cells_line, cut, mark_of, padded, spaced, width_of
from tui.session.comparison import ComparisonView, VariantView
from tui.session.rows import outcome_of, promoted_from
from tui.widgets.list_pane import ListPane
from tui.widgets.pane import Pane

_SERVED = (Outcome.PRIMARY, Outcome.PROMOTED)
_NAMES = ("A", "B")


class ComparePane(Pane):
    """Draws from a `ComparisonView`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: ComparisonView | None = None

    def show_view(self, view: ComparisonView) -> None:
        """Draw another view."""
        self.view = view
        self.refresh_changed()


def served(code: int) -> bool:
    """Whether a block with this code was served."""
    return outcome_of(code) in _SERVED


def difference(first: int, second: int) -> str:
    """What the second outcome of a block is beside the first: `+` better, `-` worse, `~` other, a blank for equal."""
    if first == second:
        return " "
    if served(first) != served(second):
        return "+" if served(second) else "-"
    return "~"


class CompareHeader(ComparePane):
    """The first line."""

    HAS_TITLE = False

    def line(self, y: int, width: int) -> Line:
        line: Line = [(" kvtier ", "badge"), (" compare  ", "bold")]
        view = self.view
        if view is None:
            return line
        line += [(plain(cut(view.tape.source.name.rpartition("/")[2], 30)), "text")]
        line += [("   request ", "muted"), (f"{view.cursor:,}/{view.total:,}", "text")]
        if view.is_whole:
            return [*line, ("   both replayed", "muted")]
        return [*line, (f"   replayed {100 * view.compared // max(view.total, 1)} %", "muted")]


class VariantsPane(ComparePane):
    """The totals, and B minus A: shares in points, counts in numbers and percent."""

    def pane_title(self) -> str:
        return "Variants"

    def line(self, y: int, width: int) -> Line:
        view = self.view
        if view is None or y > 3:
            return []
        columns = self._columns(view, width)
        name = max(12, min(30, width - sum(cells for _, cells, *_ in columns) - 5))
        if y == 0:
            heads = "".join(padded(head, cells, ">") for head, cells, *_ in columns)
            return [("    " + padded("filter", name) + heads, "muted")]
        if y == 3:
            label = "B minus A (shares: points)" if name >= 26 else "B minus A"
            line: Line = [("    " + padded(cut(label, name), name), "muted")]
            for _, cells, first, second, is_share in columns:
                line.append(_delta(first, second, cells, is_share=is_share))
            return line
        side = view.sides[y - 1]
        line = [(f" {_NAMES[y - 1]} ", "badge_plain"), (" " + padded(cut(plain(side.text), name), name), "text")]
        for head, cells, first, second, is_share in columns:
            value = (first, second)[y - 1]
            text = "-" if value is None else f"{100 * value:.1f}%" if is_share else f"{value:,}"
            style = "alarm_plain" if head == "lost" and value else "text"
            line.append((padded(text, cells, ">"), style))
        return line

    def _columns(self, view: ComparisonView, width: int) -> list[tuple[str, int, Any, Any, bool]]:
        """Head, cells, the values of both sides, and whether they are shares of all blocks."""
        figures = [side.figures for side in view.sides]

        def of_all(key: str) -> list[float | None]:
            return [found["rates"][f"{key}_of_all"]["value"] for found in figures]

        columns: list[tuple[str, int, Any, Any, bool]] = [_column("served", 10, of_all("served"), is_share=True)]
        for name in figures[0]["served_by_tier"]:
            head = self.out.shorten(plain(name), 8)
            columns.append(_column(head, max(9, len(head) + 2), of_all(name), is_share=True))
        columns.append(_column("lost", 9, [found["lost_to_filter"] for found in figures]))
        evicted = [found["blocks_evicted_by_stores"] + found["blocks_evicted_by_promotions"] for found in figures]
        columns.append(_column("evicted", 11, evicted))
        columns.append(_column("stored", 11, [found["blocks_stored"] for found in figures]))
        if all(found["bytes"] for found in figures):
            moved = [sum(sum(tier.values()) for tier in found["bytes"].values()) // (1 << 30) for found in figures]
            columns.append(_column("moved GiB", 11, moved))
        while sum(cells for _, cells, *_ in columns) > width - 18 and len(columns) > 2:
            columns.pop()
        return columns


def _column(head: str, cells: int, values: list[Any], *, is_share: bool = False) -> tuple[str, int, Any, Any, bool]:
    return head, cells, values[0], values[1], is_share


def _delta(first: Any, second: Any, cells: int, *, is_share: bool) -> tuple[str, str]:
    if first is None or second is None:
        return padded("-", cells, ">"), "muted"
    change = second - first
    if is_share:
        text = f"{100 * change:+.1f}"
        good = change > 0.0005
        return padded(text, cells, ">"), "good_bold" if good else "alarm_plain" if change < -0.0005 else "muted"
    percent = f"{100 * change / first:+.0f}%" if first else ""
    text = f"{change:+,}"
    if percent and len(text) + len(percent) + 2 <= cells:
        text += f" {percent}"
    return padded(text, cells, ">"), "text" if change else "muted"


class ComparedRequest(ComparePane, can_focus=True):
    """The outcomes of one request under both, what is better and worse between them, and where B loaded from."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MOVES)]

    class BlockMoved(Message):
        """The cursor is on another block."""

        def __init__(self, block: int) -> None:
            self.block = block
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.block = 0

    def _codes(self) -> tuple[bytes, bytes] | None:
        view = self.view
        if view is None or view.cursor >= view.compared:
            return None
        first, second = (side.rows.row(view.cursor).codes for side in view.sides)
        return first, second

    def pane_title(self) -> str:
        view, codes = self.view, self._codes()
        if view is None or codes is None:
            return "Request"
        marks = [difference(*pair) for pair in zip(*codes, strict=True)]
        differ = sum(mark != " " for mark in marks)
        label = plain(view.tape.label(view.cursor))
        if not differ:
            return f"Request {label}: no block differs"
        said = [f"{marks.count('+')} better in B"] * ("+" in marks) + [f"{marks.count('-')} worse in B"] * (
            "-" in marks
        )
        return ", ".join([f"Request {label}: {differ} of {len(marks)} blocks differ", *said])

    def line(self, y: int, width: int) -> Line:
        view, codes = self.view, self._codes()
        if view is None or codes is None:
            return [(" replaying ...", "muted")] if y == 0 else []
        left = min(34, max(22, width // 4))
        fits = max((width - left - 1) // (TEN + 1), 1) * TEN
        first = max(0, (self.block // TEN) * TEN - fits + TEN) if self.block >= fits else 0
        total = len(codes[0])
        end = min(first + fits, total)
        if y == 0:
            numbers = "".join(padded(f"{at:,}", TEN + 1) for at in range(first, end, TEN))
            return [(" " * left + numbers, "muted")]
        cut_mark: Line = [(self.symbol("cut"), "bold")] if end < total else []
        if y in (1, 3):
            side = 0 if y == 1 else 1
            cells = [draw_outcome(outcome_of(code), self.out) for code in codes[side][first:end]]
            count = f"{sum(map(served, codes[side])):,}/{total:,}"
            name = padded(cut(plain(view.sides[side].text), left - 14, mark_of(self.out)), left - 14)
            head: Line = [(f" {_NAMES[side]} ", "bold"), (name, "bold"), (padded(count, 9, ">") + "  ", "text")]
            return [*head, *cells_line(spaced(cells, start=first)), *cut_mark]
        if y == 2:
            marks = [difference(*pair) for pair in zip(codes[0][first:end], codes[1][first:end], strict=True)]
            styles = {"+": "good_bold", "-": "alarm", "~": "bold"}
            drawn = [Drawn(mark, styles.get(mark, "")) for mark in marks]
            return [(padded(" better in B", left), "muted"), *cells_line(spaced(drawn, start=first))]
        if y == 4:
            return self._sources(view, codes[1][first:end], first, left)
        return []

    def _sources(self, view: ComparisonView, codes: bytes, first: int, left: int) -> Line:
        names = list(view.sides[1].figures["served_by_tier"])
        letters = _letters(names)
        drawn = []
        for code in codes:
            tier = promoted_from(code)
            if outcome_of(code) is Outcome.PRIMARY:
                drawn.append(Drawn(letters[0], "primary"))
            else:
                drawn.append(Drawn() if tier is None else Drawn(letters[tier + 1], "promoted"))
        cells = cells_line(spaced(drawn, start=first))
        words = "  ".join(f"{letter} {plain(name)}" for letter, name in zip(letters, names, strict=True))
        return [(padded(" B loaded from", left), "muted"), *cells, (f"   {words}", "muted")]

    def _has_cursor(self, y: int) -> bool:
        return y in (1, 2, 3)

    def line_style(self, y: int) -> Style | None:
        return None

    def go(self, block: int) -> None:
        codes = self._codes()
        if codes is not None and codes[0]:
            self.block = max(0, min(block, len(codes[0]) - 1))
            self.refresh()
            self.post_message(self.BlockMoved(self.block))

    def action_left(self) -> None:
        self.go(self.block - 1)

    def action_right(self) -> None:
        self.go(self.block + 1)

    def action_up(self) -> None:
        """Up and down move in the list."""

    def action_down(self) -> None:
        """Up and down move in the list."""

    def action_page(self, pages: int) -> None:
        self.go(self.block + pages * 5 * TEN)

    def action_top(self) -> None:
        self.go(0)

    def action_bottom(self) -> None:
        self.go(1 << 40)

    def action_g(self) -> None:
        if self.dashboard.second_g():
            self.go(0)

    def action_choose(self) -> None:
        """It is shown already."""


def _letters(names: list[str]) -> list[str]:
    """A letter a name: its first, unless that is taken."""
    letters: list[str] = []
    for name in names:
        options = [char for char in plain(name).lower() if char.isalnum()] + list("123456789")
        letters.append(next((char for char in options if char not in letters), "?"))
    return letters


class DifferencesPane(ListPane):
    """Two lines a request: under A, and under B with the change. What is equal in both is grey."""

    EACH = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: ComparisonView | None = None

    def show_view(self, view: ComparisonView) -> None:
        self.view = view
        self.refresh_changed()

    def pane_title(self) -> str:
        view = self.view
        if view is None:
            return "Differences"
        order = "largest change first" if view.by_size else "in their order"
        return f"{len(view.differing):,} of {view.compared:,} requests differ ({order}; what is equal is grey)"

    @property
    def count(self) -> int:
        return 0 if self.view is None else 2 * len(self.view.differing)

    def row(self, index: int, width: int) -> Line:
        view = self.view
        if view is None:
            return []
        at, side = divmod(index, 2)
        request = view.differing[at]
        here = request == view.cursor
        rows = [variant.rows.row(request) for variant in view.sides]
        mark = ("►" if self.out.unicode else ">") if here and not side else " "
        name = "" if side else cut(plain(view.tape.label(request)), 8, mark_of(self.out))
        line: Line = [(mark, "bold"), (padded(name, 9), "bold" if here else "text"), (f"{_NAMES[side]} ", "muted")]
        line.append((padded(f"{rows[side].served:,}/{rows[side].blocks:,}", 9, ">"), "text"))
        change = view.change(request)
        words = f"{change:+,}" if side else ""
        line.append((padded(words, 7, ">") + "   ", "good_bold" if change > 0 else "alarm"))
        return [*line, *self._cells(view, rows[side].codes, rows[1 - side].codes, width - width_of(line))]

    def _cells(self, view: ComparisonView, codes: bytes, other: bytes, room: int) -> Line:
        fits = max(room - 1, 1)
        shown = fits - (fits - 1) // (TEN + 1)
        drawn = []
        for code, code_there in zip(codes[:shown], other[:shown], strict=False):
            cell = draw_outcome(outcome_of(code), self.out)
            drawn.append(Drawn(cell.symbol, "equal") if code == code_there else cell)
        line = cells_line(spaced(drawn)[:fits])
        return [*line, (self.symbol("cut"), "bold")] if len(codes) > shown else line

    def go(self, index: int) -> None:
        # The cursor stands on the first of a request's two lines.
        step = index - self.cursor
        super().go(index + (1 if step == 1 and index % 2 else 0) - (1 if index % 2 and step != 1 else 0))


def skipped_by(side: VariantView, view: ComparisonView) -> str:
    """The tiers that a side's filter skips, in words."""
    if side.parse is None or side.parse.filter is ALL:
        return "none"
    tiers = view.tape.topology.tiers
    names = [tier.name for tier in tiers if not side.parse.filter.admits(tier.medium, tier.locality)]
    return ", ".join(names) or "none"
