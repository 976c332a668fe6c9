"""Tables whose last column is a sentence: beside the row where the width allows, else below it. And wrapped text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvtier_cli.render.console import Output, cell_width, columns

NAME_WIDTH = 24
"""Cells of a tier's name in text output; JSON has it whole."""


def noted_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], out: Output, *, align: str = "", shrink: int = 0
) -> Iterator[str]:
    """The lines of a table; of each row the last cell is its note, which may be empty.

    Where a line would be wider than `out`, the notes stand below their rows, and column `shrink` gives way.
    """
    noted = any(row[-1] for row in rows)
    beside = columns([head if noted else head[:-1], *rows], align)
    if all(cell_width(line) <= out.width for line in beside):
        yield from beside
        return
    mark = "…" if out.unicode else ".."
    lines = columns([head[:-1], *(row[:-1] for row in rows)], align, shrink=shrink, width=out.width, mark=mark)
    yield lines[0]
    for line, row in zip(lines[1:], rows, strict=True):
        yield line
        if row[-1]:
            yield from wrapped(row[-1], out, indent=5)


def wrapped(text: str, out: Output, *, indent: int = 0, style: str = "") -> Iterator[str]:
    """The lines of `text` in the width of `out`, by cells; a word that is longer than that stays whole."""
    blank = " " * indent
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else blank + word
        if line and cell_width(longer) > out.width:
            yield _styled(line, out, style)
            longer = blank + word
        line = longer
    if line:
        yield _styled(line, out, style)


def _styled(line: str, out: Output, style: str) -> str:
    line = line.rstrip()
    return out.style(line, style) if style else line
