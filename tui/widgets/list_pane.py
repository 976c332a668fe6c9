"""A list of any length of which only the visible lines are made: cursor, scrolling, mouse, a thumb at the side."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.message import Message

from tui.bindings import MOVES, bindings
from tui.lines import Line, clip, mark_of, width_of
from tui.widgets.pane import Pane


class ListPane(Pane, can_focus=True):
    """Rows from 0 to `count`. `cursor` is the row that is chosen; `first` the topmost that is visible."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(key for key in MOVES if key.id not in ("left", "right"))]
    HEAD: ClassVar[int] = 0
    """Lines between the title and the first row."""
    EACH: ClassVar[int] = 1
    """Rows from the cursor on that are to be seen together."""

    class Chosen(Message):
        """The user went to a row."""

        def __init__(self, pane: ListPane, row: int) -> None:
            self.pane = pane
            self.row = row
            super().__init__()

        @property
        def control(self) -> ListPane:
            return self.pane

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor = 0
        self.first = 0

    # To be said by each list

    @property
    def count(self) -> int:
        raise NotImplementedError

    def row(self, index: int, width: int) -> Line:
        raise NotImplementedError

    def head(self, y: int, width: int) -> Line:
        """The lines above the rows."""
        return []

    # Drawing

    @property
    def rows_visible(self) -> int:
        return max(self.size.height - self.top - self.HEAD, 1)

    def line(self, y: int, width: int) -> Line:
        if y < self.HEAD:
            return self.head(y, width)
        index = self.first + y - self.HEAD
        if index >= self.count:
            return []
        line = clip(self.row(index, width - 2), width - 2, mark_of(self.out))
        return [*line, (" " * (width - 1 - width_of(line)), ""), self._thumb(y - self.HEAD)]

    def _thumb(self, y: int) -> tuple[str, str]:
        count, visible = self.count, self.rows_visible
        if count <= visible:
            return " ", ""
        size = max(1, visible * visible // count)
        start = round((visible - size) * self.first / max(count - visible, 1))
        return (("█" if self.out.unicode else "|") if start <= y < start + size else " "), "rule"

    def line_style(self, y: int) -> Style | None:
        at_cursor = self.has_focus and y >= self.HEAD and self.first + y - self.HEAD == self.cursor
        return self.palette.cursor_style if at_cursor and self.cursor < self.count else None

    def look_at(self, index: int, *, margin: int = 0) -> None:
        """Put the cursor on a row and scroll as little as is needed for it to be seen."""
        self.reach(index, margin=margin)
        self.refresh_changed()

    def centre(self, index: int) -> None:
        """Put the cursor on a row and the row where much of what is before it and some of what follows is seen."""
        self.reach_centred(index)
        self.refresh_changed()

    def reach(self, index: int, *, margin: int = 0) -> None:
        """`look_at`, without drawing it."""
        self.cursor = max(0, min(index, max(self.count - 1, 0)))
        visible = self.rows_visible
        margin = min(margin, (visible - 1) // 2)
        if self.cursor < self.first + margin:
            self.first = self.cursor - margin
        elif self.cursor + self.EACH > self.first + visible - margin:
            self.first = self.cursor - visible + self.EACH + margin
        self.first = max(0, min(self.first, max(self.count - visible, 0)))

    def reach_centred(self, index: int) -> None:
        """`centre`, without drawing it."""
        self.cursor = max(0, min(index, max(self.count - 1, 0)))
        visible = self.rows_visible
        self.first = max(0, min(self.cursor - 2 * visible // 3, self.count - visible))

    def on_resize(self) -> None:
        self.centre(self.cursor)

    # Moving

    def go(self, index: int) -> None:
        """The user goes to a row."""
        if not self.count:
            return
        self.look_at(index)
        self.post_message(self.Chosen(self, self.cursor))

    def action_up(self) -> None:
        self.go(self.cursor - 1)

    def action_down(self) -> None:
        self.go(self.cursor + 1)

    def action_page(self, pages: int) -> None:
        self.go(self.cursor + pages * self.rows_visible)

    def action_top(self) -> None:
        self.go(0)

    def action_bottom(self) -> None:
        self.go(self.count - 1)

    def action_g(self) -> None:
        if self.dashboard.second_g():
            self.action_top()

    def action_choose(self) -> None:
        self.go(self.cursor)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def _scroll(self, by: int) -> None:
        self.first = max(0, min(self.first + by, max(self.count - self.rows_visible, 0)))
        self.refresh_changed()

    def on_click(self, event: events.Click) -> None:
        index = self.first + event.y - self.top - self.HEAD
        if event.y >= self.top + self.HEAD and index < self.count:
            self.go(index)
