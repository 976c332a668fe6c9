"""Tells one request's story: which tiers were asked for each of its blocks, what they said, how it ended and why.

Data only, whole and unabridged: the words are `reasons.py`, the pictures are `render/`. A story is told by replaying
the request for good; what it did to the tiers stays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from kvtier_cli.replay.loop import PassWatcher, ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory, Outcome, find_stop, lost_to_filter
from kvtier_cli.replay.placements import Eviction, Placements
from kvtier_cli.replay.story_model import (
    Cell,
    EvictedBlock,
    Look,
    PassStory,
    RequestStory,
    StopStory,
    StoreBatch,
    StoryBlock,
    StoryTier,
)
from kvtier_cli.replay.story_recorder import StoryRecorder
from kvtier_cli.tiering.filter_reasons import PRIMARY_REASON, tier_reason
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LookupResult, Medium, Verdict
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTierManager
from kvtier_cli.tiering.token_caps import BlockLimits
from kvtier_cli.tiering.topology import PRIMARY_NAME, TierSpec

_CELLS: Final = {
    Verdict.SKIPPED: Cell.SKIPPED,
    Verdict.MISS: Cell.MISS,
    Verdict.RETRY: Cell.RETRY,
    Verdict.NOT_REACHED: Cell.BLANK,
}


def tell_story(
    loop: ReplayLoop,
    keys: Sequence[BlockKey],
    parse: FilterParse,
    history: BlockHistory,
    *,
    label: str | None = None,
    block_tokens: int | None = None,
    block_name: Callable[[BlockKey], str] | None = None,
    request_name: Callable[[Hashable], str] | None = None,
    placements: Placements | None = None,
    observers: Sequence[Observer] = (),
    limits: BlockLimits | None = None,
) -> RequestStory:
    """Replay one more request, the blocks `keys` under the filter `parse`, and tell what became of it.

    `loop` has replayed what was before it, and `history` has listened to that; it listens on, and the loop's watcher is
    told as ever. `block_name` and `request_name` say what blocks and the loop's requests are called: by default ints
    have the labels of the loop's table, and requests are `r1204`. `placements` that have listened too know who had put
    what the request evicts; they and the other `observers` listen on. `limits`: the caps that the request carries.
    """
    manager = loop.manager
    block_name, request_name = block_name or _block_name(loop), request_name or _r
    recorder = StoryRecorder(manager, len(keys))
    teller = _Teller(manager, recorder, history, loop.watcher, block_name, request_name)
    before, req_id = loop.watcher, loop.requests
    listening = [history, *([] if placements is None else [placements]), *observers]
    placements = placements or Placements(manager)
    placements.follow(req_id)
    manager.observe(ObserverGroup([*listening, recorder, *([] if placements in listening else [placements])]))
    loop.watcher = teller
    try:
        loop.replay(keys, parse.filter, limits=limits)
    finally:
        loop.watcher = before
        manager.observe(ObserverGroup(listening))
    return RequestStory(
        label,
        parse,
        story_tiers([TierSpec(tier.name, tier.medium, tier.locality) for tier in manager.tiers], parse),
        teller.blocks,
        teller.stop,
        recorder.passes,
        teller.gave_up,
        teller.lost_to_filter,
        block_tokens,
        manager.primary.capacity,
        tuple(PassStory(step, tuple(looks)) for step, looks in recorder.pass_looks),
        tuple(StoreBatch(step, tuple(map(block_name, blocks)), refused) for step, blocks, refused in recorder.stores),
        tell_evictions(placements.evictions, req_id, block_name, request_name),
        limits=limits,
    )


def tell_evictions(
    evictions: Iterable[Eviction],
    req_id: Hashable,
    block_name: Callable[[BlockKey], str],
    request_name: Callable[[Hashable], str],
) -> tuple[EvictedBlock, ...]:
    """What request `req_id` evicted, with the names of blocks and requests."""
    return tuple(
        EvictedBlock(
            block_name(eviction.key),
            eviction.tier,
            eviction.cause,
            eviction.step,
            None if eviction.put is None else request_name(eviction.put.req_id),
            eviction.put is not None and eviction.put.req_id == req_id,
            None if eviction.put is None else eviction.put.how,
            None if eviction.put is None else eviction.put.step,
            eviction.unread,
        )
        for eviction in evictions
    )


def _block_name(loop: ReplayLoop) -> Callable[[BlockKey], str]:
    return lambda key: loop.table.name(key) if isinstance(key, int) else str(key)


def _r(req_id: Hashable) -> str:
    return f"r{req_id}"


def story_tiers(tiers: Sequence[TierSpec], parse: FilterParse) -> tuple[StoryTier, ...]:
    """All tiers, the primary first, and what the filter makes of these secondary ones."""
    primary = StoryTier(PRIMARY_NAME, Medium.CPU, None, True, PRIMARY_REASON)
    return primary, *(
        StoryTier(
            tier.name,
            tier.medium,
            tier.locality,
            parse.filter.admits(tier.medium, tier.locality),
            tier_reason(parse, tier),
        )
        for tier in tiers
    )


class _Teller:
    """Looks at the tiers when the last pass ends, before the request loads and stores: then its story is settled."""

    def __init__(
        self,
        manager: TieringManager,
        recorder: StoryRecorder,
        history: BlockHistory,
        watcher: PassWatcher | None,
        block_name: Callable[[BlockKey], str],
        request_name: Callable[[Hashable], str],
    ) -> None:
        self._manager = manager
        self._recorder = recorder
        self._history = history
        self._watcher = watcher
        self._block_name = block_name
        self._request_name = request_name
        self._names = [tier.name for tier in manager.tiers]
        self.blocks: tuple[StoryBlock, ...] = ()
        self.stop: StopStory | None = None
        self.gave_up = False
        self.lost_to_filter = 0

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        if self._watcher is not None:
            self._watcher.last_pass(req_id, keys, loaded, gave_up, first_new)
        self._recorder.stop()
        self.gave_up = gave_up
        request = self._manager.requests[req_id]
        self.stop = self._stop(req_id, request, keys, loaded)
        if self.stop is not None and self.stop.outcome is Outcome.FILTERED:
            self.lost_to_filter = lost_to_filter(request, keys, loaded)
        self.blocks = tuple(self._block(request, index, key, loaded) for index, key in enumerate(keys))

    def _stop(self, req_id: int, request: RequestState, keys: Sequence[BlockKey], loaded: int) -> StopStory | None:
        recorder, manager = self._recorder, self._manager
        stop = find_stop(manager, request, keys, loaded, self.gave_up, self._history)
        if stop is None:
            return None
        tier = None if stop.tier is None else manager.tiers[stop.tier]
        last = recorder.last[loaded]
        held_behind = 0
        if stop.outcome is Outcome.FILTERED and tier is not None:
            while loaded + held_behind + 1 < len(keys) and tier.holds(keys[loaded + held_behind + 1]):
                held_behind += 1
        return StopStory(
            loaded,
            stop.outcome,
            None if tier is None else tier.name,
            stop.reason,
            None if stop.by is None else self._request_name(stop.by),
            stop.by == req_id,
            stop.evicted_from,
            held_behind,
            recorder.slots if stop.outcome is Outcome.DENIED else (),
            last.result if last is not None and self.gave_up else None,
            self._waiting_for(keys[loaded], loaded) if stop.outcome is Outcome.GAVE_UP else (),
            _failure(tier, keys[loaded]) if stop.outcome is Outcome.FAILED and tier is not None else None,
            recorder.promotions[loaded],
        )

    def _waiting_for(self, key: BlockKey, index: int) -> tuple[str, ...]:
        """The tiers that said retry last, or from which the block is on its way."""
        look = self._recorder.deciding[index]
        last = self._recorder.last[index]
        if last is not None and last.result is LookupResult.RETRY:
            pairs = zip(self._names, last.verdicts, strict=True)
            return tuple(name for name, verdict in pairs if verdict is Verdict.RETRY)
        running = [job.tier for job in self._manager.transfers.jobs.values() if key in job.keys]
        running += [queued.tier for queued in self._manager.transfers.queued() if key in queued.keys]
        if not running and look is not None and look.promotion is not None:
            running.append(look.promotion)
        return tuple(dict.fromkeys(running))

    def _block(self, request: RequestState, index: int, key: BlockKey, loaded: int) -> StoryBlock:
        manager, recorder = self._manager, self._recorder
        secondary = [tier.name for tier in manager.tiers if tier.holds(key)]
        in_primary = manager.primary.is_ready(key)
        holders = (PRIMARY_NAME, *secondary) if in_primary else tuple(secondary)
        look = recorder.deciding[index]
        tier: str | None = None
        if index < loaded:
            promoted = request.promoted.get(key)
            outcome = Outcome.PRIMARY if promoted is None else Outcome.PROMOTED
            if promoted is None:
                look = recorder.last[index]
            else:
                tier = self._names[promoted]
        elif index == loaded and self.stop is not None and self.stop.outcome is not Outcome.UNREACHED:
            outcome, tier = self.stop.outcome, self.stop.tier
        else:
            outcome = Outcome.UNREACHED
            tier = secondary[0] if secondary else None
        failed = request.failed.get(key)
        return StoryBlock(
            index,
            self._block_name(key),
            outcome,
            tier,
            None if look is None else look.result,
            () if look is None else look.verdicts,
            tuple(self._cells(look, None if failed is None else self._names[failed], holders)),
            holders,
            recorder.looks[index],
            recorder.waits[index],
        )

    def _cells(self, look: Look | None, failed: str | None, holders: Sequence[str]) -> list[Cell]:
        if look is None:
            return [Cell.HOLDS if name in holders else Cell.BLANK for name in (PRIMARY_NAME, *self._names)]
        first = Cell.MISS
        if not look.reached_tiers and look.result is LookupResult.HIT:
            first = Cell.READY
        elif not look.reached_tiers and look.result is LookupResult.HIT_PENDING:
            first = Cell.PENDING
        return [first] + [
            self._tier_cell(look, name, verdict, failed, holders)
            for name, verdict in zip(self._names, look.verdicts, strict=True)
        ]

    def _tier_cell(self, look: Look, name: str, verdict: Verdict, failed: str | None, holders: Sequence[str]) -> Cell:
        if name == failed and verdict in (Verdict.HIT, Verdict.MISS):
            return Cell.LOAD_FAILED  # a damaged block is gone when it is asked for again: what failed is what counts
        if verdict is Verdict.HIT:
            return Cell.PROMOTED if look.denied is None else Cell.NO_SLOT
        return Cell.SKIPPED_HOLDS if verdict is Verdict.SKIPPED and name in holders else _CELLS[verdict]


def _failure(tier: SecondaryTierManager, key: BlockKey) -> str | None:
    """Why a load of the block failed, as far as the tier can tell by now."""
    damage: str | None = getattr(tier, "damaged", {}).get(key)
    if damage is not None:
        return damage
    if getattr(tier, "offline", False):
        return "the tier is offline"
    return "the tier no longer holds it" if tier.holds(key) is False else None
