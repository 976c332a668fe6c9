"""JSON text by Python's own decoder, which is vLLM's too, with its faults in our words and with their place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

_TOKEN = re.compile(r"-?\w[\w.+-]*|.", re.DOTALL)


def decode_unique_json(text: str, name: str) -> object:
    """As `decode_json`, for files of our own: a key that stands twice in one object is an InputError with its place."""
    try:
        return _decode(text, name, _unique)
    except InputError as error:
        if error.line is not None:
            raise
        from kvtier_cli.tiering.yaml_text import locate_repeated_key

        line, column = locate_repeated_key(text) or (None, None)
        raise InputError(error.message, file=name, line=line, column=column) from error


def decode_json(text: str, name: str) -> object:
    """The value of `text`; `name` is what errors call its source.

    As in Python, NaN and Infinity are numbers, and of equal keys the last holds. Raises InputError with line and
    column for syntax, and for what Python's limits refuse.
    """
    return _decode(text, name, None)


def _decode(text: str, name: str, pairs_hook: Callable[[list[tuple[str, Any]]], object] | None) -> object:
    try:
        return json.loads(text, object_pairs_hook=pairs_hook)
    except json.JSONDecodeError as error:
        words = _syntax_words(error.msg, text, error.pos)
        raise InputError(
            f"not JSON: {words}", file=name, line=error.lineno, column=error.colno, hint=_hint(text, error.pos)
        ) from error
    except RecursionError as error:
        raise InputError("brackets are nested too deeply", file=name) from error
    except InputError as error:
        raise InputError(error.message, file=name) from None
    except ValueError as error:  # the limit on digits is the one fault of values
        raise InputError("holds a number of more than 4,300 digits", file=name) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"the key {shown(key)} stands twice in one object")
            seen.add(key)
    return found


def _syntax_words(reason: str, text: str, position: int) -> str:
    token = _TOKEN.match(text, position)
    found = "the end of the text" if token is None else shown(token[0][:24])
    if reason.startswith("Expecting property name"):
        return f"expected a key in double quotes, found {found}"
    if reason == "Expecting value" or reason.startswith("Illegal trailing comma"):
        return f"expected a value, found {found}"
    if reason == "Expecting ',' delimiter":
        return f'expected "," or the closing bracket, found {found}'
    if reason == "Expecting ':' delimiter":
        return f'expected ":", found {found}'
    if reason == "Extra data":
        return f"expected the end, found {found}"
    if reason.startswith("Unterminated string"):
        return "a string that starts here has no closing quote"
    return f"{reason[:1].lower()}{reason[1:].removesuffix(' at')} {found}"


def _hint(text: str, position: int) -> str | None:
    found = text[position : position + 1]
    if found == "'":
        return "strings of JSON stand in double quotes"
    if found.isalpha() and text[:position].rstrip()[-1:] in ("[", "{", ",", ":"):
        return "a shell takes double quotes away unless the whole text stands in single quotes"
    return None
