"""What opens over the main screen: a box with lines and keys, and the box's manners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from tui.bindings import Key, all_shown
from tui.lines import Line
from tui.screens.leaving import LeftOnce
from tui.widgets.pane import Pane

Answer = TypeVar("Answer")


class Lines(Pane):
    """Lines that somebody else has made."""

    HAS_TITLE = False

    def __init__(self, lines: Sequence[Line], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines = list(lines)

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Other lines."""
        self._lines = list(lines)
        self.styles.height = len(self._lines)
        self.refresh()

    def on_mount(self) -> None:
        self.styles.height = len(self._lines)

    def line(self, y: int, width: int) -> Line:
        return self._lines[y] if y < len(self._lines) else []


class Sheet(ModalScreen[Answer], LeftOnce[Answer], Generic[Answer]):
    """A box in the middle. `lines` says what is in it."""

    def lines(self) -> list[Line]:
        return []

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines(self.lines(), id="lines")


def key_line(keys: Sequence[tuple[Key, str]]) -> Line:
    """Keys with what they do, side by side."""
    line: Line = []
    for key, words in keys:
        line += [("  " if not line else "    ", ""), (all_shown(key, {}).split(" ")[0], "key"), (f" {words}", "text")]
    return line
