"""Which items of a list were expected and are missing, and which are there and were not expected. Shows nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from kvtier_cli.replay.expect import matches

_LARGEST = 250_000
"""Pairs of items that are compared, beyond what the two lists begin and end with; larger ones differ as a whole."""


class DiffItem(NamedTuple):
    """One item of either list; an item that both have is as it was found."""

    kind: Literal["same", "missing", "extra"]
    value: Any


def diff_lists(
    expected: Sequence[Any], found: Sequence[Any], equal: Callable[[Any, Any], bool] = matches
) -> list[DiffItem]:
    """Both lists in one, in order: as few `missing` and `extra` items as can be. `equal` says when an item is as
    expected; as it stands, when a fixture would call it that."""
    head = 0
    shorter = min(len(expected), len(found))
    while head < shorter and equal(expected[head], found[head]):
        head += 1
    tail = 0
    while tail < shorter - head and equal(expected[-1 - tail], found[-1 - tail]):
        tail += 1
    middle = _middle(expected[head : len(expected) - tail], found[head : len(found) - tail], equal)
    alike = [DiffItem("same", item) for item in found]
    return alike[:head] + middle + alike[len(found) - tail :]


def diff_places(expected: Sequence[Any], found: Sequence[Any]) -> list[DiffItem]:
    """Both lists in one, where they are of the same length and an item's place says what it is about."""
    items: list[DiffItem] = []
    for wanted, there in zip(expected, found, strict=True):
        if matches(wanted, there):
            items.append(DiffItem("same", there))
        else:
            items += (DiffItem("missing", wanted), DiffItem("extra", there))
    return items


def _middle(expected: Sequence[Any], found: Sequence[Any], equal: Callable[[Any, Any], bool]) -> list[DiffItem]:
    missing = [DiffItem("missing", item) for item in expected]
    extra = [DiffItem("extra", item) for item in found]
    if not missing or not extra or len(missing) * len(extra) > _LARGEST:
        return missing + extra
    # longest[i][j]: how many items expected[i:] and found[j:] have in common, in order.
    longest = [[0] * (len(found) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) - 1, -1, -1):
        for j in range(len(found) - 1, -1, -1):
            if equal(expected[i], found[j]):
                longest[i][j] = longest[i + 1][j + 1] + 1
            else:
                longest[i][j] = max(longest[i + 1][j], longest[i][j + 1])
    items: list[DiffItem] = []
    i = j = 0
    while i < len(expected) and j < len(found):
        if longest[i][j] == longest[i + 1][j]:
            items.append(missing[i])
            i += 1
        elif longest[i][j] == longest[i][j + 1]:
            items.append(extra[j])
            j += 1
        else:
            items.append(DiffItem("same", found[j]))
            i, j = i + 1, j + 1
    return items + missing[i:] + extra[j:]
