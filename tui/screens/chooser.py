"""A list to choose from: presets of filters, kinds of export, differing requests, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from kvtier_cli.render.console import plain
from tui.bindings import Key, bindings
from tui.lines import Line, padded
from tui.screens.sheet import Sheet
from tui.widgets.list_pane import ListPane

LEAVE = Key("chooser-leave", "escape,q", "leave", "leave", "chooser")


class Choice(NamedTuple):
    """One entry: the answer, how it is written, and what it is."""

    answer: str
    name: str
    words: str = ""


class Choices(ListPane):
    """The entries."""

    def __init__(self, title: str, choices: Sequence[Choice], *, at: int) -> None:
        super().__init__(id="choices")
        self._title = title
        self._choices = choices
        self._at = at

    def on_mount(self) -> None:
        self.styles.height = min(len(self._choices) + 1, max(self.app.size.height - 6, 4))
        self.look_at(self._at)

    def pane_title(self) -> str:
        return self._title

    @property
    def count(self) -> int:
        return len(self._choices)

    def row(self, index: int, width: int) -> Line:
        choice = self._choices[index]
        widest = min(36, max(len(each.name) for each in self._choices))
        return [(f" {padded(plain(choice.name), widest)}  ", "bold"), (plain(choice.words), "muted")]

    def go(self, index: int) -> None:
        self.look_at(index)

    def on_click(self, event: object) -> None:
        super().on_click(event)  # type: ignore[arg-type]
        self.action_choose()

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self, self.cursor))


class Chooser(Sheet[str]):
    """Answers with the entry that was chosen, or not at all."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings((LEAVE,))]
    AUTO_FOCUS = "#choices"

    def __init__(self, title: str, choices: Sequence[Choice], *, at: int = 0) -> None:
        super().__init__(classes="-chooser")
        self._title = title
        self._choices = choices
        self._at = at

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Choices(self._title, self._choices, at=self._at)

    def on_list_pane_chosen(self, event: ListPane.Chosen) -> None:
        event.stop()
        self.dismiss(self._choices[event.row].answer)

    def action_leave(self) -> None:
        self.dismiss()
