"""The one terminal outcome of each block of a request, and the sums over a replay.

Asked when the request's last pass has ended, as the tiers stand then. The words and their order are kvtier's own; vLLM
has no name for a miss. Peeks count nowhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from kvtier_cli.replay.losses import LastLosses
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology


class Outcome(Enum):
    """What became of one block of one request."""

    PRIMARY = "primary"
    PROMOTED = "promoted"
    FILTERED = "filtered"
    ABSENT = "absent"
    DENIED = "denied"
    FAILED = "failed"
    HELD = "held"
    GAVE_UP = "gave_up"
    UNREACHED = "unreached"


class AbsentReason(Enum):
    """Why no tier has an absent block: the latest thing that happened to it."""

    COLD = "cold"
    EVICTED = "evicted"
    REFUSED = "refused"
    OFFLINE = "offline"


class Stop(Struct, frozen=True, gc=False):
    """The first block of a request that was not loaded, and why. `at` is its place in the request, from 0.

    An outcome UNREACHED says that the request's cap on loads ends there: all that was looked up was loaded.
    `tier` is the index of the tier that holds a filtered block, that hit a denied one, or that holds an offline one.
    `by` is the request that evicted an absent block, or whose store of it was refused, where that is known.
    """

    at: int
    outcome: Outcome
    tier: int | None = None
    reason: AbsentReason | None = None
    by: Hashable | None = None
    evicted_from: str | None = None


class BlockHistory(Observer):
    """Remembers the last loss of each block: by which request's doing it was evicted, or its store refused.

    `evictions` says whether evictions are worth remembering: not where a tier keeps all that it ever got. `unread`:
    blocks that were promoted and not loaded since. `evicted_unread` counts those of them that were evicted. For
    `numbered` see `LastLosses`.
    """

    def __init__(self, *, evictions: bool = True, numbered: bool = False) -> None:
        self._evictions = evictions
        # A block's last eviction is a place in two lists: by whom, and the index of the tier in `_tiers`.
        self._evicted = LastLosses(numbered=numbered)
        self._evicted_by: list[Hashable] = []
        self._evicted_from: list[int] = []
        self._tiers: dict[str, int] = {}
        self._refused: dict[BlockKey, Hashable] = {}
        self.unread: set[BlockKey] = set()
        self.evicted_unread = 0

    def on_promoted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        self.unread.update(keys)

    def on_loaded(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        if self.unread:
            self.unread.difference_update(keys)

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        if self._evictions:
            index = self._tiers.setdefault(tier, len(self._tiers))
            loss = len(self._evicted_by) - 1
            if loss < 0 or self._evicted_from[loss] != index or self._evicted_by[loss] != req_id:
                self._evicted_by.append(req_id)
                self._evicted_from.append(index)
                loss += 1
            self._evicted.put(keys, loss)
        if self._refused:
            self._forget_refusals(keys)
        if self.unread and tier == PRIMARY_NAME and not self.unread.isdisjoint(keys):
            lost = self.unread.intersection(keys)
            self.evicted_unread += len(lost)
            self.unread -= lost

    def on_refused(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        self._refused.update(dict.fromkeys(keys, req_id))

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        if self._refused:
            self._forget_refusals(keys)
        if self.unread:  # what is computed anew is no promoted copy, whatever became of that
            self.unread.difference_update(keys)

    def _forget_refusals(self, keys: Sequence[BlockKey]) -> None:
        """Something later has happened to `keys`: they were in a tier."""
        for key in keys:
            self._refused.pop(key, None)

    def last_loss(self, key: BlockKey) -> tuple[AbsentReason, Hashable | None, str | None]:
        """Why a block that no tier has is nowhere: the reason, by whom, and which tier it left last."""
        if key in self._refused:
            return AbsentReason.REFUSED, self._refused[key], None
        loss = self._evicted.get(key)
        if loss is not None:
            return AbsentReason.EVICTED, self._evicted_by[loss], list(self._tiers)[self._evicted_from[loss]]
        return AbsentReason.COLD, None, None

    def remember(self, key: BlockKey, reason: AbsentReason, by: Hashable, tier: str | None) -> None:
        """Go on as if `key` had been lost so: evicted from `tier`, or its store refused."""
        if reason is AbsentReason.EVICTED and tier is not None:
            self.on_evicted(by, tier, [key])
        elif reason is AbsentReason.REFUSED:
            self.on_refused(by, [key])

    def dump_state(self) -> dict[str, Any]:
        """All that it remembers, for `load_state`, as plain values: what keeps many blocks has them in lists."""
        return {
            "evicted": self._evicted.dump(),
            "losses": [self._evicted_by.copy(), self._evicted_from.copy()],
            "tiers": dict(self._tiers),
            "refused": [list(self._refused), list(self._refused.values())],
            "unread": list(self.unread),
            "evicted_unread": self.evicted_unread,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `dump_state` gave; it may be loaded again."""
        self._evicted.load(*state["evicted"])
        self._evicted_by, self._evicted_from = map(list, state["losses"])
        self._tiers = dict(state["tiers"])
        self._refused = dict(zip(*state["refused"], strict=True))
        self.unread = set(state["unread"])
        self.evicted_unread = state["evicted_unread"]


def find_stop(
    manager: TieringManager,
    request: RequestState,
    keys: Sequence[BlockKey],
    loaded: int,
    gave_up: bool,
    history: BlockHistory | None,
) -> Stop | None:
    """Why the block behind the loaded ones was not loaded; None where all were. First match wins."""
    if loaded == len(keys):
        return None
    if request.limits is not None and loaded >= request.limits.load:
        return Stop(loaded, Outcome.UNREACHED)
    key = keys[loaded]
    if key in request.failed:
        return Stop(loaded, Outcome.FAILED, request.failed[key])
    if gave_up:
        return Stop(loaded, Outcome.GAVE_UP)
    if key in request.denied:
        return Stop(loaded, Outcome.DENIED, request.denied[key])
    if manager.holds_promotions and manager.tiers:
        return Stop(loaded, Outcome.HELD)
    for index, tier, admitted in request.scan:
        if not admitted and tier.holds(key) and not _is_offline(tier):
            return Stop(loaded, Outcome.FILTERED, index)
    for index, tier, _ in request.scan:
        if tier.holds(key):  # and yet it did not answer hit, or would not have
            return Stop(loaded, Outcome.ABSENT, index, AbsentReason.OFFLINE)
    reason, by, left = (AbsentReason.COLD, None, None) if history is None else history.last_loss(key)
    return Stop(loaded, Outcome.ABSENT, None, reason, by, left)


def _is_offline(tier: object) -> bool:
    """Whether a tier would not answer for what it holds, so that no filter is to blame."""
    return bool(getattr(tier, "offline", False))


def holder(manager: TieringManager, key: BlockKey) -> int | None:
    """The first secondary tier in lookup order that holds a block, whatever a filter says."""
    return next((index for index, tier in enumerate(manager.tiers) if tier.holds(key)), None)


def holders(manager: TieringManager, key: BlockKey) -> tuple[str, ...]:
    """All tiers that have a block, the primary first (a block on its way into it is not there yet)."""
    primary = (PRIMARY_NAME,) if manager.primary.is_ready(key) else ()
    return *primary, *(tier.name for tier in manager.tiers if tier.holds(key))


def lost_to_filter(request: RequestState, keys: Sequence[BlockKey], start: int) -> int:
    """How many blocks from `start` on a skipped tier holds, one after another: an upper bound of what the filter cost,
    since admitting them would change what is evicted. The request's cap on loads bounds it."""
    skipped = [tier for _, tier, admitted in request.scan if not admitted and not _is_offline(tier)]
    lost = 0
    for key in keys[start : None if request.limits is None else request.limits.load]:
        if not any(tier.holds(key) for tier in skipped):
            break
        lost += 1
    return lost


def there_for(manager: TieringManager, request: RequestState, keys: Sequence[BlockKey]) -> int:
    """How many leading blocks the primary or a tier that the request's filter admits holds, as far as its cap on loads
    goes."""
    resident = manager.primary.resident
    tiers = [tier for _, tier, admitted in request.scan if admitted]
    sought = keys if request.limits is None else keys[: request.limits.load]
    for index, key in enumerate(sought):
        if key not in resident and not any(tier.holds(key) for tier in tiers):
            return index
    return len(sought)


def keeps_everything(topology: Topology) -> bool:
    """Whether some tier keeps every block that was ever stored: no limit, no faults. No block is then absent because
    it was evicted."""
    return any(
        tier.capacity is None and not (tier.fail_stores or tier.fail_rate or tier.offline) for tier in topology.tiers
    )


_NO_SUMS: Final = ("manager", "history")


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


class OutcomeSums:
    """Adds up, over all requests, the outcomes of the blocks that were not loaded; a `PassWatcher` of the replay loop.

    `counts` by outcome (the loaded ones are the loop's to count); `absent` by reason; `filtered` by the tier that holds
    the block; `denied` by the tier that hit; `unreached_held` by the first tier that holds the block.

    `too_long` counts requests that gave up although no wait would have helped: the prefix that is there for them, of
    `longest` blocks at most, has no room in the primary. `holes` counts requests that stopped at an absent block with
    `behind_holes` blocks behind it that some tier holds; `hole_causes` has the tier that lost the absent block last, or
    the reason why it is absent.

    Of requests with caps: `requests_capped`, `unreached_capped` (unreached blocks of those of them that loaded all that
    was looked up), `unstored_capped` (blocks that were neither loaded nor offered for a store).
    """

    def __init__(self, manager: TieringManager, history: BlockHistory) -> None:
        self.manager = manager
        self.history = history
        tiers = len(manager.tiers)
        self.counts = dict.fromkeys((outcome.value for outcome in Outcome), 0)
        self.filtered = [0] * tiers
        self.denied = [0] * tiers
        self.absent = dict.fromkeys((reason.value for reason in AbsentReason), 0)
        self.unreached_held = [0] * tiers
        self.lost_to_filter = 0
        self.served_whole = 0
        self.too_long = 0
        self.longest = 0
        self.holes = 0
        self.behind_holes = 0
        self.hole_causes: dict[str, int] = {}
        self.requests_capped = 0
        self.unreached_capped = 0
        self.unstored_capped = 0
        self.stop: Stop | None = None
        """Why the last request was not served whole; None where it was."""

    def dump_state(self) -> dict[str, Any]:
        """A copy of all sums."""
        return {name: _copy(value) for name, value in vars(self).items() if name not in _NO_SUMS}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to sums that `dump_state` gave; they may be loaded again."""
        for name, value in state.items():
            setattr(self, name, _copy(value))

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        manager, counts = self.manager, self.counts
        total = len(keys)
        request = manager.requests[req_id]
        limits = request.limits
        if limits is not None:
            self.requests_capped += 1
            self.unstored_capped += max(0, total - max(loaded, limits.store))
        if loaded == total:
            self.served_whole += 1
            self.stop = None
            return
        counts["unreached"] += total - loaded - 1
        if limits is not None and loaded >= limits.load:
            self.stop = Stop(loaded, Outcome.UNREACHED)
            counts["unreached"] += 1
            self.unreached_capped += total - loaded
            self._count_held(keys[loaded:first_new])
            return
        if loaded >= first_new and not (request.failed or gave_up or request.denied or manager.holds_promotions):
            # No request had this block before, nor those behind it.
            counts["absent"] += 1
            self.absent["cold"] += 1
            self.stop = Stop(loaded, Outcome.ABSENT, None, AbsentReason.COLD)
            return
        self.stop = stop = find_stop(manager, request, keys, loaded, gave_up, self.history)
        if stop is None:
            return
        counts[stop.outcome.value] += 1
        if stop.reason is not None:
            self.absent[stop.reason.value] += 1
        elif stop.outcome is Outcome.FILTERED and stop.tier is not None:
            self.filtered[stop.tier] += 1
            self.lost_to_filter += lost_to_filter(request, keys, loaded)
        elif stop.outcome is Outcome.DENIED and stop.tier is not None:
            self.denied[stop.tier] += 1
        held = self._count_held(keys[loaded + 1 : first_new])
        if held and stop.reason is not None:
            self.holes += 1
            self.behind_holes += held
            cause = stop.evicted_from or stop.reason.value
            self.hole_causes[cause] = self.hole_causes.get(cause, 0) + 1
        if gave_up:
            there = there_for(manager, request, keys)
            if there > manager.primary.capacity:
                self.too_long += 1
                self.longest = max(self.longest, there)

    def _count_held(self, unreached: Sequence[BlockKey]) -> int:
        """Count the blocks that some secondary tier holds, by the first; returns how many there are."""
        held = 0
        for key in unreached:
            tier = holder(self.manager, key)
            if tier is not None:
                self.unreached_held[tier] += 1
                held += 1
        return held
