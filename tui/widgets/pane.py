"""What all panes share: a title, lines drawn one by one when they are visible, and the user's look."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from kvtier_cli.render.console import Output
from tui.lines import Line, Part, clip, mark_of, strip_of, title_line
from tui.session.views import Snapshot
from tui.themes import Palette

if TYPE_CHECKING:
    from tui.app import Dashboard

_STRIPS: Final = 512
"""So many strips are kept: a list that scrolls by a line is the same lines but one."""

Told = tuple[Line, Style | None]
"""What stands in a line, cut to the width, and the style below it."""


class Pane(Widget):
    """Draws `line(y)` below its title, if it has one. Nothing that is not visible is drawn."""

    HAS_TITLE: ClassVar[bool] = True

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.snapshot: Snapshot | None = None
        self._drawn: dict[int, Told] = {}
        self._next: dict[int, Told] = {}
        self._look: tuple[Style, Palette, int] | None = None
        self._strips: dict[tuple[Part | Style | None, ...], Strip] = {}

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
        self.refresh_changed()

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

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        self._next.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def refresh_changed(self) -> None:
        """Draw anew the lines in which something else stands than was drawn last: drawing costs far more than telling
        what is to be drawn."""
        width, height = self.size
        if not self.region:  # it will be drawn whole when it is seen again
            self.refresh()
            return
        lines = {y: self._tell(y, width) for y in range(height)}
        regions = [Region(0, y, width, 1) for y, told in lines.items() if told != self._drawn.get(y)]
        if regions:
            self.refresh(*regions)
            self._next = lines

    def render_lines(self, crop: Region) -> list[Strip]:
        look = self.rich_style, self.palette, self.size.width  # asks all widgets around: once a picture is enough
        if look != self._look or len(self._strips) > _STRIPS:
            self._look = look
            self._strips.clear()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        told = self._next.pop(y) if y in self._next else self._tell(y, width)
        line, under = self._drawn[y] = told
        known = self._strips.get((*line, under))
        if known is None:
            base = self.rich_style if self._look is None else self._look[0]
            known = self._strips[*line, under] = strip_of(line, width, self.palette, base, under=under)
        return known

    def _tell(self, y: int, width: int) -> Told:
        if self.HAS_TITLE and y == 0:
            return title_line(self.pane_title(), width, self.out, focused=self.is_lit), None
        at = y - self.top
        return clip(self.line(at, width), width, mark_of(self.out)), self.line_style(at)
