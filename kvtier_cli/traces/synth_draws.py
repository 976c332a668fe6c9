"""Random draws that give the same values on every machine and Python: one uniform source, tables of whole numbers.

Only `random.Random(seed).random()` is asked, whose values no release changes, and no function of the C library's
`math` takes part: those differ in the last bit from one machine to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final, TypeVar

T = TypeVar("T")

_STEPS: Final = 1024
_ONE: Final = 1 << 20

_EXPONENTIAL: Final = tuple(accumulate(_ONE // (_STEPS - step) for step in range(_STEPS)))
"""Quantiles of the exponential distribution of mean `_ONE`: of so many waits the shortest, the next… as is expected.
Between one and the next lies, as is expected, the mean over how many are longer: a sum of fractions gives them all."""

_HEAVIEST: Final = 1 << 32


class Draws:
    """Draws from the stream of one seed (0 or more)."""

    __slots__ = ("uniform",)

    def __init__(self, seed: int) -> None:
        self.uniform = Random(seed).random  # noqa: S311 - nothing here is secret
        """The next number from 0 to 1, 1 left out."""

    def below(self, number: int) -> int:
        """A whole number from 0 to `number` - 1, all equally likely."""
        return int(self.uniform() * number)

    def one_of(self, choices: Sequence[T]) -> T:
        """One of `choices`; to make one likelier, repeat it."""
        return choices[int(self.uniform() * len(choices))]

    def size(self, quantiles: Sequence[int]) -> int:
        """A whole number of the distribution whose `quantiles`, evenly apart from the least to the largest, are given:
        `(10, 20, 90)` is below 20 as often as above."""
        place = self.uniform() * (len(quantiles) - 1)
        step = int(place)
        low = quantiles[step]
        return low + int((place - step) * (quantiles[step + 1] - low))

    def wait(self, mean: int) -> int:
        """The time to the next of events that come at random, `mean` apart on average, in its unit."""
        return _EXPONENTIAL[int(self.uniform() * _STEPS)] * mean // _ONE


class Popularity:
    """Ranks from 0 drawn as by Zipf's law: the second is drawn half as often as the first, the third a third."""

    __slots__ = ("_sums", "_total")

    def __init__(self, count: int) -> None:
        self._sums = list(accumulate(_HEAVIEST // rank for rank in range(1, count + 1)))
        self._total = self._sums[-1]

    def draw(self, draws: Draws) -> int:
        """A rank."""
        return bisect_right(self._sums, int(draws.uniform() * self._total))
