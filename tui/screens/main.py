"""The main screen: lays the panes out, turns keys into orders to the session, and shows its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from tui import asking
from tui.bindings import FILTER, MAIN, bindings
from tui.session.rows import Mark
from tui.session.session import Session
from tui.session.views import Snapshot
from tui.show_tables import ask_table
from tui.widgets.blocks_pane import BlocksPane
from tui.widgets.events_pane import EventsPane
from tui.widgets.filter_pane import FilterInput, FilterPane
from tui.widgets.header import Header
from tui.widgets.jobs_pane import JobsPane
from tui.widgets.key_bar import KeyBar
from tui.widgets.legend import Legend
from tui.widgets.list_pane import ListPane
from tui.widgets.pane import Pane
from tui.widgets.plots_pane import PlotsPane
from tui.widgets.request_pane import RequestPane
from tui.widgets.requests_pane import RequestsPane
from tui.widgets.timeline import Timeline
from tui.widgets.why_pane import WhyPane

if TYPE_CHECKING:
    from tui.app import Dashboard

_PANES = {"blocks": "blocks", "requests": "requests", "events": "events", "jobs": "jobs", "plots": "plots"}


class MainScreen(Screen[None]):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(MAIN)]
    AUTO_FOCUS = "#request"

    def __init__(self) -> None:
        super().__init__()
        self._shown: Snapshot | None = None

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        yield Timeline(id="timeline")
        yield FilterPane(id="filter")
        yield RequestPane(id="request")
        yield WhyPane(id="why-wide")
        with Horizontal(id="lower"):
            with Vertical(id="left"):
                yield WhyPane(id="why")
                yield BlocksPane(id="blocks")
                yield RequestsPane(id="requests")
            with Vertical(id="right"):
                yield PlotsPane(id="plots")
                yield JobsPane(id="jobs")
                yield EventsPane(id="events")
        yield Legend(id="legend")
        yield KeyBar(MAIN, id="keys")
        yield Static("This terminal is too small: 40 columns and 12 lines are enough.", id="too-small")

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    @property
    def session(self) -> Session:
        return self.dashboard.session

    @property
    def request_pane(self) -> RequestPane:
        return self.query_one("#request", RequestPane)

    # What is shown

    def show(self, snapshot: Snapshot) -> None:
        """Draw a snapshot. Where it differs only by how far the replay is, what does not show that is left alone."""
        before, self._shown = self._shown, snapshot
        other = before is None or _what_is_shown(before) != _what_is_shown(snapshot)
        with self.app.batch_update():
            for pane in self.query(Pane):
                if other or isinstance(pane, Header | Timeline | RequestsPane):
                    pane.show(snapshot)
                else:
                    pane.snapshot = snapshot
            for filter_pane in self.query(FilterPane):
                filter_pane.snapshot = snapshot

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)  # what has room now depends on the size

    def redraw(self) -> None:
        """The same again, in other colours or with another cursor. The panes may be gone by now, one after another."""
        snapshot, self._shown = self._shown, None
        if snapshot is not None:
            self.show(snapshot)
        for pane in self.query(Pane):
            pane.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "edit_filter":  # comes before what is typed: not into a line that is being typed in
            return not isinstance(self.focused, FilterInput)
        return True

    # Play

    def action_play(self) -> None:
        self.session.toggle_play()

    def action_step(self, by: int) -> None:
        self.dashboard.step(by)

    def action_move(self, by: int) -> None:
        self.session.move(by)

    def action_speed(self, by: int) -> None:
        self.session.change_speed(by)

    def action_pass(self) -> None:
        self.dashboard.next_pass()

    # Jump

    def action_jump(self, mark: str, backwards: bool = False) -> None:
        self.session.jump(Mark[mark], backwards=backwards)

    def action_find(self) -> None:
        self.dashboard.ask_find()

    def action_find_again(self, backwards: bool = False) -> None:
        self.dashboard.find_again(backwards=backwards)

    def action_go_to(self) -> None:
        self.dashboard.ask_go_to()

    # Ask

    def action_edit_filter(self) -> None:
        snapshot = self.session.snapshot
        text = "own" if snapshot.filter.own else snapshot.filter.text
        self.query_one("#keys", KeyBar).set_keys(FILTER)
        self.query_one(FilterPane).edit(text, self.dashboard.used_filters)

    def on_filter_input_ended(self, event: FilterInput.Ended) -> None:
        event.stop()
        if self.dashboard.apply_filter(event.draft, event.replay):
            self.query_one(FilterPane).leave()
            self.query_one("#keys", KeyBar).set_keys(MAIN)
            self.request_pane.focus()

    def on_filter_pane_drafted(self, event: FilterPane.Drafted) -> None:
        pane = self.request_pane
        pane.draft = None if event.draft is None else event.draft.parse
        pane.refresh()

    def action_presets(self) -> None:
        asking.ask_preset(self.dashboard)

    def action_compare(self) -> None:
        self.dashboard.ask_compare()

    def action_export(self) -> None:
        self.dashboard.ask_export()

    def action_copy(self) -> None:
        asking.copy_command(self.dashboard)

    def action_save_fixture(self) -> None:
        self.dashboard.save_fixture()

    def action_open(self) -> None:
        asking.ask_open(self.dashboard)

    def action_tables(self) -> None:
        ask_table(self.dashboard)

    # Panes

    def action_pane(self, name: str) -> None:
        pane = self.query_one(f"#{_PANES[name]}", Pane)
        self._only("")
        if not self._is_visible(pane):
            self._only(name)
        pane.focus()

    def _only(self, name: str) -> None:
        self._zoom_off()
        for each in ("blocks", "events", "jobs", "plots"):
            self.set_class(each == name, f"-only-{each}")

    def _is_visible(self, pane: Widget) -> bool:
        return all(node.display for node in (pane, *pane.ancestors) if isinstance(node, Widget))

    def action_next_pane(self, by: int = 1) -> None:
        if by > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_zoom(self) -> None:
        focused = self.focused
        if self.has_class("-zoomed"):
            self._zoom_off()
            return
        if focused is None or focused.id is None:
            return
        self.add_class("-zoomed")
        if focused.id == "request":
            self.add_class("-zoom-request")
            return
        self.add_class("-zoom-lower", "-zoom-requests")
        if focused.id != "requests":
            for each in ("blocks", "events", "jobs", "plots"):
                self.set_class(each == focused.id, f"-only-{each}")
            self.remove_class("-zoom-requests")

    def _zoom_off(self) -> None:
        if self.has_class("-zoomed"):
            self.remove_class("-zoomed", "-zoom-request", "-zoom-lower", "-zoom-requests")
            for each in ("blocks", "events", "jobs", "plots"):
                self.remove_class(f"-only-{each}")

    # What panes say

    def on_list_pane_chosen(self, event: ListPane.Chosen) -> None:
        event.stop()
        if event.pane.id == "requests":
            self.session.seek(event.row)
        elif event.pane.id == "blocks":
            self.request_pane.go(event.row)

    def on_request_pane_block_moved(self, event: RequestPane.BlockMoved) -> None:
        event.stop()
        self.dashboard.block = event.block
        for pane in self.query(WhyPane):
            pane.refresh_changed()
        self.query_one("#blocks", BlocksPane).look_at(event.block)

    def on_request_pane_other_request(self, event: RequestPane.OtherRequest) -> None:
        event.stop()
        self.session.move(event.by)

    def on_timeline_sought(self, event: Timeline.Sought) -> None:
        event.stop()
        self.session.seek(event.index)

    # The rest

    def action_help(self) -> None:
        self.dashboard.show_help()

    def action_quit(self) -> None:
        self.app.exit()


def _what_is_shown(snapshot: Snapshot) -> tuple[object, ...]:
    """All of a snapshot but how far the replay is; views are frozen, so their identity is enough."""
    return (
        id(snapshot.moment),
        id(snapshot.listing),
        id(snapshot.fault),
        snapshot.cursor,
        snapshot.filter.text,
        id(snapshot.filter.parse),
        snapshot.said,
        snapshot.busy,
    )
