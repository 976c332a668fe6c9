"""Lines as parts of named styles, and how they become strips of a widget. Knows no widget and no data."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from kvtier_cli.render.cells import Drawn
from kvtier_cli.render.console import Output, cell_width, shorten_middle
from tui.themes import Palette

Part = tuple[str, str]
"""Text, made inert before, and the name of its style."""

Line = list[Part]

TEN = 10


def width_of(line: Iterable[Part]) -> int:
    """The cells that a line takes."""
    return sum(cell_width(text) for text, _ in line)


def padded(text: str, width: int, align: str = "<") -> str:
    """`text` in exactly `width` cells: filled up with blanks, or cut at its end."""
    have = cell_width(text)
    if have > width:
        return cut(text, width)
    blanks = " " * (width - have)
    return blanks + text if align == ">" else text + blanks


def cut(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` cells; where it is longer, `mark` stands at its end."""
    if cell_width(text) <= width:
        return text
    if width <= len(mark):
        return text[: max(width, 0)] if text.isascii() else shorten_middle(text, max(width, 0), mark="")
    room = width - len(mark)
    end = min(len(text), room)
    while cell_width(text[:end]) > room:
        end -= 1
    return text[:end] + mark


def clip(line: Line, width: int, mark: str = "…") -> Line:
    """A line in at most `width` cells."""
    left, clipped = width, []
    for text, style in line:
        have = cell_width(text)
        if have > left:
            if left > 0:
                clipped.append((cut(text, left, mark), style))
            return clipped
        clipped.append((text, style))
        left -= have
    return clipped


def between(left: Line, right: Line, width: int, mark: str = "…") -> Line:
    """`left` at the left end and `right` at the right end of `width` cells; `left` gives way."""
    room = width - width_of(right)
    left = clip(left, max(room - 1, 0), mark)
    return [*left, (" " * max(room - width_of(left), 0), ""), *right]


def spaced(cells: list[Drawn], *, start: int = 0) -> list[Drawn]:
    """Cells with a gap after every ten, the first of them being block `start`."""
    result: list[Drawn] = []
    for at, cell in enumerate(cells, start):
        if result and at % TEN == 0:
            result.append(Drawn())
        result.append(cell)
    return result


def cells_line(cells: Iterable[Drawn]) -> Line:
    """Cells side by side as a line, runs of one style joined."""
    line: Line = []
    text, style = "", None
    for cell in cells:
        if style is not None and cell.style != style:
            line.append((text, style))
            text = ""
        text, style = text + cell.symbol, cell.style
    if style is not None:
        line.append((text, style))
    return line


def strip_of(line: Line, width: int, palette: Palette, base: Style, *, under: Style | None = None) -> Strip:
    """A line as a strip of exactly `width` cells on the widget's own style `base`; `under` is laid below all of it."""
    styles = palette.styles
    segments = [Segment(text, styles[style]) for text, style in line if text]
    strip = Strip(segments).adjust_cell_length(width)
    if under is not None:
        strip = strip.apply_style(under)
    return strip.apply_style(base)


def title_line(title: str, width: int, out: Output, *, focused: bool = False) -> Line:
    """The head of a pane: a rule with its title in it, heavy where the pane has the focus."""
    rule = ("━" if focused else "─") if out.unicode else ("=" if focused else "-")
    rule_style, title_style = ("rule_focus", "title_focus") if focused else ("rule", "title")
    title = cut(title, max(width - 3, 0), mark_of(out))
    return [(rule, rule_style), (title, title_style), (rule * max(width - 1 - cell_width(title), 0), rule_style)]


def mark_of(out: Output) -> str:
    """What stands where text was cut."""
    return "…" if out.unicode else ".."


_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*##"


def bar_symbol(share: float | None, out: Output) -> str:
    """A column of a plot, a cell high: from nothing to full."""
    if share is None:
        return out.symbol("unreached")
    height = max(0, min(8, round(share * 8)))
    if share > 0 and not height:
        height = 1
    return (_EIGHTHS if out.unicode else _ASCII_BARS)[height]


def level_bar(share: float, width: int, out: Output) -> tuple[str, str]:
    """A bar that lies: its full part, and the rest."""
    full = max(0, min(width, round(share * width)))
    solid, empty = ("█", "░") if out.unicode else ("#", ".")
    return solid * full, empty * (width - full)
