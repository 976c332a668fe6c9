"""The help, made from the bindings: searched as one types, what works on the screen below it first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from kvtier_cli.render.cells import WORDS
from kvtier_cli.replay.outcomes import Outcome
from tui.bindings import COMPARE, FILTER, GROUPS, MAIN, MOVES, Key, all_shown, bindings
from tui.lines import Line, padded
from tui.screens.prompt import PromptInput
from tui.screens.sheet import Lines, Sheet
from tui.widgets.list_pane import ListPane

if TYPE_CHECKING:
    from tui.app import Dashboard

LEAVE = Key("help-leave", "escape,f1", "leave", "close", "help")
UP = Key("help-up", "up,pageup", "scroll(-1)", "up", "help")
DOWN = Key("help-down", "down,pagedown", "scroll(1)", "down", "help")

MEANINGS = {
    Outcome.PRIMARY: "loaded, ready in the CPU tier, and not brought there by this request",
    Outcome.PROMOTED: "loaded, brought from a secondary tier by this request",
    Outcome.FILTERED: "missed, and a tier that the filter skipped holds it",
    Outcome.ABSENT: "missed, and no tier has it: never stored (cold), evicted, refused, offline",
    Outcome.DENIED: "a tier had it, and the CPU tier could give no slot (promotion_allocation_failures)",
    Outcome.FAILED: "its promotion failed",
    Outcome.HELD: "promotions were held after a reset",
    Outcome.GAVE_UP: "the request waited too long; vLLM would wait for ever",
    Outcome.UNREACHED: "behind the first block that was not served",
}


class HelpList(ListPane):
    """A head for each group, a row a binding, then the symbols."""

    def __init__(self, *, comparing: bool) -> None:
        super().__init__(id="help-list")
        self._comparing = comparing
        self._lines: list[Line] = []

    def on_mount(self) -> None:
        self.search("")

    def pane_title(self) -> str:
        return "Help"

    def search(self, text: str) -> None:
        """Only what has `text` in its key, its words or its id."""
        words = text.lower().split()
        self._lines = list(self._made(words))
        self.first = self.cursor = 0
        self.refresh()

    def _made(self, words: list[str]) -> list[Line]:
        scopes = (*COMPARE, *MOVES, *MAIN, *FILTER) if self._comparing else (*MAIN, *MOVES, *FILTER, *COMPARE)
        lines: list[Line] = []
        group = ""
        for key in sorted(scopes, key=lambda key: _order(key, scopes)):
            if not key.words:
                continue
            names = all_shown(key, self.dashboard.keymap)
            if not all(word in f"{names} {key.words} {key.id} {GROUPS[key.group]}".lower() for word in words):
                continue
            if key.group != group:
                group = key.group
                lines += [[], [(f" {GROUPS[group]}", "bold")]] if lines else [[(f" {GROUPS[group]}", "bold")]]
            lines.append([(f"   {padded(names, 14)}", "key"), (key.words, "text"), (f"   {key.id}", "rule")])
        symbols: list[Line] = []
        for outcome, meaning in MEANINGS.items():
            if all(word in f"{outcome.value} {meaning}".lower() for word in words):
                name = padded(outcome.value.replace("_", " "), 12)
                symbols.append(
                    [("   ", ""), (self.symbol(outcome.value), outcome.value), (f" {name}", "text"), (meaning, "muted")]
                )
        if symbols:
            lines += [[], [(" Outcomes", "bold")], *symbols]
        if not words:
            holds = (self.symbol("holds"), "holds_skipped")
            lines.append([("   ", ""), holds, (" holds it    ", "text"), (f"{WORDS_HOLDS}", "muted")])
            lines += [
                [],
                [
                    (" of asked: a tier's hits of what it was asked for. of all: its part in all blocks.", "muted"),
                ],
                [(' Keys are remapped by their ids in your config.toml, in [keys]: play = "space".', "muted")],
            ]
        return lines or [[(" nothing like that", "muted")]]

    @property
    def count(self) -> int:
        return len(self._lines)

    def row(self, index: int, width: int) -> Line:
        return self._lines[index]

    def line_style(self, y: int) -> None:
        return None


WORDS_HOLDS = next(words for cell, words in WORDS.items() if cell.value == "holds")


def _order(key: Key, scopes: tuple[Key, ...]) -> int:
    return next(at for at, other in enumerate(scopes) if other.group == key.group)


class HelpScreen(Sheet[None]):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings((LEAVE, UP, DOWN))]
    AUTO_FOCUS = "#input"

    def __init__(self, *, comparing: bool = False) -> None:
        super().__init__(classes="-help")
        self._comparing = comparing

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield HelpList(comparing=self._comparing)
            with Horizontal():
                label = Lines([[(" search ", "key")]], id="label")
                label.styles.width = 8
                yield label
                yield PromptInput(compact=True, id="input")
            yield Lines([[(" esc", "key"), (" close   ", "text"), ("up down", "key"), (" scroll", "text")]], id="lines")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(HelpList).search(event.value)

    def action_scroll(self, by: int) -> None:
        pane = self.query_one(HelpList)
        pane.look_at(pane.cursor)
        pane.first = max(
            0, min(pane.first + by * max(pane.rows_visible // 2, 1), max(pane.count - pane.rows_visible, 0))
        )
        pane.refresh()

    def action_leave(self) -> None:
        self.dismiss()
