"""Tables whose last column is a sentence: beside the row where the width allows, else below it. And wrapped text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvtier_cli.render.console import Output, cell_width, columns, pad

NAME_WIDTH = 24
"""Cells of a tier's name in text output; JSON has it whole."""


LEAST_NOTE = 26
"""Cells that wrapped notes need beside their rows; with fewer they stand below them."""


def noted_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    out: Output,
    *,
    align: str = "",
    shrink: int = 0,
    wrap: bool = False,
) -> Iterator[str]:
    """The lines of a table; of each row the last cell is its note, which may be empty.

    Where a line would be wider than `out`, the notes stand below their rows, and column `shrink` gives way; with `wrap`
    they go on below themselves as long as there is room for that.
    """
    for lines in noted_rows(head, rows, out, align=align, shrink=shrink, wrap=wrap):
        yield from lines


def noted_rows(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    out: Output,
    *,
    align: str = "",
    shrink: int = 0,
    wrap: bool = False,
) -> Iterator[list[str]]:
    """As `noted_table`, the lines of each row together, those of the head first."""
    noted = any(row[-1] for row in rows)
    beside = columns([head if noted else head[:-1], *rows], align)
    if all(cell_width(line) <= out.width for line in beside):
        yield from ([line] for line in beside)
        return
    mark = "…" if out.unicode else ".."
    bare = [head[:-1], *(row[:-1] for row in rows)]
    lines = columns(bare, align)
    left = max(map(cell_width, lines)) + 2
    if wrap and out.width - left >= LEAST_NOTE:
        for line, note in zip(lines, [head[-1], *(row[-1] for row in rows)], strict=True):
            first, *more = list(wrapped(note, out, indent=left)) or [""]
            yield [(pad(line, left) + first.lstrip()).rstrip(), *more]
        return
    lines = columns(bare, align, shrink=shrink, width=out.width, mark=mark)
    yield [lines[0]]
    for line, row in zip(lines[1:], rows, strict=True):
        yield [line, *(wrapped(row[-1], out, indent=5) if row[-1] else ())]


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
