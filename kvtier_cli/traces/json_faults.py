"""Says in kvtier's words what is wrong with one line of JSON. Decodes nothing for use: it is asked once a line failed.

msgspec gives a byte offset for syntax and a path for values; people want the column, and what was found there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kvtier_cli.errors import InputError
from kvtier_cli.wording import nearest

_SYNTAX = re.compile(r"JSON is malformed: (?P<reason>.*) \(byte (?P<offset>\d+)\)$")
_VALUE = re.compile(r"(?P<reason>.*?)(?: - at `(?P<path>\$.*)`)?$", re.DOTALL)
_UNION = re.compile(r"`([^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_WORD_START = re.compile(rb"-?[A-Za-z]*$")
_TOKEN = re.compile(r"-?\w[\w.+-]*|.", re.DOTALL)
_LAST_ITEM = re.compile(r"[^,{\[]*$")
_SHOWN = 40

_VALUE_WORDS = {
    "Integer value out of range": "expected a number of at most 4,299 digits",  # Python's limit and so msgspec's
    "Number out of range": "expected a number up to 1.8e308",
}
_SYNTAX_WORDS = {
    "trailing characters": "expected the end of the line",
    "object keys must be strings": "expected a key in double quotes",
}


def json_fault(
    line: bytes,
    error: msgspec.DecodeError | RecursionError | UnicodeDecodeError,
    *,
    file: str,
    number: int,
    unterminated: bool = False,
    what: str = "request",
    fields: Sequence[str] = (),
) -> InputError:
    """The InputError for `line` (the `number`-th, from 1), which msgspec or the UTF-8 codec refused with `error`.

    `unterminated`: it is the file's last line and has no newline, so it may have been cut off. `what` a line is; the
    `fields` that it may have, where others are refused.
    """
    if isinstance(error, RecursionError):
        return InputError("brackets are nested too deeply; a request needs three levels", file=file, line=number)
    if isinstance(error, msgspec.ValidationError):
        return _value_fault(str(error), file, number, what, fields)
    if isinstance(error, UnicodeDecodeError) or "UTF-8" in str(error):
        return _encoding_fault(line, file, number)
    end = len(line.rstrip())
    reason, offset = _locate(line, str(error), end)
    if offset >= end and unterminated:
        return InputError(
            "the last line is cut off: it is not a whole request, and no newline follows",
            file=file,
            line=number,
            hint="If the trace is still being written, wait for its writer.",
        )
    before = line[:offset].decode("utf-8", "replace")
    rest = line[offset : offset + 4 * _SHOWN].decode("utf-8", "replace")
    return InputError(
        f"not JSON: {_syntax_words(reason, before, rest)}", file=file, line=number, column=len(before) + 1
    )


def bare(text: str) -> str:
    """`text` from a file without quotes, fit for a message: short, and nothing in it that a terminal would act on."""
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in short)


def _locate(line: bytes, message: str, end: int) -> tuple[str, int]:
    """msgspec's reason, and the byte (from 0) that it is about; `end` of the line if it ends too early."""
    if match := _SYNTAX.match(message):
        reason, offset = match["reason"], int(match["offset"])
        if reason == "trailing characters":
            return reason, offset - 1  # the one offset that points behind the character
        if "escape" in reason or "surrogate" in reason:
            return reason, max(0, line.rfind(b"\\", 0, offset))
        if line[offset : offset + 1].isalpha() and (word := _WORD_START.search(line[:offset])):
            offset = word.start()  # of `-Infinity` or `trve` it names the letter it stumbled on
        return reason, min(offset, end)
    if _is_whole(line) and (halves := [*_HALF_PAIR.finditer(line)]):
        return "invalid utf-16 surrogate pair", halves[-1].start()
    return "truncated", end


def _syntax_words(reason: str, before: str, rest: str) -> str:
    item = _LAST_ITEM.search(before)
    behind = (item[0] if item else "").strip()
    after = f" (after {bare(behind)})" if behind else ""
    token = _TOKEN.match(rest.strip())
    if reason == "truncated" or token is None:
        return f"the line ends before the request does{after}"
    found = bare(token[0])
    if found in {"NaN", "Infinity", "-Infinity"}:
        return f"{found} is no JSON number{after}"
    if reason == "invalid character":
        return f'unexpected "{found}"{after}'
    words = _SYNTAX_WORDS.get(reason) or reason.replace("'", '"')
    return f'{words}, found "{found}"{after}'


def _value_fault(message: str, file: str, number: int, what: str, fields: Sequence[str]) -> InputError:
    match = _VALUE.match(message)
    reason, path = (match["reason"], match["path"]) if match else (message, None)
    if missing := _MISSING.match(reason):
        return InputError(f"the {what} has no {missing['name']}", file=file, line=number)
    if unknown := _UNKNOWN.match(reason):
        near = nearest(unknown["name"], fields)
        hint = f'Did you mean "{near}"?' if near else f"Its fields are {', '.join(fields)}."
        return InputError(f'a {what} has no field "{bare(unknown["name"])}"', file=file, line=number, hint=hint)
    words = _VALUE_WORDS.get(reason) or _UNION.sub(_alternatives, reason[:1].lower() + reason[1:])
    if path is None:
        words = words.replace("expected object", f"expected a JSON object (a {what})")
    return InputError(words, file=file, line=number, path=path)


def _alternatives(union: re.Match[str]) -> str:
    """`a | b | c` as people write it: a, b or c."""
    *others, last = union[1].split(" | ")
    return f"{', '.join(others)} or {last}" if others else last


def _encoding_fault(line: bytes, file: str, number: int) -> InputError:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode("utf-8")) + 1
        return InputError(
            f"not UTF-8: unexpected byte 0x{line[error.start]:02x}", file=file, line=number, column=column
        )
    return InputError("not UTF-8", file=file, line=number)


def _is_whole(line: bytes) -> bool:
    """Whether the standard library reads the line to its end: it allows half a surrogate pair, msgspec does not."""
    try:
        import json  # only who has a fault to tell pays for it

        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
