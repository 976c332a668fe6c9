"""The requests of a scripted fixture as stories: what each has heard of its blocks so far, op by op."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_cli.replay.outcomes import AbsentReason, BlockHistory, Outcome, find_stop
from kvtier_cli.replay.story import story_tiers
from kvtier_cli.replay.story_model import Cell, Look, RequestStory, StopStory, StoryBlock
from kvtier_cli.tiering.filters import FilterParse, TierFilter, lint_against, parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.topology import PRIMARY_NAME
from tui.session.passes import cells_of

Told = tuple[RequestStory, dict[int, LookupResult]]
"""A story, and the blocks of it that are still waited for."""

_WAITS: Final = (LookupResult.HIT_PENDING, LookupResult.RETRY)
_SERVED: Final = (Outcome.PRIMARY.value, Outcome.PROMOTED.value)


@dataclass(slots=True)
class _Heard:
    """What a request heard: for each block, in order of the first lookup, the last one that decided."""

    parse: FilterParse
    looks: dict[BlockKey, Look] = field(default_factory=dict)
    counts: dict[BlockKey, int] = field(default_factory=dict)
    holders: dict[BlockKey, tuple[str, ...]] = field(default_factory=dict)


class OpStories(Observer):
    """Listens to a manager. Loses nothing when a request is finished."""

    def __init__(self, manager: TieringManager, history: BlockHistory) -> None:
        self._manager = manager
        self._history = history
        self._heard: dict[Hashable, _Heard] = {}
        self._raw: object = None
        self.last: Hashable | None = None
        """The request that was heard of last."""

    def expect(self, raw: object) -> None:
        """The next request carries `raw` as its filter."""
        self._raw = raw

    def on_request(self, req_id: Hashable, load_filter: TierFilter) -> None:
        parse = lint_against(parse_tier_filter(self._raw), self._manager.topology.tiers)
        self._heard[req_id] = _Heard(parse)
        self.last = req_id

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
        heard = self._heard[req_id]
        look = Look(result, tuple(verdicts), promotion, denied)
        before = heard.looks.get(key)
        # Ready after a promotion: the lookup that started it says more than the one that found it done.
        done = before is not None and before.reached_tiers and before.promotion is not None
        if not (done and look.result is LookupResult.HIT and before is not None):
            heard.looks[key] = look
        else:
            heard.looks[key] = before._replace(result=LookupResult.HIT)
        heard.counts[key] = heard.counts.get(key, 0) + 1
        self.last = req_id

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        """A whole request's last look: what the tiers hold now is what counts, not what it stores afterwards."""
        self._heard[req_id].holders = {key: self._holders(key) for key in keys}

    def _holders(self, key: BlockKey) -> tuple[str, ...]:
        manager = self._manager
        primary = (PRIMARY_NAME,) if manager.primary.is_ready(key) else ()
        return primary + tuple(tier.name for tier in manager.tiers if tier.holds(key))

    def story(
        self,
        req_id: Hashable,
        label: str,
        blocks: Sequence[BlockKey] | None = None,
        ended: Mapping[str, Any] | None = None,
    ) -> Told | None:
        """The story so far of a request that looked blocks up, and which blocks it still waits for.

        A whole request that is over has all its `blocks`, and its outcome says how it `ended`.
        """
        heard = self._heard.get(req_id)
        if heard is None or not heard.looks:
            return None
        manager = self._manager
        keys = list(blocks or heard.looks)
        looks = [heard.looks.get(key) for key in keys]
        pending: dict[int, LookupResult] = {}
        if ended is None:
            pending = {at: look.result for at, look in enumerate(looks) if look is not None and look.result in _WAITS}
            hits = (look is not None and look.result is LookupResult.HIT for look in looks)
            served = next((at for at, hit in enumerate(hits) if not hit), len(keys))
            stop = self._stop(req_id, keys, served, pending)
        else:
            stop = _ended(keys, ended)
            served = len(keys) if stop is None else stop.at
        told = tuple(self._block(at, key, heard, served, stop) for at, key in enumerate(keys))
        tiers = story_tiers(manager.topology.tiers, heard.parse)
        return RequestStory(label, heard.parse, tiers, told, stop, 1, False, 0, None, manager.primary.capacity), pending

    def _stop(
        self, req_id: Hashable, keys: Sequence[BlockKey], served: int, pending: Mapping[int, LookupResult]
    ) -> StopStory | None:
        if served == len(keys):
            return None
        manager, request = self._manager, self._manager.requests.get(req_id)
        if served in pending or request is None:
            return StopStory(served, Outcome.ABSENT)
        found = find_stop(manager, request, keys, served, False, self._history)
        if found is None:
            return None
        tier = None if found.tier is None else manager.tiers[found.tier]
        held = 0
        if found.outcome is Outcome.FILTERED and tier is not None:
            while served + held + 1 < len(keys) and tier.holds(keys[served + held + 1]):
                held += 1
        by = None if found.by is None else str(found.by)
        return StopStory(
            served,
            found.outcome,
            None if tier is None else tier.name,
            found.reason,
            by,
            found.by == req_id,
            found.evicted_from,
            held,
        )

    def _block(self, at: int, key: BlockKey, heard: _Heard, served: int, stop: StopStory | None) -> StoryBlock:
        manager, look = self._manager, heard.looks.get(key)
        names = [tier.name for tier in manager.tiers]
        holders = heard.holders[key] if key in heard.holders else self._holders(key)
        outcome, tier = Outcome.UNREACHED, next((name for name in holders if name != PRIMARY_NAME), None)
        if at < served and look is not None:
            outcome, tier = Outcome.PRIMARY if look.promotion is None else Outcome.PROMOTED, look.promotion
        elif stop is not None and at == stop.at and stop.outcome is not Outcome.UNREACHED:
            outcome, tier = stop.outcome, stop.tier
        if look is None:
            cells = tuple(Cell.HOLDS if name in holders else Cell.BLANK for name in (PRIMARY_NAME, *names))
            return StoryBlock(at, str(key), outcome, tier, None, (), cells, holders, 0, 0)
        cells = cells_of(look, names, holders)
        looks = heard.counts[key]
        return StoryBlock(at, str(key), outcome, tier, look.result, look.verdicts, cells, holders, looks, looks - 1)


def _ended(keys: Sequence[BlockKey], ended: Mapping[str, Any]) -> StopStory | None:
    why = ended["why"]
    if why is None:
        return None
    at = next(at for at, word in enumerate(ended["outcomes"]) if word not in _SERVED)
    by = None if why["by"] is None else str(why["by"])
    reason = None if why["reason"] is None else AbsentReason(why["reason"])
    return StopStory(at, Outcome(ended["outcomes"][at]), why["tier"], reason, by)
