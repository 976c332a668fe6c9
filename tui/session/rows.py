"""What became of each request, in a byte a block and some twenty a request: rows of lists, timelines, jumps."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from enum import IntFlag
from typing import Final, NamedTuple

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.model import BlockKey

OUTCOMES: Final = tuple(Outcome)
PROMOTED_FROM: Final = 16
"""A block's code is its outcome's place in `OUTCOMES`; of a promoted one this, and the place of its tier."""

CODE: Final = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_LAST_CODE: Final = 255
_REASONS: Final = tuple(AbsentReason)
_REASON_CODE: Final = {reason: code for code, reason in enumerate(_REASONS)}
_TAIL: Final = bytes((CODE[Outcome.UNREACHED],))


class Mark(IntFlag):
    """What people look for in a request."""

    SKIP = 1
    """The filter skipped a tier that holds the first block which was not served."""
    DENIAL = 2
    """A tier hit, and the CPU tier could give no slot."""
    PROMOTION = 4
    EVICTION = 8
    """The request evicted blocks from the CPU tier."""
    GIVE_UP = 16


_SKIP, _DENIAL, _PROMOTION, _EVICTION, _GIVE_UP = (mark.value for mark in Mark)


class Row(NamedTuple):
    """One request of a list. `codes` has a byte a block (`PROMOTED_FROM`); `stop`, `tier` and `reason` say why the
    first block that was not served was not."""

    request: int
    served: int
    blocks: int
    codes: bytes
    stop: Outcome | None
    tier: int | None
    reason: AbsentReason | None
    passes: int


def outcome_of(code: int) -> Outcome:
    """The outcome that a block's code stands for."""
    return Outcome.PROMOTED if code >= PROMOTED_FROM else OUTCOMES[code]


def promoted_from(code: int) -> int | None:
    """The place of the tier that a block was promoted from, None where it was not."""
    return code - PROMOTED_FROM if code >= PROMOTED_FROM else None


class RequestRows:
    """The rows of a replay, whose `PassWatcher` it is: it passes on to the run's own sums what it is told.

    Only grows. One thread writes, others may read those rows that are counted in `count`.
    """

    def __init__(self) -> None:
        self._codes = bytearray()
        self.ends = array("Q", [0])
        """Blocks up to the end of each request, from 0 on."""
        self.served_sums = array("Q", [0])
        self.lost_sums = array("Q", [0])
        """Blocks lost to the filter (an upper bound), likewise."""
        self._tiers = array("b")
        self._reasons = array("b")
        self._passes = array("I")
        self._marks = bytearray()
        self._open = 0

    def watch(self, run: TraceRun) -> None:
        """Keep what `run` does from now on."""
        self._sums, self._manager = run.sums, run.manager
        self._seen = self._counted()
        run.loop.watcher = self

    def _counted(self) -> tuple[int, int]:
        counters = self._manager.counters
        return counters.denied, counters.evicted_by_promotions + counters.evicted_by_stores

    @property
    def count(self) -> int:
        return len(self._marks)

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        self._sums.last_pass(req_id, keys, loaded, gave_up, first_new)
        codes = self._codes
        promoted = self._manager.requests[req_id].promoted
        if promoted:
            tiers = map(promoted.get, keys[:loaded])
            codes += bytes([0 if tier is None else min(PROMOTED_FROM + tier, _LAST_CODE) for tier in tiers])
        else:
            codes += bytes(loaded)  # zero is the code of `primary`
        marks = _PROMOTION if promoted else 0
        stop = self._sums.stop
        if stop is None:
            self._tiers.append(-1)
            self._reasons.append(-1)
        else:
            codes.append(CODE[stop.outcome])
            codes += _TAIL * (len(keys) - loaded - 1)
            self._tiers.append(-1 if stop.tier is None else stop.tier)
            self._reasons.append(-1 if stop.reason is None else _REASON_CODE[stop.reason])
            if stop.outcome is Outcome.FILTERED:
                marks |= _SKIP
        self._open = marks | _GIVE_UP if gave_up else marks

    def finished(self, loaded: int, passes: int) -> None:
        """The request is over; its row counts from now on."""
        marks, seen = self._open, self._counted()
        if seen != self._seen:
            if seen[0] != self._seen[0]:
                marks |= _DENIAL
            if seen[1] != self._seen[1]:
                marks |= _EVICTION
            self._seen = seen
        self.ends.append(len(self._codes))
        self.served_sums.append(self.served_sums[-1] + loaded)
        self.lost_sums.append(self._sums.lost_to_filter)
        self._passes.append(passes)
        self._marks.append(marks)

    def add(
        self,
        codes: bytes,
        served: int,
        tier: int | None,
        reason: AbsentReason | None,
        passes: int,
        marks: Mark,
        lost: int,
    ) -> None:
        """The row of a request that was replayed elsewhere; `lost` blocks to the filter."""
        self._codes += codes
        self._tiers.append(-1 if tier is None else tier)
        self._reasons.append(-1 if reason is None else _REASON_CODE[reason])
        self.ends.append(len(self._codes))
        self.served_sums.append(self.served_sums[-1] + served)
        self.lost_sums.append(self.lost_sums[-1] + lost)
        self._passes.append(passes)
        self._marks.append(marks.value)

    def row(self, index: int) -> Row:
        start, end = self.ends[index], self.ends[index + 1]
        served = self.served_sums[index + 1] - self.served_sums[index]
        tier, reason = self._tiers[index], self._reasons[index]
        codes = bytes(self._codes[start:end])
        stop = None if served == end - start else OUTCOMES[codes[served]]
        return Row(
            index,
            served,
            end - start,
            codes,
            stop,
            None if tier < 0 else tier,
            None if reason < 0 else _REASONS[reason],
            self._passes[index],
        )

    def codes(self, first: int, last: int) -> bytes:
        """The codes of all blocks of the requests from `first` to before `last`."""
        return bytes(self._codes[self.ends[first] : self.ends[last]])

    def find(self, mark: Mark, start: int, *, backwards: bool = False) -> int | None:
        """The next request with `mark` behind `start`, or the last one in front of it; None where there is none."""
        matching = bytes(byte for byte in range(256) if byte & mark.value)
        if backwards:
            last = re.compile(b"[" + re.escape(matching) + b"]").search(bytes(self._marks[: max(start, 0)])[::-1])
            return None if last is None else start - 1 - last.start()
        found = re.compile(b"[" + re.escape(matching) + b"]").search(bytes(self._marks), start + 1)
        return None if found is None else found.start()

    def first(self, count: int) -> RequestRows:
        """A copy of the first `count` rows, for a replay that goes on otherwise from there."""
        kept = RequestRows()
        kept._codes = self._codes[: self.ends[count]]
        kept.ends, kept.served_sums = self.ends[: count + 1], self.served_sums[: count + 1]
        kept.lost_sums = self.lost_sums[: count + 1]
        kept._tiers, kept._reasons, kept._passes = self._tiers[:count], self._reasons[:count], self._passes[:count]
        kept._marks = self._marks[:count]
        return kept
