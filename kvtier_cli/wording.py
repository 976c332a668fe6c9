"""Words of messages: foreign values made safe to print and short, near misses, numbers of things. Formats no more."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN_CHARACTERS = 48
"""How much of a foreign value a message repeats."""

_LONGEST_COMPARED = 64


def escape(text: str) -> str:
    """`text` with everything that does not print (control and format characters, half surrogates) as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def shorten(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """`text`, its end cut and marked with dots where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """`value` as compact JSON (strings in double quotes), escaped and cut to about `limit` characters.

    What JSON cannot say (dates of a TOML file, for one) is shown as its text; what is nested too deeply or has
    too many digits, as its kind.
    """
    import json

    if isinstance(value, str):
        value = value[: limit + 1]
    elif value is not None and not isinstance(value, bool | int | float | list | tuple | dict):
        return escape(shorten(str(value), limit))
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (RecursionError, TypeError, ValueError):
        return kind_of(value)
    return escape(shorten(text, limit))


def kind_of(value: object) -> str:
    """What `value` is, in JSON's words and with its article: "a string", "an object", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` is most like, upper or lower case alike; None if none is near."""
    if len(word) > _LONGEST_COMPARED:
        return None
    import difflib

    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 step`, `1,204 blocks`; `plural` where it is not made with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def one_of(words: Iterable[str]) -> str:
    """The words as a choice: "lru or arc", "a, b or c"."""
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word: the nearest known one, or else all that are known."""
    words = list(known)
    near = nearest(word, words)
    return f'did you mean "{near}"?' if near else f"known are {', '.join(words)}"
