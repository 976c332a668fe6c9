"""What became of one block each time a request of a decision log asked for it: its life as far as a log tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from kvtier_cli.replay.decision_columns import OUTCOMES, REASONS
from kvtier_cli.replay.decision_log import DecisionLog
from kvtier_cli.replay.life import Deed
from kvtier_cli.replay.life_words import LifeRow, not_served
from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.reasons import Show, joined, words_of
from kvtier_cli.wording import count


class Reference(NamedTuple):
    """One request that had the block at place `at`. `request` is its number, `name` what it is called; `outcome`,
    `tier`, `holders` and `step` as a log's rows have them; `reason` of an absent block."""

    request: int
    name: str
    at: int
    outcome: Outcome
    tier: str | None
    reason: AbsentReason | None
    holders: tuple[str, ...]
    step: int


@dataclass(frozen=True, slots=True)
class LoggedLife:
    """All references to the block at place `index` of request `request`, in order."""

    request: int
    index: int
    block: str
    references: Sequence[Reference]


def logged_life(log: DecisionLog, request: int, index: int) -> LoggedLife:
    """The life of the block at place `index` of `request`: a look at every row of the log."""
    key = int(log.rows(request).keys[index])
    found = np.flatnonzero(log.of_rows("key") == key)
    start = log.of_requests("start")
    requests = np.searchsorted(start, found, side="right") - 1
    rows = log.rows_in(found)
    tiers, steps, reasons = log.tiers, log.of_requests("step"), log.of_requests("reason")
    references = []
    for row, number, outcome, tier, held in zip(
        found.tolist(), requests.tolist(), rows.outcomes.tolist(), rows.tiers.tolist(), rows.held, strict=True
    ):
        became = OUTCOMES[outcome]
        reason = int(reasons[number]) if became is Outcome.ABSENT else 0
        references.append(
            Reference(
                number,
                log.request_name(number),
                row - int(start[number]),
                became,
                None if tier < 0 else tiers[tier],
                REASONS[reason - 1] if reason else None,
                tuple(name for name, holds in zip(tiers, held, strict=True) if holds),
                int(steps[number]),
            )
        )
    return LoggedLife(request, index, log.block_name(key), references)


def life_sentences(life: LoggedLife, show: Show = str) -> str:
    """How often the block was asked for, what became of it, and where it was at last."""
    counts = Counter(each.outcome for each in life.references)
    told = ", ".join(f"{counts[outcome]:,} {words_of(outcome)}" for outcome in Outcome if counts[outcome])
    last = life.references[-1]
    held = joined(map(show, last.holders)) or "no tier"
    return (
        f"The log has it {count(len(life.references), 'time')}: {told}. When {show(last.name)} asked last, "
        f"{held} had it."
    )


def reference_rows(life: LoggedLife, show: Show = str) -> list[LifeRow]:
    """The rows of the table: what became of it for several requests in a row alike is one row, but for the request
    that is explained."""
    rows = []
    for _, group in groupby(life.references, key=lambda each: (_kind(each), each.request == life.request)):
        alike = list(group)
        first, last = alike[0], alike[-1]
        requests = show(first.name) + ("" if last.request == first.request else f" to {show(last.name)}")
        times = "" if len(alike) == 1 else f", {len(alike):,} times"
        rows.append(LifeRow(first.step, last.step, requests, first.request == life.request, _what(first, show) + times))
    return rows


def _kind(reference: Reference) -> tuple[object, ...]:
    holder = reference.tier or next(iter(reference.holders), None)
    return reference.outcome, holder if reference.outcome is Outcome.UNREACHED else reference.tier, reference.reason


def _what(reference: Reference, show: Show) -> str:
    outcome, tier = reference.outcome, show(reference.tier or "")
    if outcome is Outcome.PRIMARY:
        return "primary"
    if outcome is Outcome.PROMOTED:
        return f"promoted from {tier}"
    if outcome is Outcome.UNREACHED:
        holder = show(reference.tier or next(iter(reference.holders), ""))
        return f"unreached ({f'{holder} holds it' if holder else 'not stored'})"
    return not_served(Deed(outcome.value), tier, reference.reason)
