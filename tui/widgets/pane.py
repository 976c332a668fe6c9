"""What all panes share: a title, lines drawn one by one when they are visible, and the user's look."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from kvtier_cli.render.console import Output
from tui.lines import Line, clip, mark_of, strip_of, title_line
from tui.session.views import Snapshot
from tui.themes import Palette

if TYPE_CHECKING:
    from tui.app import Dashboard


class Pane(Widget):
    """Draws `line(y)` below its title, if it has one. Nothing that is not visible is drawn."""

    HAS_TITLE: ClassVar[bool] = True

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.snapshot: Snapshot | None = None

    @property
    def dashboard(self) -> Dashboard:
        return cast("Dashboard", self.app)

    @property
    def out(self) -> Output:
        """How text is shown here."""
        return self.dashboard.out

    @property
    def palette(self) -> Palette:
        return self.dashboard.palette

    def symbol(self, name: str) -> str:
        return self.out.symbol(name)

    def show(self, snapshot: Snapshot) -> None:
        """Draw another snapshot."""
        self.snapshot = snapshot
        self.refresh()

    def pane_title(self) -> str:
        """What stands in the rule above."""
        return ""

    def line(self, y: int, width: int) -> Line:
        """The line `y`, from 0 below the title."""
        raise NotImplementedError

    def line_style(self, y: int) -> Style | None:
        """A style below the whole line `y`, as of a cursor."""
        return None

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    @property
    def is_lit(self) -> bool:
        """Whether the title shows that keys go here."""
        return self.has_focus

    @property
    def top(self) -> int:
        """Where the lines begin."""
        return 1 if self.HAS_TITLE else 0

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if self.HAS_TITLE and y == 0:
            return strip_of(
                title_line(self.pane_title(), width, self.out, focused=self.is_lit), width, self.palette, base
            )
        at = y - self.top
        line = clip(self.line(at, width), width, mark_of(self.out))
        return strip_of(line, width, self.palette, base, under=self.line_style(at))
