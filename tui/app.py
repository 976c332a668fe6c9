"""The application: owns the session's thread, the look and what is common to all screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen
from textual.worker import Worker, WorkerState, get_current_worker

from kvtier_cli.errors import KvtierError
from kvtier_cli.render.console import Output, plain
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.traces.options import AS_IT_SAYS
from tui import asking, themes
from tui.bindings import ALL, Key, shown
from tui.palette_commands import Palette, palette_commands
from tui.screens.compare import CompareScreen
from tui.screens.fault import FaultScreen
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.screens.table import TableScreen
from tui.session.filter_draft import draft_of
from tui.session.opening import Asked, Opened, open_asked
from tui.session.passes import at_pass
from tui.session.session import Session
from tui.session.views import Fault, Kind, Moment, Snapshot
from tui.tables import Table
from tui.widgets.filter_pane import FilterPane

PULL = 0.2
"""Seconds between two looks at a replay that runs."""

_BY_ID = {key.id: key for key in ALL}


class Changed(Message):
    """The session has carried out an order."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Changed)


class Dashboard(App[None]):
    """`kvtier dash`. `out` says which symbols can be shown; `theme` names the colours; `asked` is what is open."""

    CSS_PATH = "kvtier.tcss"
    TITLE = "kvtier dash"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as the base declares it
        (0, "-tiny"),
        (40, "-narrow"),
        (110, "-wide"),
        (170, "-huge"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - as the base declares it
        (0, "-tiny"),
        (12, "-low"),
        (22, "-normal"),
        (36, "-tall"),
    ]

    def __init__(
        self,
        session: Session,
        *,
        out: Output | None = None,
        theme: str = themes.DEFAULT,
        keymap: Mapping[str, str] | None = None,
        asked: Asked | None = None,
    ) -> None:
        self.palette = themes.PALETTES[theme]
        super().__init__()
        self.session = session
        self.out = out or Output(color=True)
        self.keymap = dict(keymap or {})
        self.asked = asked or Asked()
        self.remarks: Sequence[str] = ()
        self.on_replayed: Callable[[], None] | None = None
        """Called whenever the replay is seen to be through."""
        self.block = 0
        self.sought = ""
        self.used_filters: list[str] = []
        self._pass: int | None = None
        self._enters: int | None = None
        self._shown: tuple[int, int | None] | None = None
        self._moment_shown: Moment | None = None
        self._fault: Fault | None = None
        self._g_at = 0.0
        for palette in themes.PALETTES.values():
            self.register_theme(themes.theme(palette))
        self.theme = f"kvtier-{theme}"
        self.set_class(not self.out.unicode, "-ascii")
        self.set_keymap(self.keymap)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variables(self.palette)

    def watch_theme(self, theme_name: str) -> None:
        self.palette = themes.PALETTES.get(theme_name.removeprefix("kvtier-"), self.palette)
        main = self.main if self.is_running else None
        if main is not None:
            self.call_after_refresh(main.redraw)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield from palette_commands(self)

    def action_command_palette(self) -> None:
        if self.use_command_palette and not isinstance(self.screen, Palette):
            self.push_screen(Palette(placeholder="Search for commands", id="--command-palette"))

    # The session

    def on_mount(self) -> None:
        self.push_screen(MainScreen())
        self._watch_session()
        self.set_interval(PULL, self.pull)
        for remark in self.remarks:
            self.notify(plain(remark), severity="warning", markup=False, timeout=10)

    def _watch_session(self) -> None:
        self.session.on_change = self._tell_changed
        self.run_worker(self._work, thread=True, exclusive=True, group="session", exit_on_error=False)

    def _tell_changed(self) -> None:
        self.post_message(Changed())

    def _work(self) -> None:
        worker, session = get_current_worker(), self.session
        session.work(lambda: worker.is_cancelled or self.session is not session)

    def on_changed(self) -> None:
        self.pull()

    def on_unmount(self) -> None:
        self.session.on_change = None
        self.session.pause()  # wakes the thread, which then sees that it is over

    @property
    def main(self) -> MainScreen | None:
        """The main screen, whatever is on top of it."""
        return next((screen for screen in self.screen_stack if isinstance(screen, MainScreen)), None)

    def pull(self) -> None:
        """Show the session's latest snapshot, if it is another than the one on show."""
        if not self.is_running:  # it is ending: the screens may have lost their panes already
            return
        comparison = self.session.comparison
        compared = self._compare_screen
        if comparison is not None and compared is not None and compared.is_mounted:
            compared.show(comparison.view)
            self.call_after_refresh(self.session.drawn)
        snapshot, main = self.session.snapshot, self.main
        if snapshot.fault is not self._fault:
            self._fault = snapshot.fault
            if snapshot.fault is not None:
                self.push_screen(FaultScreen(snapshot.fault))
        if main is None or not main.is_mounted or self._shown == (snapshot.serial, self._pass):
            return
        if snapshot.moment is not self._moment_shown:
            self._arrive(snapshot, main)
        self._shown = snapshot.serial, self._pass
        if self.on_replayed is not None and snapshot.is_total and snapshot.known == snapshot.total:
            self.on_replayed()
        if snapshot.moment is not None and self._pass is not None:
            snapshot = replace(snapshot, moment=at_pass(snapshot.moment, self._pass))
        main.show(snapshot)
        self.call_after_refresh(self.session.drawn)

    @property
    def is_up_to_date(self) -> bool:
        """Whether the session's latest snapshot is on show."""
        comparison, compared = self.session.comparison, self._compare_screen
        if comparison is not None and (compared is None or not compared.is_showing(comparison.view)):
            return False
        return self._shown is not None and self._shown[0] == self.session.snapshot.serial

    def _arrive(self, snapshot: Snapshot, main: MainScreen) -> None:
        """Another moment: the cursor goes to its first block that was not served, or to the one looked for."""
        moment = self._moment_shown = snapshot.moment
        if moment is None:
            return
        story = moment.story
        self._pass = self._enters if self._enters is not None and story is not None and story.passes > 1 else None
        self._enters = None
        self.block = _first_block(moment) if snapshot.block is None else snapshot.block
        main.request_pane.block = self.block

    @property
    def _compare_screen(self) -> CompareScreen | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, CompareScreen)), None)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.worker.group == "session" and event.state is WorkerState.ERROR:
            self.notify(f"The replay stopped: {event.worker.error}", severity="error", markup=False)

    # Opening

    def open_file(self, file: str) -> None:
        """Show something else; where it cannot be opened, what is open stays."""
        self._open(replace(self.asked, file=file, workspace=None, reading=AS_IT_SAYS))

    def reopen(self, *, skip_bad: bool = False) -> None:
        """The same again, as it is now on disk."""
        self._open(replace(self.asked, skip_bad=skip_bad or self.asked.skip_bad), at=self.session.snapshot.cursor)

    def _open(self, asked: Asked, *, at: int | None = None) -> None:
        try:
            opened: Opened = open_asked(asked)
        except (KvtierError, OSError) as error:
            hint = getattr(error, "hint", None)
            self.notify(f"{error}{f' {hint}' if hint else ''}", severity="error", markup=False, timeout=10)
            return
        before, self.asked = self.session, opened.asked
        self.session = Session(opened.show, start=opened.start if at is None else at)
        before.on_change = None  # its thread sees that it is over, and its files are closed when they are dropped
        self._shown = self._moment_shown = self._fault = self._pass = None
        self._watch_session()
        for remark in opened.show.warnings:
            self.notify(plain(remark), severity="warning", markup=False)

    # What the screens ask

    def key_names(self, binding: str) -> str:
        """How the key of a binding is written."""
        key: Key = _BY_ID[binding]
        return shown(key, self.keymap)

    @property
    def is_tall(self) -> bool:
        return self.size.height >= 36

    @property
    def screen_is_editing(self) -> bool:
        main = self.main
        return main is not None and any(pane.has_class("-editing") for pane in main.query(FilterPane))

    def pass_shown(self, story: RequestStory) -> str:
        """Which pass of how many."""
        return f"{self._pass or story.passes}/{story.passes}"

    def second_g(self) -> bool:
        """Whether this is the second g of two."""
        now = monotonic()
        second = now - self._g_at < 1
        self._g_at = 0.0 if second else now
        return second

    def step(self, by: int) -> None:
        """On to the next pass, or into the next request's first; or back."""
        passes = self._passes
        at = self._pass or passes
        if 1 <= at + by <= passes and passes > 1:
            self._set_pass(at + by)
        else:
            self._enters = 1 if by > 0 else None
            self.session.move(by)

    def next_pass(self) -> None:
        """The next pass of the request, round the end."""
        self._set_pass((self._pass or self._passes) % max(self._passes, 1) + 1)

    @property
    def _passes(self) -> int:
        moment = self._moment_shown
        return 1 if moment is None or moment.story is None else moment.story.passes

    def _set_pass(self, number: int) -> None:
        self._pass = None if number >= self._passes else number
        self.pull()

    def apply_filter(self, text: str, replay: str | None) -> bool:
        """Replay under the filter that was typed, from the `start` or from `here`; whether the editing is over."""
        if replay is None:
            return True
        snapshot = self.session.snapshot
        if snapshot.kind in (Kind.FIXTURE, Kind.LOG):
            said = (
                "states its own filters" if snapshot.kind is Kind.FIXTURE else "says what was replayed: open its trace"
            )
            self.notify(f"This {snapshot.kind.value} {said}.", severity="warning", markup=False)
            return True
        draft = draft_of(text, snapshot.topology)
        if draft.error:
            return False
        self._remember(text)
        self.session.set_filter(draft.parse, text, from_here=replay == "here")
        return True

    def _remember(self, text: str) -> None:
        if text in self.used_filters:
            self.used_filters.remove(text)
        self.used_filters.append(text)

    def begin_comparison(self, text: str) -> None:
        """Compare what is on show with the same under another filter."""
        draft = draft_of(text, self.session.snapshot.topology)
        self._remember(text)
        self.session.compare(draft.parse, text)
        if self._compare_screen is None:
            self.push_screen(CompareScreen())

    def show_table(self, table: Table) -> None:
        """A table on a screen of its own; a request chosen there is gone to."""

        def chosen(position: int | None) -> None:
            if position is not None:
                self.session.seek(position)

        self.push_screen(TableScreen(table), chosen)

    def show_help(self) -> None:
        self.push_screen(HelpScreen(comparing=self._compare_screen is not None))

    def ask_find(self) -> None:
        asking.ask_find(self)

    def find_again(self, *, backwards: bool) -> None:
        """The next place of what was sought last."""
        if self.sought:
            self.session.find(self.sought, backwards=backwards)
        else:
            asking.ask_find(self)

    def ask_go_to(self) -> None:
        asking.ask_go_to(self)

    def ask_compare(self) -> None:
        asking.ask_compare(self)

    def ask_export(self) -> None:
        asking.ask_export(self)

    def save_fixture(self) -> None:
        asking.save_fixture(self)

    def in_session(self, work: Callable[[], None]) -> None:
        """Have work done by the session's thread."""
        self.session.call(work)

    def from_session(self, work: Callable[..., object], *args: object) -> None:
        """Have something shown by the app, for the session's thread, which does not wait: the app may be ending."""
        self.call_later(self._while_running, work, *args)

    def _while_running(self, work: Callable[..., object], *args: object) -> None:
        if self.is_running:
            work(*args)

    def action_help_quit(self) -> None:
        """ctrl+c: first stops what is running, then quits."""
        snapshot = self.session.snapshot
        if snapshot.playing or (snapshot.known < snapshot.total and snapshot.said != "stopped"):
            self.session.halt()
        else:
            self.exit()


def _first_block(moment: Moment) -> int:
    """The block that the cursor is put on: the first that was not served, or the last."""
    story = moment.story
    if story is None or not story.blocks:
        return 0
    return story.stop.at if story.stop is not None else len(story.blocks) - 1
