"""Keeps what a replay decides about every block, as columns. What becomes of them is the business of who takes them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from kvtier_cli.replay.decision_columns import (
    NONE,
    OUTCOMES,
    REASONS,
    REQUEST_TYPES,
    Array,
    Part,
    Runs,
    holder_columns,
    pack_holders,
)
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
_SERVED = Stop(0, Outcome.PRIMARY)
"""Stands for no stop at all."""


class _Recorded(NamedTuple):
    """A request: its blocks, of which the first `loaded` were served and the first `known` had been there before; its
    stop; and what `REQUEST_TYPES` names."""

    total: Any
    loaded: Any
    known: Any
    stop_outcome: Any
    stop_tier: Any
    stop_said: Any
    passes: Any
    step: Any
    gave_up: Any
    reason: Any
    by: Any
    left: Any
    filter: Any


_STOP_OUTCOME, _STOP_TIER, _STOP_SAID = map(_Recorded._fields.index, ("stop_outcome", "stop_tier", "stop_said"))


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
        self._promoted_from = Runs()
        self._said = Runs()
        # Who holds the blocks that were known before: of the primary only those that it will not load are not clear.
        self._held = [bytearray() for _ in self.tiers]
        self._requests: list[_Recorded] = []
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
        row = len(self._keys)
        loop = self._run.loop
        numbers: Sequence[Any] = keys if loop.text_keys is None else loop.prompt
        self._keys.extend(numbers)
        tiers: list[int] = []
        if request.promoted:
            tiers = list(map(request.promoted.get, keys[:loaded], repeat(NONE)))
            self._promoted_from.add(row, tiers)
        said = self._verdicts.tell(request, keys, loaded, tiers, row, self._said)
        known = min(total, first_new)
        self._add_holders(keys if known == total else keys[:known], loaded)
        stop = _SERVED
        if loaded < total:
            stop = self._stop(request, keys, loaded, gave_up, first_new)
        own = self._run.request
        self._ids.append(None if own is None else own.request_id)
        self._requests.append(
            _Recorded(
                total,
                loaded,
                known,
                _OUTCOME_CODES[stop.outcome],
                NONE if stop.tier is None else stop.tier,
                said,
                self._passes,
                self._manager.counters.steps,
                gave_up,
                _REASON_CODES[stop.reason],
                stop.by if isinstance(stop.by, int) else NONE,
                NONE if stop.evicted_from is None else self._places[stop.evicted_from],
                self._filter_place(request.context.load_filter),
            )
        )
        self._passes = 0
        if len(self._keys) >= PART_ROWS:
            self._hand_over()

    def _stop(
        self, request: RequestState, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int
    ) -> Stop:
        limits = request.limits
        is_capped = limits is not None and loaded >= limits.load
        if (
            not is_capped
            and loaded >= first_new
            and not (request.failed or gave_up or request.denied or self._manager.holds_promotions)
        ):
            return _NEW  # as `OutcomeSums` knows too
        stop = find_stop(self._manager, request, keys, loaded, gave_up, self._history)
        assert stop is not None  # noqa: S101 - a block was not loaded
        return stop

    def _add_holders(self, known: Sequence[BlockKey], loaded: int) -> None:
        """Which tiers have each block that was there before, now that the last pass has ended."""
        if loaded < len(known):
            self._held[0].extend(map(self._manager.primary.is_ready, known[loaded:]))
        for place, peek in enumerate(self._peeks, 1):
            self._held[place].extend(map(peek, known))

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
        requests = np.array(self._requests, np.int64).reshape(-1, len(_Recorded._fields))
        of_request = _Recorded(*requests.T)  # a column each
        counts = of_request.total
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        rows = int(start[-1])
        index = np.arange(rows) - np.repeat(start[:-1], counts)
        served = index < np.repeat(of_request.loaded, counts)
        known = index < np.repeat(of_request.known, counts)
        stops = (start[:-1] + of_request.loaded)[of_request.loaded < counts]
        stopped = requests[of_request.loaded < counts]

        held = np.zeros((len(self.tiers), rows), np.uint8)
        held[0] = served
        held[0, known & ~served] = np.frombuffer(self._held[0], np.uint8)
        for place in range(1, len(held)):
            held[place, known] = np.frombuffer(self._held[place], np.uint8)
        tier = np.full(rows, NONE, np.int16)
        self._promoted_from.put_into(tier)
        outcome = np.where(served, np.where(tier == NONE, _PRIMARY, _PROMOTED), _UNREACHED).astype(np.uint8)
        outcome[stops] = stopped[:, _STOP_OUTCOME]
        tier[stops] = stopped[:, _STOP_TIER]
        tier += 1  # places among all tiers; none is 0 for now
        self._name_holders_of_unreached(outcome, tier, held)
        tier[tier == 0] = NONE
        said = np.zeros(rows, np.uint32)
        self._said.put_into(said)
        said[stops] = stopped[:, _STOP_SAID]

        columns: dict[str, Array] = {
            "key": np.frombuffer(self._keys, np.int32),
            "outcome": outcome,
            "tier": tier,
            "said": said.astype(np.min_scalar_type(int(said.max(initial=0)))),
            **dict(zip(holder_columns(len(self.tiers)), pack_holders(held), strict=True)),
            "start": start,
            **{
                name: getattr(of_request, name).astype(REQUEST_TYPES[name]) for name in REQUEST_TYPES if name != "start"
            },
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
