"""Short facts one behind the other, with gaps between them, in as many lines as it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvtier_cli.render.console import Output, cell_width


def facts(texts: Sequence[str], out: Output, *, indent: int = 0) -> Iterator[str]:
    """The lines of `texts` in the width of `out`; a text that is wider than a line is shortened."""
    line = ""
    for text in texts:
        text = out.shorten(text, out.width - max(indent, 2))
        longer = joined(line, text) if line else " " * indent + text
        if line and cell_width(longer) > out.width:
            yield line
            longer = " " * max(indent, 2) + text
        line = longer
    yield line


def joined(line: str, text: str) -> str:
    """`text` behind `line`, a gap between them."""
    gap = " " if line.endswith(":") else "   " if line else ""
    return f"{line}{gap}{text}"
