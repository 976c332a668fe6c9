"""Compares outcomes with what a fixture expects of them, in part (`expect`) or whole (`outcomes`).

In an `expect` what is not named is free, and a range may stand for a number; in `outcomes` every field counts. Which
fields there are to be named is `outcome_shape.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from kvtier_cli.replay.outcome_shape import NOT_RESIDENT, RANGE
from kvtier_cli.tiering.topology_shape import Path


class Difference(NamedTuple):
    """At `path` of the outcome something else was `found`. `remark` says where null stands for nothing at all."""

    path: Path
    expected: Any
    found: Any
    remark: str | None = None


def compare_part(
    expect: Mapping[str, Any], outcome: Mapping[str, Any], resident: Mapping[Any, Any]
) -> list[Difference]:
    """Where `outcome` is not as `expect` says; `resident` holds the blocks of the primary after the op."""
    named = {key: value for key, value in expect.items() if key != NOT_RESIDENT}
    found = list(_differences(named, outcome, (), whole=False))
    found += [
        Difference((NOT_RESIDENT, index), block, "resident")
        for index, block in enumerate(expect.get(NOT_RESIDENT, ()))
        if block in resident
    ]
    return found


def compare_whole(expected: Mapping[str, Any], outcome: Mapping[str, Any]) -> list[Difference]:
    """Where `outcome` and `expected` are not the same. The state counts only where `expected` has it."""
    return list(_differences(expected, as_asked(expected, outcome), (), whole=True))


def as_asked(expected: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome, without its state where `expected` has none."""
    return {key: value for key, value in outcome.items() if key != "state" or key in expected}


def count_leaves(expected: object) -> int:
    """How many expectations there are in `expected`: each value, range and list of plain values is one."""
    if isinstance(expected, Mapping) and not is_range(expected):
        absent = expected.get(NOT_RESIDENT)
        named = sum(count_leaves(value) for key, value in expected.items() if key != NOT_RESIDENT)
        return named + (len(absent) if isinstance(absent, list) else 0)
    if _holds_objects(expected):
        return sum(count_leaves(item) for item in expected)
    return 1


def is_range(expected: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether this object stands for numbers from `min` to `max`."""
    return isinstance(expected, Mapping) and bool(expected) and all(key in RANGE for key in expected)


def fits(expected: object, found: object) -> bool:
    """Whether one value is as expected: equal (1 is 1.0, but never true), or within the range."""
    if is_range(expected) and _is_number(found):
        return bool(expected.get("min", found) <= found <= expected.get("max", found))
    return same(expected, found)


def matches(expected: object, found: object) -> bool:
    """Whether `found` is as an `expect` says, all the way down: what it does not name is free."""
    return next(_differences(expected, found, (), whole=False), None) is None


def same(one: object, other: object) -> bool:
    """Whether two values are equal all the way down, true and 1 being different and 1 and 1.0 not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def settled(expected: object, found: object, path: Path = ()) -> Any:
    """What an `expect` has to say so that `found` fits: `expected` where it fits already, and only what it names.

    Raises KeyError with the path of something that is named and not there, for which no value can stand.
    """
    if fits(expected, found):
        return expected
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        missing = next((key for key in expected if key not in found), None)
        if missing is not None:
            raise KeyError((*path, missing))
        return {key: settled(value, found[key], (*path, key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(found, list):
        known = min(len(expected), len(found))
        head = [settled(expected[index], found[index], (*path, index)) for index in range(known)]
        return head + [_named_part(item, expected) for item in found[known:]]
    return found


def _named_part(item: object, expected: Sequence[object]) -> object:
    """A further item of a list, with only those fields that are named in the items before it, if any are."""
    named = {key for other in expected if isinstance(other, Mapping) for key in other}
    if isinstance(item, Mapping) and named:
        return {key: value for key, value in item.items() if key in named}
    return item


def _differences(expected: object, found: object, path: Path, *, whole: bool) -> Iterator[Difference]:
    if same(expected, found) if whole else fits(expected, found):
        return
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key, value in expected.items():
            if key in found:
                yield from _differences(value, found[key], (*path, key), whole=whole)
            else:
                yield Difference((*path, key), value, None, "there is none")
        for key in found if whole else ():
            if key not in expected:
                yield Difference((*path, key), None, found[key], "none was expected")
    elif isinstance(expected, list) and isinstance(found, list) and _by_item(expected, found):
        for index, (value, there) in enumerate(zip(expected, found, strict=True)):
            yield from _differences(value, there, (*path, index), whole=whole)
    else:
        yield Difference(path, expected, found)


def _by_item(expected: Sequence[object], found: Sequence[object]) -> bool:
    """Whether two lists are better compared item by item than as one value."""
    return len(expected) == len(found) and _holds_objects(expected)


def _holds_objects(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
