"""One line to type: a search, a request, a file, a filter. Stands above the keys; what is wrong stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from tui.bindings import Key, bindings
from tui.screens.sheet import Lines, Sheet

ACCEPT = Key("prompt-accept", "enter", "submit", "go", "prompt")
LEAVE = Key("prompt-leave", "escape", "leave", "leave", "prompt")


class PromptInput(Input):
    """The line itself."""

    BINDINGS: ClassVar[list[BindingType]] = []


class Prompt(Sheet[str]):
    """Answers with what was typed, or not at all. `check` says what is wrong with a text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings((LEAVE,))]

    def __init__(
        self, label: str, value: str = "", *, hint: str = "", check: Callable[[str], str | None] | None = None
    ) -> None:
        super().__init__(classes="-prompt")
        self._label = label
        self._value = value
        self._hint = hint
        self._check = check

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines([[(f" {self._hint}", "muted")]], id="lines")
            with Horizontal():
                label = Lines([[(f" {self._label} ", "key")]], id="label")
                label.styles.width = len(self._label) + 2
                yield label
                yield PromptInput(self._value, compact=True, select_on_focus=False, id="input")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        said = None if self._check is None else self._check(event.value)
        if said is None:
            self.dismiss(event.value)
        else:
            self.query_one("#lines", Lines).set_lines([[(f" {said}", "alarm")]])

    def action_leave(self) -> None:
        self.dismiss()
