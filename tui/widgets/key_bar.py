"""The last line: the keys that matter now, at most eight, and what the last order came to."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from kvtier_cli.render.console import plain
from tui.bindings import FOOTER, Key, shown
from tui.lines import Line, between, mark_of, width_of
from tui.widgets.pane import Pane


class KeyBar(Pane):
    """A click on a key does what the key does."""

    HAS_TITLE = False

    def __init__(self, keys: Sequence[Key], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = keys
        self._places: list[tuple[int, int, Key]] = []

    def set_keys(self, keys: Sequence[Key]) -> None:
        """Other keys matter now."""
        self._keys = keys
        self.refresh()

    def line(self, y: int, width: int) -> Line:
        line: Line = []
        self._places = []
        footer = [key for key in self._keys if key.footer]
        if all(key.id in FOOTER for key in footer):
            footer.sort(key=lambda key: FOOTER.index(key.id))
        for key in footer:
            name = shown(key, self.dashboard.keymap)
            if key.id == "previous":
                name = f"{name} {self.dashboard.key_names('next')}"
            elif key.id == "compare-next":
                name = f"{name} {self.dashboard.key_names('compare-previous')}"
            start = width_of(line)
            line += [("  " if line else " ", ""), (name, "key"), (f" {key.footer}", "text")]
            self._places.append((start, width_of(line), key))
        said = "" if self.snapshot is None else plain(self.snapshot.said)
        if said:
            return between(line, [(f"{said} ", "alarm")], width, mark_of(self.out))
        return line

    async def on_click(self, event: events.Click) -> None:
        for start, end, key in self._places:
            if start <= event.x < end:
                await self.screen.run_action(key.action)
