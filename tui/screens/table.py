"""One table: sorted by a column, searched as one types, a request of it shown with enter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from kvtier_cli.render.console import cell_width
from tui.bindings import Key, bindings
from tui.lines import Line, cut, mark_of, padded
from tui.screens.leaving import LeftOnce
from tui.screens.prompt import PromptInput
from tui.screens.sheet import Lines
from tui.tables import Table, order_of, shown_cell
from tui.widgets.key_bar import KeyBar
from tui.widgets.list_pane import ListPane

if TYPE_CHECKING:
    from tui.app import Dashboard

KEYS = (
    Key("table-sort", "o", "sort(1)", "sort by the next column", "table", "sort by the next column"),
    Key("table-sort-back", "O", "sort(-1)", "sort by the column before", "table"),
    Key("table-reverse", "r", "reverse", "the other way round", "table", "reverse"),
    Key("table-search", "slash", "search", "search", "table", "search"),
    Key("table-back", "escape,q", "back", "back", "table", "back"),
)

_WIDEST = 40
_MEASURED = 200
SORTED = 200_000
"""Rows that are sorted while one waits."""


class TablePane(ListPane):
    """The rows in their order."""

    HEAD = 1

    def __init__(self, table: Table) -> None:
        super().__init__(id="table")
        self.table = table
        self.order: Sequence[int] = range(table.count)
        self.column: int | None = None
        self.reverse = False
        self._measured: tuple[tuple[int, int, int | None], list[int]] | None = None

    def pane_title(self) -> str:
        found = len(self.order)
        part = "" if found == self.table.count else f"{found:,} of "
        return f"{self.table.title} ({part}{self.table.count:,})"

    @property
    def count(self) -> int:
        return len(self.order)

    def _widths(self) -> list[int]:
        """Of the columns, by the rows that are seen and some behind them."""
        seen = self.first, len(self.order), self.column
        if self._measured is None or self._measured[0] != seen:
            self._measured = seen, self._measure()
        return self._measured[1]

    def _measure(self) -> list[int]:
        rows = [self.table.row(index) for index in self.order[self.first : self.first + _MEASURED]]
        widths = []
        for at, head in enumerate(self.table.heads):
            cells = [cell_width(shown_cell(row[at], head)) for row in rows]
            widths.append(min(_WIDEST if at < len(self.table.heads) - 1 else 200, max([cell_width(head) + 2, *cells])))
        return widths

    def _is_number(self, at: int) -> bool:
        rows = (self.table.row(index)[at] for index in self.order[:20])
        return all(isinstance(cell, int | float) or cell is None for cell in rows)

    def head(self, y: int, width: int) -> Line:
        line: Line = [(" ", "")]
        for at, (head, cells) in enumerate(zip(self.table.heads, self._widths(), strict=True)):
            arrow = "" if at != self.column else (" ▼" if self.reverse else " ▲") if self.out.unicode else " v"
            align = ">" if self._is_number(at) else "<"
            line.append((padded(head + arrow, cells, align) + "  ", "bold" if at == self.column else "muted"))
        return line

    def row(self, index: int, width: int) -> Line:
        row = self.table.row(self.order[index])
        line: Line = [(" ", "")]
        for at, (head, cells) in enumerate(zip(self.table.heads, self._widths(), strict=True)):
            align = ">" if self._is_number(at) else "<"
            text = cut(shown_cell(row[at], head), cells, mark_of(self.out))
            line.append((padded(text, cells, align) + "  ", "bold" if not at else "text"))
        return line

    def go(self, index: int) -> None:
        self.look_at(index)

    def action_choose(self) -> None:
        if self.count:
            self.post_message(self.Chosen(self, self.cursor))


class TableScreen(LeftOnce[int]):
    """Answers with the request of the row that was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KEYS)]
    AUTO_FOCUS = "#table"

    def __init__(self, table: Table) -> None:
        super().__init__()
        self._table = table

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    def compose(self) -> ComposeResult:
        yield TablePane(self._table)
        with Horizontal(id="search-row"):
            label = Lines([[(" search ", "key")]], id="label")
            label.styles.width = 8
            yield label
            yield PromptInput(compact=True, id="input")
        yield KeyBar(KEYS, id="keys")

    def _order(self) -> None:
        pane = self.query_one(TablePane)
        words = self.query_one(PromptInput).value.lower().split()
        if self._table.count > SORTED and (words or pane.column is not None):
            self.notify(f"Tables of more than {SORTED:,} rows are not sorted or searched.", markup=False)
            return
        pane.order = order_of(self._table, words, pane.column, reverse=pane.reverse)
        pane.look_at(0)

    def action_sort(self, by: int) -> None:
        pane = self.query_one(TablePane)
        columns = len(self._table.heads)
        at = -1 if pane.column is None else pane.column
        at += by
        pane.column = None if at < 0 or at >= columns else at
        self._order()

    def action_reverse(self) -> None:
        pane = self.query_one(TablePane)
        pane.reverse = not pane.reverse
        self._order()

    def action_search(self) -> None:
        self.add_class("-searching")
        row = self.query_one("#search-row")
        row.display = True
        self.set_focus(self.query_one(PromptInput))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._order()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(TablePane).focus()

    def on_list_pane_chosen(self, event: ListPane.Chosen) -> None:
        event.stop()
        pane = self.query_one(TablePane)
        position = self._table.position(pane.order[event.row])
        if position is not None:
            self.dismiss(position)

    def action_back(self) -> None:
        box = self.query_one(PromptInput)
        if self.has_class("-searching"):
            box.value = ""
            self.remove_class("-searching")
            self.query_one("#search-row").display = False
            self.query_one(TablePane).focus()
            return
        self.dismiss()
