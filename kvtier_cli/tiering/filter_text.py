"""The FILTER argument of the command line: where its text comes from, and the raw filter in it.

The raw value goes to `filters.parse_tier_filter`; nothing is judged here but the short form, which is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.filter_lint import MEANT, WORDS
from kvtier_cli.tiering.filter_model import KEY, KNOWN_KEYS, MISSING, Note
from kvtier_cli.tiering.json_text import decode_json
from kvtier_cli.tiering.text_file import decode_text, read_text_file
from kvtier_cli.wording import nearest, shown

PARAMETERS: Final = "kv_transfer_params"
BODY_KEYS: Final = frozenset({"model", "messages", "prompt", "input", PARAMETERS, "extra_body"})
"""A key that tells a request's body from a filter that is wrongly an object."""

ALONE: Final = ("all", "deny")
_MEANT_ALONE: Final = {"none": "deny", "nothing": "deny", "off": "deny", "everything": "all", "*": "all"}
_SIDES: Final = {word: key for key in KNOWN_KEYS for word in WORDS[key]}
_EXAMPLES: Final = "such as storage:local,cpu or local or all or deny"


@dataclass(frozen=True, slots=True)
class FilterSource:
    """A raw filter and how it was given.

    `raw`: what vLLM would get, `MISSING` where a body carries none. `origin`: "filter" (the argument itself), a
    file's name or "stdin". `form`: "json", "short form", "kv_transfer_params" or "request body". `lint`: what is
    wrong around the filter (a key of the body that vLLM ignores).
    """

    raw: object
    origin: str
    form: str
    lint: tuple[Note, ...] = ()


def read_filter_argument(argument: str, stdin: Callable[[], bytes] | None = None) -> FilterSource:
    """The raw filter of a FILTER argument: `@file`, `-` (what `stdin` returns), or text.

    Raises InputError for text that starts with `[` or `{` and is not JSON, for an unknown word of the short form, and
    for what cannot be read.
    """
    if argument == "-":
        if stdin is None:
            raise InputError("a filter from stdin cannot be read here", hint="give it as text or as @file")
        return read_filter_text(decode_text(stdin(), "stdin"), "stdin")
    if argument.startswith("@"):
        path = argument[1:]
        if not path:
            raise InputError("@ stands without a file's name, expected @FILE")
        return read_filter_text(read_text_file(path, "a filter"), path)
    return read_filter_text(argument, "filter")


def read_filter_text(text: str, origin: str) -> FilterSource:
    """The raw filter in `text`: JSON as vLLM reads it (a whole body and its parameters too), else the short form."""
    stripped = text.strip()
    if not stripped:
        raise InputError("there is no filter, expected JSON or a short form", file=origin, hint=_EXAMPLES)
    try:
        value = decode_json(text, origin)
    except InputError as error:
        # No line: Python's limits refused it, and it is JSON all the same.
        if stripped[0] in "[{" or error.line is None:
            raise
        return FilterSource(read_short_form(stripped, origin), origin, "short form")
    return _unwrapped(value, origin)


def read_short_form(text: str, origin: str = "filter") -> object:
    """The raw filter that a short form stands for: `MISSING` for `all`, `[]` for `deny`, else a list of matchers."""
    words = [word.strip() for word in text.split(",")]
    if len(words) == 1 and words[0].lower() in ALONE:
        return MISSING if words[0].lower() == "all" else []
    return [_short_entry(word, origin) for word in words]


def _short_entry(text: str, origin: str) -> dict[str, str]:
    words = [word.strip().lower() for word in text.split(":")]
    if words == ["any"]:
        return {}
    if words == [""]:
        raise InputError("the short form has an empty entry", file=origin, hint=_EXAMPLES)
    entry: dict[str, str] = {}
    for word in words:
        if word in ALONE:
            raise InputError(f'"{word}" stands alone, not with other entries', file=origin)
        side = _SIDES.get(word)
        if side is None:
            raise InputError(f"unknown word {shown(word)} in the short form", file=origin, hint=_near(word))
        if side in entry:
            raise InputError(f"{shown(text)} names a {side} twice", file=origin, hint="a comma stands between entries")
        entry[side] = word
    return entry


def _near(word: str) -> str:
    known = (*_SIDES, *ALONE, "any")
    near = _MEANT_ALONE.get(word) or MEANT["medium"].get(word) or MEANT["locality"].get(word) or nearest(word, known)
    return f'did you mean "{near}"?' if near else f"known are {', '.join(known)}"


def _unwrapped(value: object, origin: str) -> FilterSource:
    if not isinstance(value, dict):
        return FilterSource(value, origin, "json")
    if not BODY_KEYS.isdisjoint(value):
        return _from_body(value, origin)
    if KEY in value:
        return FilterSource(value[KEY], origin, PARAMETERS)
    if lint := _near_keys(value):
        return FilterSource(MISSING, origin, PARAMETERS, lint)
    return FilterSource(value, origin, "json")


def _from_body(body: Mapping[str, object], origin: str) -> FilterSource:
    holder, where = body, PARAMETERS
    extra = body.get("extra_body")
    if PARAMETERS not in body and isinstance(extra, dict):
        # The OpenAI client lifts what stands in `extra_body` into the body that it sends.
        holder, where = extra, f"extra_body.{PARAMETERS}"
    lint = tuple(
        Note(None, "unknown_key", f'"{KEY}" stands beside {PARAMETERS}, not in it: vLLM ignores it')
        for place in (body, extra)
        if isinstance(place, dict) and KEY in place
    )
    parameters = holder.get(PARAMETERS)
    if parameters is None:
        return FilterSource(MISSING, origin, "request body", lint)
    if not isinstance(parameters, dict):
        raise InputError(f"expected an object, found {shown(parameters)}", file=origin, path=where)
    if KEY in parameters:
        return FilterSource(parameters[KEY], origin, "request body", lint)
    return FilterSource(MISSING, origin, "request body", lint + _near_keys(parameters))


def _near_keys(parameters: Mapping[str, object]) -> tuple[Note, ...]:
    """Notes on keys that look like a mistyped `kv_load_tiers`; other keys belong to others."""
    return tuple(
        Note(None, "unknown_key", f"unknown key {shown(key)}", f'did you mean "{KEY}"?')
        for key in parameters
        if nearest(key, (KEY,))
    )
