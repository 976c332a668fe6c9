"""Numbers of blocks in little room: long lists of ints that differ in little from lists that were packed before.

A pack shares one array, its base, with those before it, and keeps only what is different. A base that has become too
different is given up for a new one; so unpacking never takes more than one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

_NONE: Ints = np.empty(0, np.int32)
_GIVEN_UP = 0.5
"""The share of a list that may be different from the base."""


def as_ints(values: Sequence[Any]) -> Ints:
    """Raises TypeError, ValueError or OverflowError for anything but numbers of blocks or requests."""
    if type(values) is list and values and type(values[0]) is str:
        raise TypeError("texts are no numbers")  # numpy would read "7" as 7
    return np.array(values, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class PackedOrder:
    """An order of blocks, none twice: of the first `reach` of `base` those whose places are not in `left`, in their
    order, then those in `tail`. What is rarely touched stays in the base; what is touched goes to the end."""

    base: Ints
    reach: int
    left: Ints
    tail: Ints

    @classmethod
    def of(cls, order: Sequence[Any]) -> PackedOrder:
        """Pack an order by itself."""
        keys = as_ints(order)
        return cls(keys, len(keys), _NONE, _NONE)

    def moved_on(self, recent: Sequence[Any], gone: Sequence[Any], count: int) -> PackedOrder:
        """Pack what became of this order: the blocks in `recent` are at its end, whether they were in it or not, and
        those in `gone` have left, if they are not recent. Where then more than `count` are left, the first of the
        others have left too."""
        tail, left = as_ints(recent), as_ints(gone)
        before = self._keys()
        highest = max((int(keys.max()) for keys in (before, tail, left) if len(keys)), default=0)
        moved = np.zeros(highest + 1, bool)
        moved[tail] = True
        moved[left] = True
        stays = before[~moved[before]]
        stays = stays[max(0, len(stays) - (count - len(tail))) :]
        return self._like(np.concatenate((stays, tail)))

    def _like(self, keys: Ints) -> PackedOrder:
        """Pack an order that shares the base of this one if that pays."""
        base = self.base
        if not len(base) or not len(keys):
            return PackedOrder(keys, len(keys), _NONE, _NONE)
        place = np.full(max(int(keys.max()), int(base.max())) + 1, -1, np.int32)
        place[base] = np.arange(len(base), dtype=np.int32)
        places = place[keys]
        falls = np.flatnonzero((places[1:] <= places[:-1]) | (places[1:] < 0))
        head = 0 if places[0] < 0 else int(falls[0]) + 1 if len(falls) else len(keys)
        reach = int(places[head - 1]) + 1 if head else 0
        if len(keys) - head + reach - head > _GIVEN_UP * len(keys):
            return PackedOrder(keys, len(keys), _NONE, _NONE)
        gone = np.ones(reach, bool)
        gone[places[:head]] = False
        return PackedOrder(base, reach, np.flatnonzero(gone).astype(np.int32), keys[head:].copy())

    def _keys(self) -> Ints:
        head = self.base[: self.reach]
        if len(self.left):
            head = np.delete(head, self.left)
        return np.concatenate((head, self.tail)) if len(self.tail) else head

    def unpack(self) -> list[int]:
        """The order, as ints."""
        order: list[int] = self._keys().tolist()
        return order

    def sizes(self) -> dict[int, int]:
        """The arrays in it, identity → bytes."""
        return {id(array): array.nbytes for array in (self.base, self.left, self.tail)}


@dataclass(frozen=True, slots=True)
class PackedList:
    """A list of ints that mostly grows: the first `reach` of `base`, other `values` at `places`, then `tail`."""

    base: Ints
    reach: int
    places: Ints
    values: Ints
    tail: Ints

    @classmethod
    def of(cls, ints: Sequence[Any], like: PackedList | None = None) -> PackedList:
        """Pack `ints`, sharing the base of `like` if that pays."""
        array = as_ints(ints)
        if like is not None:
            reach = min(len(like.base), len(array))
            places = np.flatnonzero(array[:reach] != like.base[:reach]).astype(np.int32)
            if 2 * len(places) + len(array) - reach <= _GIVEN_UP * len(array):
                return cls(like.base, reach, places, array[places], array[reach:].copy())
        return cls(array, len(array), _NONE, _NONE, _NONE)

    def unpack(self) -> list[int]:
        """The list."""
        head = self.base[: self.reach]
        if len(self.places):
            head = head.copy()
            head[self.places] = self.values
        ints: list[int] = (np.concatenate((head, self.tail)) if len(self.tail) else head).tolist()
        return ints

    def sizes(self) -> dict[int, int]:
        """The arrays in it, identity → bytes."""
        return {id(array): array.nbytes for array in (self.base, self.places, self.values, self.tail)}
