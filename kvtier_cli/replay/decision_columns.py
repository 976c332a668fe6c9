"""The columns of a decision log: their words, their types, a piece of a log as arrays. Touches no files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.tiering.model import Verdict

Array: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]

OUTCOMES: Final = tuple(Outcome)
REASONS: Final = tuple(AbsentReason)
VERDICTS: Final = (Verdict.NOT_REACHED, Verdict.SKIPPED, Verdict.MISS, Verdict.RETRY, Verdict.HIT)
"""A column holds a word as its place here; of a reason as its place and one more, 0 being none."""

NONE: Final = -1
"""No tier, no request."""

ROW_TYPES: Final = {"key": "<i4", "outcome": "|u1", "tier": "<i2", "said": "<u4"}
"""A row a block of a request. `key`: the block's number; `tier`: its place among all tiers, the primary at 0; `said`:
the place of its verdicts in the log's table of them. Beside these, `holders_0`, `holders_1`… (`|u1`) hold a bit a tier:
the tier at place p in `holders_{p // 8}`, its bit p % 8."""

REQUEST_TYPES: Final = {
    "start": "<i8",
    "passes": "<u4",
    "step": "<i8",
    "gave_up": "|u1",
    "reason": "|u1",
    "by": "<i4",
    "left": "<i2",
    "filter": "<u4",
}
"""A row a request, but for `start`, which has one more: the row of its first block, and at last the number of rows.
`reason`, `by` and `left` are those of its absent block: why, by which request's doing, and which tier it left last;
`filter`: the place of its filter in the log's table of them."""

SAID_SMALLER: Final = ("|u1", "<u2", "<u4")
"""What the column `said` may be stored as: the first type that holds all its places."""


def holder_columns(tiers: int) -> list[str]:
    """The names of the columns that hold a bit for each of so many tiers, the primary among them."""
    return [f"holders_{at}" for at in range((tiers + 7) // 8)]


def pack_holders(held: Array) -> list[Array]:
    """Rows of 0 and 1, one a tier, as the columns of `holder_columns`."""
    return list(np.packbits(held, axis=0, bitorder="little"))


def unpack_holders(columns: list[Array], tiers: int) -> Bools:
    """The columns of `holder_columns` as an array of (rows, tiers)."""
    bits = np.unpackbits(np.stack(columns, axis=1), axis=1, count=tiers, bitorder="little")
    return bits.astype(np.bool_)


class Runs:
    """Values for some rows of a column, given a run of rows at a time."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._counts = array("q")
        self._values = array("i")

    def add(self, row: int, values: Iterable[int]) -> None:
        """Values for `row` and those behind it."""
        before = len(self._values)
        self._values.extend(values)
        self._rows.append(row)
        self._counts.append(len(self._values) - before)

    def put_into(self, column: Array) -> None:
        """Write all values to their rows; of two for one row the later."""
        counts = np.frombuffer(self._counts, np.int64)
        ends = np.cumsum(counts)
        shifts = np.frombuffer(self._rows, np.int64) - (ends - counts)
        column[np.arange(len(self._values)) + np.repeat(shifts, counts)] = np.frombuffer(self._values, np.int32)


def verdict_array(combinations: Sequence[Sequence[int]], tiers: int) -> Array:
    """A log's table of verdicts as an array of (combinations, secondary tiers)."""
    return np.array(combinations, np.uint8).reshape(len(combinations), tiers - 1)


@dataclass(frozen=True, slots=True)
class Part:
    """Whole requests of a log, one after another. `first` is the number of the first of them; the `start` among its
    columns counts the part's own rows. `ids` are the requests' own names, None where they have none."""

    first: int
    columns: dict[str, Array]
    ids: list[str | None]

    @property
    def requests(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> int:
        return len(self.columns["key"])
