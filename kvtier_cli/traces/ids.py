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
