"""Lookups: the primary, then the secondary tiers that a request's filter admits, and the promotions that hits start.

A part of the manager: it decides for one block or a whole prefix; when to poll and for whom is `manager.py`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, takewhile

from msgspec import Struct

from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Hooks
from kvtier_cli.tiering.primary import PENDING, Primary
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTierManager
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.tiering.transfers import Transfers

_HIT, _PENDING, _RETRY, _MISS = LookupResult.HIT, LookupResult.HIT_PENDING, LookupResult.RETRY, LookupResult.MISS


class PrefixAnswer(Struct, frozen=True, gc=False):
    """What one look at a prefix found: the number of leading blocks that did not miss, and whether any of them
    answered HIT_PENDING or RETRY, which voids the whole answer (look again after a step)."""

    length: int
    pending: bool


def _head_without(has: Callable[[BlockKey], bool | None], keys: Sequence[BlockKey]) -> list[BlockKey]:
    """The leading `keys` of which none is there."""
    return list(takewhile(lambda key: not has(key), keys))


class Lookup:
    """Looks blocks up for the manager that owns these parts.

    While `holds_promotions` (after a reset, with secondary tiers) what the primary does not have is a MISS and no tier
    is asked. `promotes_runs` says that nobody hears of single lookups, so that several blocks may be promoted at once.
    """

    def __init__(
        self,
        primary: Primary,
        tiers: Sequence[SecondaryTierManager],
        transfers: Transfers,
        counters: Counters,
        hooks: Hooks,
    ) -> None:
        self._primary = primary
        self._tiers = tiers
        self._transfers = transfers
        self._counters = counters
        self._hooks = hooks
        self.holds_promotions = False
        self.promotes_runs = False

    def prefix(self, request: RequestState, keys: Sequence[BlockKey]) -> PrefixAnswer:
        """Look blocks up in order until the first MISS, as `block` would one by one."""
        request.denied.clear()
        primary, counters = self._primary, self._counters
        resident = primary.resident
        length, total = 0, len(keys)
        pending = False
        if self._hooks.lookup is None:
            head = list(takewhile(resident.__contains__, keys))
            length = len(head)
            waiting = list(map(primary.busy.get, head)).count(PENDING) if primary.pending else 0
            pending = waiting > 0
            counters.primary_hits += length - waiting
        by_runs = self.promotes_runs and not self.holds_promotions
        while length < total:
            key = keys[length]
            if by_runs and key not in resident:
                promoted = self._promote_run(request, keys, length)
                if promoted:
                    pending = True
                    length += promoted
                    continue
                result = _MISS if promoted == 0 else self._ask_tiers(request, key)
            else:
                result = self.block(request, key)
            if result is _MISS:
                counters.lookups += length + 1
                return PrefixAnswer(length, pending)
            if result is not _HIT:
                pending = True
            length += 1
        counters.lookups += length
        return PrefixAnswer(length, pending)

    def block(self, request: RequestState, key: BlockKey) -> LookupResult:
        """Look one block up. The caller counts the lookup."""
        if key in self._primary.resident:
            result = _PENDING if self._primary.busy.get(key) == PENDING else _HIT
            self._counters.primary_hits += result is _HIT
        elif self.holds_promotions and self._tiers:
            result = _MISS
        else:
            return self._ask_tiers(request, key)
        if self._hooks.lookup is not None:
            verdicts = (Verdict.NOT_REACHED,) * len(self._tiers)
            self._hooks.lookup(request.context.req_id, key, result, verdicts, promotion=None, denied=None, evicted=())
        return result

    def _ask_tiers(self, request: RequestState, key: BlockKey) -> LookupResult:
        """The tiers in order, for a block that the primary does not have; the first hit is promoted.

        vLLM 0.33: a hit is HIT_PENDING; without a slot to be had it is a MISS, and later tiers are not asked. A RETRY
        does not end the search.
        """
        counters, context, hear = self._counters, request.context, self._hooks.lookup
        verdicts = None if hear is None else [Verdict.NOT_REACHED] * len(self._tiers)
        result = _MISS
        hit: int | None = None
        evicted: list[BlockKey] | None = None
        for index, tier, admitted in request.scan:
            if not admitted:
                counters.skipped[index] += 1
                if verdicts is not None:
                    verdicts[index] = Verdict.SKIPPED
                continue
            counters.asked[index] += 1
            answer = tier.lookup(key, context)
            if verdicts is not None:
                verdicts[index] = Verdict[answer.name]
            if answer is _HIT:
                counters.hits[index] += 1
                hit = index
                evicted = self._promote(request, (key,), hit)
                result = _MISS if evicted is None else _PENDING
                break
            if answer is _RETRY:
                result = _RETRY
        if hear is not None:
            name = None if hit is None else self._tiers[hit].name
            promotion, denied = (name, None) if result is _PENDING else (None, name)
            hear(context.req_id, key, result, verdicts, promotion=promotion, denied=denied, evicted=evicted or ())
        return result

    def _promote_run(self, request: RequestState, keys: Sequence[BlockKey], start: int) -> int | None:
        """Promote the blocks from `start` on that the first tier to hit holds, in one go; how many were promoted. 0:
        the block at `start` is a MISS. None: nothing was done, since the tiers have to be asked block by block.

        The same decisions as block by block, for those blocks for which that is sure: none resident, none twice, a
        slot for each, held by no tier that is asked before, and a policy whose victims do not depend on the insertions
        between them.
        """
        counters, context = self._counters, request.context
        missed: list[SecondaryTierManager] = []
        run: list[BlockKey] | None = []
        hit = 0
        for index, tier, admitted in request.scan:
            if admitted:
                run = tier.lookup_run(islice(keys, start, None), context)
                if run is None:
                    return None
                if run:
                    hit = index
                    break
                missed.append(tier)
        if not run:
            self._count_asked(request, len(self._tiers), 1)
            return 0
        resident = self._primary.resident
        if not resident.keys().isdisjoint(run):
            run = _head_without(resident.__contains__, run)
        for earlier in missed:
            run = _head_without(earlier.holds, run)
        count = len(run)
        if count > self._primary.free + self._primary.evictable or len(set(run)) < count:
            return None
        self._count_asked(request, hit + 1, count)
        counters.hits[hit] += count
        self._promote(request, run, hit)
        return count

    def _count_asked(self, request: RequestState, tiers: int, blocks: int) -> None:
        """The first `tiers` tiers were asked for so many blocks, or skipped."""
        for index, _, admitted in request.scan[:tiers]:
            if admitted:
                self._counters.asked[index] += blocks
            else:
                self._counters.skipped[index] += blocks

    def _promote(self, request: RequestState, keys: Sequence[BlockKey], tier: int) -> list[BlockKey] | None:
        """Take slots for absent blocks and queue their promotion; None where there are not enough to be had."""
        req_id, hooks = request.context.req_id, self._hooks
        self._primary.policy.access(request, dict.fromkeys(keys), ())
        evicted = self._primary.allocate(request, keys, {})
        if evicted is None:
            self._counters.denied += len(keys)
            request.denied.update(dict.fromkeys(keys, tier))
            return None
        if evicted:
            self._counters.evicted_by_promotions += len(evicted)
            if self._transfers.collects_events:
                self._transfers.add_event(evicted, removed=True)
            if hooks.evicted is not None:
                hooks.evicted(req_id, PRIMARY_NAME, evicted)
        self._counters.promoted[tier] += len(keys)
        promoted = request.promoted
        for key in keys:
            promoted[key] = tier
        self._transfers.queue_promotions(tier, req_id, keys)
        if hooks.promoted is not None:
            hooks.promoted(req_id, self._tiers[tier].name, keys)
        return evicted
