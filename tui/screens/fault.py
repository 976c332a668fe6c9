"""Something went wrong behind the screen: what, where, what is intact, and what can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from kvtier_cli.render.console import plain
from tui.bindings import Key, bindings
from tui.lines import Line
from tui.screens.sheet import Sheet, key_line
from tui.session.views import Fault

if TYPE_CHECKING:
    from tui.app import Dashboard

SKIP = Key("fault-skip", "i", "skip", "ignore such lines and go on", "fault")
RELOAD = Key("fault-reload", "r", "reload", "reload the file", "fault")
STAY = Key("fault-stay", "escape", "stay", "stay here", "fault")
COPY = Key("fault-copy", "y", "copy", "copy", "fault")
QUIT = Key("fault-quit", "q,ctrl+q", "quit", "quit", "fault")


class FaultScreen(Sheet[None]):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings((SKIP, RELOAD, STAY, COPY, QUIT))]

    def __init__(self, fault: Fault) -> None:
        super().__init__(classes="-fault")
        self._fault = fault

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    def lines(self) -> list[Line]:
        fault = self._fault
        lines: list[Line] = [[], [(" ", ""), (" ! ", "bad_fill"), (f" {plain(fault.title)}", "bold")], []]
        if fault.where:
            lines.append([(f"     {self.dashboard.out.shorten(plain(fault.where), 68)}", "text")])
        lines += [[(f"     {part}", "text")] for part in _wrapped(plain(fault.message), 68)]
        if fault.hint:
            lines += [[(f"     {part}", "muted")] for part in _wrapped(plain(fault.hint), 68)]
        if fault.intact:
            lines += [[], *([(f"     {part}", "text")] for part in _wrapped(plain(fault.intact), 68))]
        keys = [(RELOAD, "reload"), (STAY, "stay here"), (COPY, "copy"), (QUIT, "quit")]
        if fault.can_skip:
            keys.insert(0, (SKIP, "ignore such lines"))
        return [*lines, [], [(" ", ""), *key_line(keys)], []]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._fault.can_skip if action == "skip" else True

    def action_skip(self) -> None:
        self.dismiss()
        self.dashboard.reopen(skip_bad=True)

    def action_reload(self) -> None:
        self.dismiss()
        self.dashboard.reopen()

    def action_stay(self) -> None:
        self.dismiss()

    def action_copy(self) -> None:
        fault = self._fault
        parts = (fault.title, fault.where, fault.message, fault.hint, fault.trace)
        self.app.copy_to_clipboard("\n".join(part for part in parts if part))
        self.notify("Copied.", markup=False)

    def action_quit(self) -> None:
        self.app.exit()


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width) or [""]
