"""A part of a decision log in words: named columns, a row a block of a request, for the formats that others read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kvtier_cli.replay.decision_columns import (
    NONE,
    OUTCOMES,
    REASONS,
    VERDICTS,
    Array,
    Bools,
    Part,
    holder_columns,
    unpack_holders,
    verdict_array,
)
from kvtier_cli.replay.outcomes import AbsentReason, Outcome

OUTCOME_WORDS: Final = [each.value for each in OUTCOMES]
REASON_WORDS: Final = [each.value for each in REASONS]
VERDICT_WORDS: Final = [each.value for each in VERDICTS]

_EVICTED = REASONS.index(AbsentReason.EVICTED) + 1
_ABSENT = OUTCOMES.index(Outcome.ABSENT)


@dataclass(frozen=True, slots=True)
class LogShape:
    """What rows need to know of the whole log: the tiers (the primary first), and how the columns are called."""

    tiers: Sequence[str]

    @property
    def verdict_columns(self) -> list[str]:
        """`verdict_nvme` and so on, one a secondary tier, in lookup order."""
        return [f"verdict_{tier}" for tier in self.tiers[1:]]

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in their order."""
        head = ["request", "request_id", "index", "block", "outcome", "tier", "reason", "passes"]
        return [*head, *self.verdict_columns, "holders", "evicted_by", "step"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a part as arrays, one entry a row. What holds words holds places in lists of words, -1 for none."""

    request: Array
    request_id: list[str | None]
    index: Array
    block: list[str]
    outcome: Array
    tier: Array
    reason: Array
    passes: Array
    verdicts: Array
    held: Bools
    evicted_by: Array
    step: Array


def rows_of(
    part: Part, shape: LogShape, verdict_table: Sequence[Sequence[int]], block_names: Callable[[list[int]], list[str]]
) -> Rows:
    """The rows of a part. `block_names` gives the names of blocks by their numbers."""
    columns = part.columns
    start = columns["start"]
    counts = np.diff(start)

    def of_request(values: Array) -> Array:
        return np.repeat(values, counts)

    absent = columns["outcome"] == _ABSENT
    reason = of_request(columns["reason"].astype(np.int16))
    table = verdict_array(verdict_table, len(shape.tiers))
    holders = [columns[name] for name in holder_columns(len(shape.tiers))]
    return Rows(
        request=of_request(np.arange(part.first, part.first + part.requests, dtype=np.int32)),
        request_id=[own for own, count in zip(part.ids, counts.tolist(), strict=True) for _ in range(count)],
        index=(np.arange(part.rows, dtype=np.int64) - of_request(start[:-1])).astype(np.int32),
        block=block_names(columns["key"].tolist()),
        outcome=columns["outcome"],
        tier=columns["tier"],
        reason=np.where(absent, reason - 1, NONE),
        passes=of_request(columns["passes"]),
        verdicts=table[columns["said"]],
        held=unpack_holders(holders, len(shape.tiers)),
        evicted_by=np.where(absent & (reason == _EVICTED), of_request(columns["by"]), NONE),
        step=of_request(columns["step"]),
    )


def as_values(rows: Rows, shape: LogShape, holders: Callable[[tuple[str, ...]], Any]) -> Iterator[tuple[Any, ...]]:
    """The rows one by one as plain values, in the order of `LogShape.columns`; None where there is nothing to say.
    `holders` writes the names of the tiers that hold a block as the format wants them."""
    tiers = shape.tiers
    sets: dict[bytes, Any] = {}
    held = []
    packed = np.packbits(rows.held, axis=1)
    for at, row in enumerate(map(bytes, packed)):
        if row not in sets:
            sets[row] = holders(tuple(name for name, holds in zip(tiers, rows.held[at], strict=True) if holds))
        held.append(sets[row])
    return zip(
        rows.request.tolist(),
        rows.request_id,
        rows.index.tolist(),
        rows.block,
        _worded(rows.outcome, OUTCOME_WORDS),
        _worded(rows.tier, tiers),
        _worded(rows.reason, REASON_WORDS),
        rows.passes.tolist(),
        *(_worded(column, VERDICT_WORDS) for column in rows.verdicts.T),
        held,
        (None if by < 0 else by for by in rows.evicted_by.tolist()),
        rows.step.tolist(),
        strict=True,
    )


def _worded(places: Array, words: Sequence[str]) -> list[str | None]:
    return list(map([*words, None].__getitem__, places.tolist()))  # -1, none, is the last
