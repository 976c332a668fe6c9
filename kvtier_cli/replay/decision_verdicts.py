"""The verdicts of the lookup that decided about each block, learnt in one of two ways: from promotions, or one by one.

A block's deciding lookup is the last that reached the secondary tiers, else its last one (`story.py` goes by the same
rule). Whoever listens to single lookups keeps the manager from promoting whole runs at once, which costs much; where no
tier can answer RETRY, what was promoted and where each pass ended tell as much.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from kvtier_cli.replay.decision_columns import VERDICTS, Runs
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.lookup import PrefixAnswer
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import ReplaySpec

_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}


class VerdictTable:
    """Every combination of verdicts, one a secondary tier, that was met so far, each with a number. Number 0: no tier
    was reached."""

    def __init__(self, tiers: int) -> None:
        self._numbers: dict[tuple[Verdict, ...], int] = {(Verdict.NOT_REACHED,) * tiers: 0}

    def number(self, verdicts: Iterable[Verdict]) -> int:
        """The number of a combination, a new one where it is new."""
        return self._numbers.setdefault(tuple(verdicts), len(self._numbers))

    def codes(self) -> list[list[int]]:
        """The combinations in the order of their numbers, verdicts as places in `VERDICTS`."""
        return [[_CODES[verdict] for verdict in verdicts] for verdicts in self._numbers]


def can_derive(manager: TieringManager, spec: ReplaySpec) -> bool:
    """Whether `VerdictsFromPromotions` tells all: every tier is one of ours and never answers RETRY, and no block
    stands in a request twice."""
    ours = all(type(tier) is SecondaryTier and not tier.spec.lookup_retry for tier in manager.tiers)
    return ours and spec.identity != "id"


class VerdictsFromPromotions(Observer):
    """Hears no single lookups.

    Without RETRY only two kinds of lookups reach the tiers: those that start a promotion, and the miss that ends a
    pass. In either the tiers before the one that hit were skipped or missed, and those behind it were not reached.
    """

    def __init__(self, manager: TieringManager) -> None:
        self.table = VerdictTable(len(manager.tiers))
        self._manager = manager
        self._places = {tier.name: place for place, tier in enumerate(manager.tiers)}
        self._miss = len(manager.tiers)
        self._by_scan: dict[int, list[int]] = {}
        # What reached the tiers in this request: (which of `_numbers`, the blocks).
        self._reached: list[tuple[int, Sequence[BlockKey]]] = []
        self._deepest = 0
        self._length = 0

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        self._reached.append((self._places[tier], tuple(keys)))

    def pass_ended(self, req_id: int, keys: Sequence[BlockKey], answer: PrefixAnswer) -> None:
        length = self._length = answer.length
        self._deepest = max(self._deepest, length)
        if length < len(keys) and not self._manager.holds_promotions:
            key = keys[length]
            self._reached.append((self._manager.requests[req_id].denied.get(key, self._miss), (key,)))

    def _numbers(self, request: RequestState) -> list[int]:
        """By place: a hit in that tier; behind them: a miss in all; last: no tier reached."""
        numbers = self._by_scan.get(id(request.scan))  # a manager keeps the scans that it has made
        if numbers is None:
            admitted = [admitted for _, _, admitted in request.scan]
            misses = [Verdict.MISS if each else Verdict.SKIPPED for each in admitted]
            behind = [Verdict.NOT_REACHED] * len(misses)
            hits = [[*misses[:place], Verdict.HIT, *behind[place + 1 :]] for place in range(len(misses))]
            numbers = [*map(self.table.number, [*hits, misses]), 0]
            self._by_scan[id(request.scan)] = numbers
        return numbers

    def tell(
        self, request: RequestState, keys: Sequence[BlockKey], loaded: int, tiers: Sequence[int], row: int, out: Runs
    ) -> int:
        """Asked when the last pass has ended. Returns the number in `table` for the first of `keys` that will not be
        loaded, the one at `loaded` (0: for none).

        Those of the others go into `out` where they are not 0; the row of the first of `keys` is `row`. `tiers` are
        those that the request promoted the blocks to be loaded from (-1: from none; empty: none of them from any)."""
        numbers = self._numbers(request)
        stop = 0
        if tiers:
            # A block that is loaded was promoted by the last lookup that reached the tiers, or by none of this request.
            out.add(row, map(numbers.__getitem__, tiers))
        if loaded < (len(keys) if request.limits is None else request.limits.load):
            if self._deepest == self._length == loaded:  # behind the first block not loaded nothing was looked up
                stop = numbers[self._reached[-1][0]] if self._reached else 0
            else:
                deciding = {key: numbers[place] for place, reached in self._reached for key in reached}
                stop = deciding.get(keys[loaded], 0)
                out.add(row + loaded + 1, [deciding.get(key, 0) for key in keys[loaded + 1 :]])
        self._reached.clear()
        self._deepest = 0
        return stop


class VerdictsHeard(Observer):
    """Hears every lookup."""

    def __init__(self, manager: TieringManager) -> None:
        self.table = VerdictTable(len(manager.tiers))
        self._at = 0
        self._deciding: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def on_request(self, req_id: Hashable, load_filter: TierFilter) -> None:
        self._at = 0
        self._deciding.clear()
        self._last.clear()

    def on_lookup(
        self,
        req_id: Hashable,
        key: BlockKey,
        result: LookupResult,
        verdicts: Sequence[Verdict],
        *,
        promotion: str | None,
        denied: str | None,
        evicted: Sequence[BlockKey],
    ) -> None:
        number = self._last[self._at] = self.table.number(verdicts)
        if number:
            self._deciding[self._at] = number
        self._at += 1

    def on_step(self) -> None:
        self._at = 0

    def pass_ended(self, req_id: int, keys: Sequence[BlockKey], answer: PrefixAnswer) -> None:
        """The lookups have told all."""

    def tell(
        self, request: RequestState, keys: Sequence[BlockKey], loaded: int, tiers: Sequence[int], row: int, out: Runs
    ) -> int:
        """As `VerdictsFromPromotions.tell`."""
        deciding, last = self._deciding.get, self._last.get
        served = [
            deciding(index, 0) if key in request.promoted else last(index, 0) for index, key in enumerate(keys[:loaded])
        ]
        out.add(row, [*served, *(deciding(index, 0) for index in range(loaded, len(keys)))])
        return deciding(loaded, 0)


def deciding_verdicts(manager: TieringManager, spec: ReplaySpec) -> VerdictsFromPromotions | VerdictsHeard:
    """The cheapest way to learn the verdicts of a replay by `manager`."""
    return VerdictsFromPromotions(manager) if can_derive(manager, spec) else VerdictsHeard(manager)
