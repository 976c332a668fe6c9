"""Keeps what a replay decides about every block, as columns. What becomes of them is the business of who takes them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

import numpy as np

from kvtier_cli.replay.decision_columns import NONE, OUTCOMES, REASONS, Array, Part, holder_columns, pack_holders
from kvtier_cli.replay.decision_verdicts import deciding_verdicts
from kvtier_cli.replay.loop import PassWatcher
from kvtier_cli.replay.outcomes import AbsentReason, BlockHistory, Outcome, Stop, find_stop
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filter_model import ALL, TierFilter, TierMatcher
from kvtier_cli.tiering.lookup import PrefixAnswer
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.topology import PRIMARY_NAME

PART_ROWS = 1 << 16
"""A part is handed over when it has so many rows, or somewhat more: a request is never cut."""

_PRIMARY, _PROMOTED, _UNREACHED = (
    OUTCOMES.index(each) for each in (Outcome.PRIMARY, Outcome.PROMOTED, Outcome.UNREACHED)
)
_OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_REASON_CODES: dict[AbsentReason | None, int] = {None: 0, **{reason: code for code, reason in enumerate(REASONS, 1)}}
_KEPT_FILTERS = 10_000
_NEW = Stop(0, Outcome.ABSENT, None, AbsentReason.COLD)


class DecisionRecorder:
    """Records the decisions of `run` from now on, and gives them to `take` a part at a time.

    It stands in the place of the run's watcher and tells that one on; call `close` when the run is over, for the last
    part. `tiers`: the names by place, the primary first. `filters`: the different filters of the requests, by place,
    each of their entries once.
    """

    def __init__(self, run: TraceRun, take: Callable[[Part], object]) -> None:
        self._run = run
        self._take = take
        self._manager = manager = run.manager
        self._history: BlockHistory = run.history
        self._watcher: PassWatcher | None = run.loop.watcher
        self._verdicts = deciding_verdicts(manager, run.loop.spec)
        self.tiers = [PRIMARY_NAME, *(tier.name for tier in manager.tiers)]
        self._places = {name: place for place, name in enumerate(self.tiers)}
        self._peeks = [_peek(tier) for tier in manager.tiers]
        self.filters: list[TierFilter] = []
        self._filter_places: dict[TierFilter, int] = {}
        self._places_of_sets: dict[frozenset[TierMatcher] | None, int] = {}
        self._passes = 0
        self._first = 0
        self._start_part()
        run.loop.watcher = self
        run.loop.pass_ended = self._pass_ended
        run.listen(self._verdicts)

    def verdict_table(self) -> list[list[int]]:
        """The combinations of verdicts that were met so far; the column `said` counts them from 0."""
        return self._verdicts.table.codes()

    def _start_part(self) -> None:
        self._keys = array("i")
        self._outcomes = bytearray()
        self._promoted_from = array("h")
        self._said = array("I")
        self._held = [bytearray() for _ in self.tiers]
        self._starts = array("q", [0])
        self._numbers: dict[str, array[int]] = {
            "passes": array("I"),
            "step": array("q"),
            "gave_up": array("B"),
            "reason": array("B"),
            "by": array("i"),
            "left": array("h"),
            "filter": array("I"),
        }
        self._ids: list[str | None] = []

    def _pass_ended(self, req_id: int, keys: Sequence[BlockKey], answer: PrefixAnswer) -> None:
        self._passes += 1
        self._verdicts.pass_ended(req_id, keys, answer)

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        """See `PassWatcher`."""
        if self._watcher is not None:
            self._watcher.last_pass(req_id, keys, loaded, gave_up, first_new)
        request = self._manager.requests[req_id]
        total = len(keys)
        promoted = request.promoted
        served = keys if loaded == total else keys[:loaded]
        tiers = list(map(promoted.get, served, repeat(NONE))) if promoted else []
        self._keys.extend(self._run.loop.prompt)
        self._promoted_from.extend(tiers or repeat(NONE, loaded))
        self._outcomes += bytes(loaded)
        stop: Stop | None = None
        if loaded < total:
            stop = self._stop(request, keys, loaded, gave_up, first_new)
            self._promoted_from.append(NONE if stop.tier is None else stop.tier)
            self._promoted_from.extend(repeat(NONE, total - loaded - 1))
            self._outcomes.append(_OUTCOME_CODES[stop.outcome])
            self._outcomes += bytes((_UNREACHED,)) * (total - loaded - 1)
        self._verdicts.tell(request, keys, loaded, tiers, self._said)
        self._add_holders(keys, loaded, first_new)
        self._add_request(request, gave_up, stop)
        if len(self._keys) >= PART_ROWS:
            self._hand_over()

    def _stop(
        self, request: RequestState, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int
    ) -> Stop:
        if loaded >= first_new and not (request.failed or gave_up or request.denied or self._manager.holds_promotions):
            return _NEW  # as `OutcomeSums` knows too
        stop = find_stop(self._manager, request, keys, loaded, gave_up, self._history)
        assert stop is not None  # noqa: S101 - a block was not loaded
        return stop

    def _add_holders(self, keys: Sequence[BlockKey], loaded: int, first_new: int) -> None:
        """Which tiers have each block, now that the last pass has ended; of new blocks none has any."""
        known = keys if first_new >= len(keys) else keys[:first_new]
        new = len(keys) - len(known)
        primary, others = self._held[0], self._held[1:]
        primary += b"\1" * loaded
        if loaded < len(known):
            primary.extend(map(self._manager.primary.is_ready, known[loaded:]))
        for held, peek in zip(others, self._peeks, strict=True):
            held.extend(map(peek, known))
        if new:
            for held in self._held:
                held += bytes(new)

    def _add_request(self, request: RequestState, gave_up: bool, stop: Stop | None) -> None:
        own = self._run.request
        self._ids.append(None if own is None else own.request_id)
        self._starts.append(len(self._keys))
        add = self._numbers
        add["passes"].append(self._passes)
        add["step"].append(self._manager.counters.steps)
        add["gave_up"].append(gave_up)
        add["reason"].append(0 if stop is None else _REASON_CODES[stop.reason])
        add["by"].append(stop.by if stop is not None and isinstance(stop.by, int) else NONE)
        left = None if stop is None else stop.evicted_from
        add["left"].append(NONE if left is None else self._places[left])
        add["filter"].append(self._filter_place(request.context.load_filter))
        self._passes = 0

    def _filter_place(self, load_filter: TierFilter) -> int:
        place = self._filter_places.get(load_filter)
        if place is None:
            # There are nine different matchers, so however many filters a trace has, few of them are different.
            key = None if load_filter is ALL else frozenset(load_filter.matchers)
            place = self._places_of_sets.setdefault(key, len(self._places_of_sets))
            if place == len(self.filters):
                self.filters.append(
                    load_filter if key is None else TierFilter(tuple(dict.fromkeys(load_filter.matchers)))
                )
            if len(self._filter_places) < _KEPT_FILTERS:
                self._filter_places[load_filter] = place
        return place

    def close(self) -> None:
        """Hand over what is left."""
        if self._ids:
            self._hand_over()

    def _hand_over(self) -> None:
        outcome = np.frombuffer(self._outcomes, np.uint8).copy()
        tier = np.frombuffer(self._promoted_from, np.int16) + np.int16(1)  # places among all tiers; none is 0 for now
        outcome[(outcome == _PRIMARY) & (tier > 0)] = _PROMOTED
        held = np.stack([np.frombuffer(column, np.uint8) for column in self._held])
        self._name_holders_of_unreached(outcome, tier, held)
        tier[tier == 0] = NONE
        columns: dict[str, Array] = {
            "key": np.frombuffer(self._keys, np.int32),
            "outcome": outcome,
            "tier": tier,
            "said": _smallest(np.frombuffer(self._said, np.uint32)),
            **dict(zip(holder_columns(len(self.tiers)), pack_holders(held), strict=True)),
            "start": np.frombuffer(self._starts, np.int64),
            **{name: _whole(values) for name, values in self._numbers.items()},
        }
        part = Part(self._first, columns, self._ids)
        self._first += part.requests
        self._start_part()
        self._take(part)

    @staticmethod
    def _name_holders_of_unreached(outcome: Array, tier: Array, held: Array) -> None:
        """The tier of an unreached block is the first secondary one, in lookup order, that holds it."""
        if len(held) > 1:
            at = np.flatnonzero(outcome == _UNREACHED)
            others = held[1:, at]
            tier[at] = np.where(others.any(axis=0), others.argmax(axis=0) + 1, 0)


def _peek(tier: SecondaryTierManager) -> Callable[[BlockKey], bool]:
    """Whether a tier holds a block, as fast as can be asked."""
    if type(tier) is SecondaryTier:
        return tier.store.index.__contains__
    return lambda key: bool(tier.holds(key))


def _whole(values: Iterable[int]) -> Array:
    assert isinstance(values, array)  # noqa: S101
    return np.array(values)


def _smallest(numbers: Array) -> Array:
    """The same numbers in a type that takes less memory, where they are small."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
