"""Ids of blocks as they stand in traces: ints of any size, or text. One id has one form, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,4299}|-[1-9][0-9]{0,4298}")  # as long as msgspec lets a number be


def canonical(text: str) -> int | str:
    """`"5"` is the id 5; what is not the one way to write an int (`"05"`, `"-0"`, `"5.0"`) is a name of its own."""
    if not _DECIMAL.fullmatch(text):
        return text
    try:
        return int(text)
    except ValueError:  # PYTHONINTMAXSTRDIGITS is set lower than its default
        return text


def canonical_ids(ids: Iterable[int | str]) -> list[int | str]:
    """All `ids` in their one form."""
    return [canonical(each) if type(each) is str else each for each in ids]


class LocalIds:
    """Ids that hold within a space of their own, a conversation say: `SPACE:ID` in the trace as a whole."""

    def __init__(self) -> None:
        self._names: dict[str, dict[int | str, int | str]] = {}

    def of(self, space: str, ids: Iterable[int | str]) -> list[int | str]:
        """The `ids` of one space by the names that are theirs alone. One id is one string, however often it comes."""
        names = self._names.setdefault(space, {})
        found = []
        for each in canonical_ids(ids):
            name = names.get(each)
            if name is None:
                name = names[each] = f"{space}:{each}"
            found.append(name)
        return found
