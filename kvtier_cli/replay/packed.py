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
    def of(cls, order: Sequence[Any], like: PackedOrder | None = None) -> PackedOrder:
        """Pack `order`, sharing the base of `like` if that pays."""
        keys = as_ints(order)
        if like is None or not len(like.base) or not len(keys):
            return cls(keys, len(keys), _NONE, _NONE)
        base = like.base
        place = np.full(max(int(keys.max()), int(base.max())) + 1, -1, np.int32)
        place[base] = np.arange(len(base), dtype=np.int32)
        places = place[keys]
        falls = np.flatnonzero((places[1:] <= places[:-1]) | (places[1:] < 0))
        head = 0 if places[0] < 0 else int(falls[0]) + 1 if len(falls) else len(keys)
        reach = int(places[head - 1]) + 1 if head else 0
        if len(keys) - head + reach - head > _GIVEN_UP * len(keys):
            return cls(keys, len(keys), _NONE, _NONE)
        gone = np.ones(reach, bool)
        gone[places[:head]] = False
        return cls(base, reach, np.flatnonzero(gone).astype(np.int32), keys[head:].copy())

    def unpack(self) -> list[int]:
        """The order, as ints."""
        head = self.base[: self.reach]
        if len(self.left):
            head = np.delete(head, self.left)
        order: list[int] = (np.concatenate((head, self.tail)) if len(self.tail) else head).tolist()
        return order

    @property
    def own_bytes(self) -> int:
        """Bytes of what is not in the base."""
        return self.left.nbytes + self.tail.nbytes


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

    @property
    def own_bytes(self) -> int:
        """Bytes of what is not in the base."""
        return self.places.nbytes + self.values.nbytes + self.tail.nbytes


Packed = PackedOrder | PackedList
