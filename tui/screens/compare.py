"""The comparison: one trace under two filters, what is better and what is worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType

from tui.bindings import COMPARE, bindings
from tui.screens.leaving import LeftOnce
from tui.session.comparison import ComparisonView
from tui.widgets.compare_block import ComparedBlock
from tui.widgets.compare_panes import ComparedRequest, CompareHeader, ComparePane, DifferencesPane, VariantsPane
from tui.widgets.key_bar import KeyBar
from tui.widgets.legend import Legend
from tui.widgets.list_pane import ListPane

if TYPE_CHECKING:
    from tui.app import Dashboard


class CompareScreen(LeftOnce[None]):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(COMPARE)]
    AUTO_FOCUS = "#differences"

    def __init__(self) -> None:
        super().__init__()
        self._serial = 0
        self._request = -1
        self._is_placed = False

    def compose(self) -> ComposeResult:
        yield CompareHeader(id="header")
        yield VariantsPane(id="variants")
        yield ComparedRequest(id="compared")
        yield ComparedBlock(id="compared-block")
        yield DifferencesPane(id="differences")
        yield Legend(id="legend")
        yield KeyBar(COMPARE, id="keys")

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    def show(self, view: ComparisonView) -> None:
        """Draw a view."""
        if view.serial == self._serial:
            return
        self._serial = view.serial
        if view.is_whole and not self._is_placed:
            self._is_placed = True
            if view.cursor in view.differing:
                self.query_one(DifferencesPane).view = view
                self.query_one(DifferencesPane).look_at(2 * view.differing.index(view.cursor))
        block = self.query_one(ComparedBlock)
        block.styles.height = block.top + 2 + len(view.tape.topology.tiers)
        if view.moments is not None and view.cursor != self._request:
            self._request = view.cursor
            self._put_cursor(view)
        with self.app.batch_update():
            for pane in self.query(ComparePane):
                pane.show_view(view)
            self.query_one(DifferencesPane).show_view(view)

    def is_showing(self, view: ComparisonView) -> bool:
        """Whether that is what is drawn."""
        return self.is_mounted and view.serial == self._serial

    def _put_cursor(self, view: ComparisonView) -> None:
        """On the first block that differs."""
        if view.cursor >= view.compared:
            self._request = -1
            return
        first, second = (side.rows.row(view.cursor).codes for side in view.sides)
        pairs = enumerate(zip(first, second, strict=True))
        at = next((at for at, (one, other) in pairs if one != other), 0)
        self.query_one(ComparedRequest).block = at
        self.query_one(ComparedBlock).block = at

    def _seek(self, request: int) -> None:
        self.dashboard.session.in_comparison(lambda comparison: comparison.seek(request))

    def on_list_pane_chosen(self, event: ListPane.Chosen) -> None:
        event.stop()
        view = self.query_one(DifferencesPane).view
        if view is not None and event.row // 2 < len(view.differing):
            self._seek(view.differing[event.row // 2])

    def on_compared_request_block_moved(self, event: ComparedRequest.BlockMoved) -> None:
        event.stop()
        block = self.query_one(ComparedBlock)
        block.block = event.block
        block.refresh()

    def action_difference(self, by: int) -> None:
        pane = self.query_one(DifferencesPane)
        view = pane.view
        if view is None or not view.differing:
            return
        at = pane.cursor // 2
        here = at < len(view.differing) and view.differing[at] == view.cursor
        at = max(0, min(at + (by if here else 0), len(view.differing) - 1))
        pane.look_at(2 * at)
        self._seek(view.differing[at])

    def action_swap(self) -> None:
        self._request = -1
        self.dashboard.session.in_comparison(lambda comparison: comparison.swap())

    def action_sort(self) -> None:
        self.dashboard.session.in_comparison(lambda comparison: comparison.sort())
        self.query_one(DifferencesPane).look_at(0)

    def action_edit_filter(self) -> None:
        self.dashboard.ask_compare()

    def action_export(self) -> None:
        self.dashboard.ask_export()

    def action_help(self) -> None:
        self.dashboard.show_help()

    def action_back(self) -> None:
        self.dashboard.session.end_comparison()
        self.dismiss()

    def action_quit(self) -> None:
        self.app.exit()
