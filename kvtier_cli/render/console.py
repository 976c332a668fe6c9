"""How text reaches a terminal or a pipe: colour, symbols, width, foreign text made inert. Knows no command, no tier."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from kvtier_cli.wording import escape

MIN_WIDTH, MAX_WIDTH, DEFAULT_WIDTH = 40, 300, 80
"""Columns: what is narrower or wider is treated as these; a pipe gets the default, so that its text never changes."""

SYMBOLS: Mapping[str, tuple[str, str]] = {
    "primary": ("■", "#"),
    "promoted": ("▲", "^"),
    "filtered": ("Ø", "%"),
    "absent": ("□", "o"),
    "denied": ("×", "x"),
    "failed": ("!", "!"),
    "held": ("║", "="),
    "gave_up": ("∞", "~"),
    "unreached": ("·", "."),
    "holds": ("•", "+"),
    "skipped": ("-", "-"),
    "retry": ("?", "?"),
    "pending": ("…", ":"),
    "cut": ("»", ">"),
    "none": ("–", "-"),
}
"""Symbol and its ASCII form, one cell each, by outcome; `holds` is a tier that has a block nobody asked it for."""

STYLES: Mapping[str, str] = {
    "primary": "94",
    "promoted": "32",
    "filtered": "1;7;33",
    "absent": "",
    "denied": "95",
    "failed": "1;31",
    "held": "35",
    "gave_up": "93",
    "unreached": "90",
    "holds": "90",
    "holds_skipped": "33",
    "skipped": "90",
    "retry": "93",
    "pending": "36",
    "bold": "1",
    "muted": "90",
    "good": "32",
    "bad": "1;31",
    "error": "1;31",
    "warning": "1;33",
    "note": "36",
}
"""SGR codes by style: only the sixteen basic colours, which the terminal's own palette makes readable."""

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_ONE_CELL_EACH = re.compile("[\x20-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027\u2190-\u21ff\u2200-\u22ff\u2500-\u25fc]*")


@dataclass(frozen=True, slots=True)
class Output:
    """How one stream is written to. `width` in columns; `verbose` counts the `-v` given."""

    color: bool = False
    unicode: bool = True
    width: int = DEFAULT_WIDTH
    quiet: bool = False
    verbose: int = 0

    def style(self, text: str, name: str) -> str:
        """`text` in the style `name` of `STYLES`, or as it is where there is no colour."""
        code = STYLES[name]
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and code else text

    def symbol(self, name: str) -> str:
        """The one-cell symbol of `SYMBOLS`, in the form this stream can show, without colour."""
        return SYMBOLS[name][0 if self.unicode else 1]

    def shorten(self, text: str, width: int) -> str:
        """`shorten_middle` with the mark this stream can show."""
        return shorten_middle(text, width, mark="…" if self.unicode else "..")

    def note(self, text: str) -> None:
        """A remark on stderr that nobody misses with `--quiet`; this is to be the Output of stderr."""
        if not self.quiet:
            _to_stderr(f"{self.style('note:', 'note')} {plain(text)}")

    def warn(self, text: str) -> None:
        """A warning on stderr, shown with `--quiet` too; this is to be the Output of stderr."""
        _to_stderr(f"{self.style('warning:', 'warning')} {plain(text)}")


def output_for(
    stream: TextIO,
    *,
    no_color: bool = False,
    ascii_only: bool = False,
    quiet: bool = False,
    verbose: int = 0,
    environ: Mapping[str, str] | None = None,
) -> Output:
    """What `stream` (stdout or stderr, each for itself) can show.

    Colour: never with `no_color` or a NO_COLOR that is not empty, else with FORCE_COLOR, else on a terminal that is
    not dumb. Symbols beyond ASCII: where stream and locale are UTF-8 and the terminal is not dumb, unless `ascii_only`
    or KVTIER_ASCII. Width: COLUMNS, else the terminal's, else 80.
    """
    env = os.environ if environ is None else environ
    terminal = _is_terminal(stream)
    dumb = terminal and env.get("TERM") == "dumb"
    forced = env.get("FORCE_COLOR", "") not in ("", "0")
    return Output(
        color=not no_color and not env.get("NO_COLOR") and (forced or (terminal and not dumb)),
        unicode=not (ascii_only or is_set("KVTIER_ASCII", env) or dumb) and _is_utf8(stream, env),
        width=_width(stream, env, terminal=terminal),
        quiet=quiet,
        verbose=verbose,
    )


def is_set(name: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether an environment variable that is a switch is on: there, and not one of the words for off."""
    value = (os.environ if environ is None else environ).get(name, "")
    return value.strip().lower() not in ("", "0", "false", "no", "off")


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _is_utf8(stream: TextIO, env: Mapping[str, str]) -> bool:
    if (getattr(stream, "encoding", None) or "").lower().replace("-", "").replace("_", "") != "utf8":
        return False
    if env.get("PYTHONUTF8") == "1" or env.get("PYTHONIOENCODING"):
        return True
    # Python writes UTF-8 under LC_ALL=C or LANG=C as well; it then sets LC_CTYPE itself, which is not the user's word.
    lang = env.get("LANG")
    ctype = None if env.get("LC_CTYPE") == "C.UTF-8" and lang in ("C", "POSIX") else env.get("LC_CTYPE")
    return (env.get("LC_ALL") or ctype or lang) not in ("C", "POSIX")


def _width(stream: TextIO, env: Mapping[str, str], *, terminal: bool) -> int:
    columns = env.get("COLUMNS", "")
    width = int(columns) if columns.isascii() and columns.isdigit() and len(columns) < 7 else 0
    if not width and terminal:
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
    return min(max(width or DEFAULT_WIDTH, MIN_WIDTH), MAX_WIDTH)


def _to_stderr(line: str) -> None:
    sys.stdout.flush()  # else a result that was printed before it shows up behind it
    print(line, file=sys.stderr, flush=True)


def plain(text: str) -> str:
    r"""`text` from a file or the command line made inert: whatever is not printable is shown as its escape.

    That covers control codes (`\x1b`), line ends, bidirectional and zero-width marks, odd blanks and lone surrogates:
    nothing can move the cursor, colour or reorder a line, or hide.
    """
    return escape(text)


def cell_width(text: str) -> int:
    """Terminal cells that `text` takes (wide characters take two), not counting SGR codes."""
    if "\x1b" in text:
        text = _SGR.sub("", text)
    if text.isascii() or _ONE_CELL_EACH.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # only text beyond Latin and our symbols pays for it

    return cell_len(text)


def pad(text: str, width: int, align: str = "<") -> str:
    """`text` filled with blanks to `width` cells; `align` is `<`, `>` or `^`. Longer text stays as it is."""
    missing = width - cell_width(text)
    if missing <= 0:
        return text
    left = {"<": 0, ">": missing, "^": missing // 2}[align]
    return " " * left + text + " " * (missing - left)


def shorten_middle(text: str, width: int, *, mark: str = "…") -> str:
    """`text`, which carries no SGR codes, in at most `width` cells: its middle gives way to `mark`."""
    if cell_width(text) <= width:
        return text
    room = width - len(mark)
    if room < 2:
        return _part(text, width)
    tail = room // 2
    return _part(text, room - tail) + mark + _part(text, tail, at_end=True)


def _part(text: str, width: int, *, at_end: bool = False) -> str:
    """As much of the beginning or the end of `text` as `width` cells hold, whole characters only."""
    part = ""
    # Marks that take no cell may follow a character without end: beyond some of them the text is cut all the same.
    for size in range(1, min(len(text), 4 * width) + 1):
        longer = text[-size:] if at_end else text[:size]
        if cell_width(longer) > width:
            break
        part = longer
    while at_end and part and not cell_width(part[0]):
        part = part[1:]  # it would join what comes before it
    return part


def columns(
    rows: Sequence[Sequence[str]],
    align: str = "",
    *,
    indent: int = 2,
    gap: int = 2,
    shrink: int | None = None,
    width: int = MAX_WIDTH,
    mark: str = "…",
) -> list[str]:
    """The lines of a table whose columns line up by cells, without blanks at their ends.

    `align` has `<` or `>` for each column, `<` for those it does not reach. Rows may be of different lengths. Where a
    line would be wider than `width`, the column `shrink` (from 0) is shortened in the middle, to four cells at least.
    """
    count = max((len(row) for row in rows), default=0)
    widths = [max((cell_width(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    if shrink is not None and count:
        excess = indent + sum(widths) + gap * (count - 1) - width
        if excess > 0:
            widths[shrink] = min(widths[shrink], max(widths[shrink] - excess, 4))
            rows = [
                [_shorten_styled(cell, widths[shrink], mark) if i == shrink else cell for i, cell in enumerate(row)]
                for row in rows
            ]
    aligned = align.ljust(count, "<")
    return [
        (" " * indent + (" " * gap).join(pad(cell, widths[i], aligned[i]) for i, cell in enumerate(row))).rstrip()
        for row in rows
    ]


def _shorten_styled(cell: str, width: int, mark: str) -> str:
    codes = _SGR.findall(cell)
    short = shorten_middle(_SGR.sub("", cell), width, mark=mark)
    return codes[0] + short + codes[-1] if codes else short
