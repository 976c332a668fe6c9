"""Values written as fixtures write them: YAML on one line, quotes only where they are needed. Colours nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from kvtier_cli.render.console import plain

_WORD = re.compile(r"[A-Za-z_][\w./~@+-]*(?: [\w./~@+-]+)*", re.ASCII)
_NOT_TEXT = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))


def flow(value: object, most: int | None = None) -> str:
    """`value` as `{id: r1, blocks: [b1, b2]}`, with nothing in it that could move a cursor. Of each list and object
    only the first `most` items are written, and how many more there are."""
    if isinstance(value, Mapping):
        items = [f"{flow(str(key))}: {flow(value[key], most)}" for key in list(value)[:most]]
        return "{" + ", ".join(items + _more(len(value), most)) + "}"
    if isinstance(value, list | tuple):
        return "[" + names(value, most) + "]"
    if isinstance(value, str) and _WORD.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return plain(json.dumps(value, ensure_ascii=False, default=str))


def names(values: Sequence[object], most: int | None = None) -> str:
    """The items of a list without its brackets."""
    return ", ".join([flow(item, most) for item in values[:most]] + _more(len(values), most))


def _more(count: int, most: int | None) -> list[str]:
    return [] if most is None or count <= most else [f"and {count - most:,} more"]
