"""Figures of a replay by groups of requests: by a tag of theirs, by the filter that held for them. Renders nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.model import BlockKey

BY_FILTER: Final = "filter"
"""The word for groups by the filter that held for a request."""

MOST_GROUPS: Final = 10_000
"""Groups that are told apart; the requests of further ones are only summed up."""

_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)

GroupKey = tuple[str | TierFilter | None, ...]


@dataclass(slots=True)
class Group:
    """What became of some requests. `served` has the blocks by the tier that they came from, the primary first;
    `groups` is above 1 where several groups are summed up."""

    key: GroupKey
    served: list[int]
    requests: int = 0
    blocks: int = 0
    lost_to_filter: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES, 0))
    groups: int = 1

    def add(self, other: Group) -> None:
        """Add the figures of another group."""
        self.requests += other.requests
        self.blocks += other.blocks
        self.lost_to_filter += other.lost_to_filter
        self.served = [one + more for one, more in zip(self.served, other.served, strict=True)]
        for name, number in other.outcomes.items():
            self.outcomes[name] += number

    @property
    def blocks_loaded(self) -> int:
        """Blocks that were served."""
        return sum(self.served)


class GroupedOutcomes:
    """A `PassWatcher` that sums up the outcomes of `run` by groups; it takes the place of the loop's watcher, and tells
    that one first.

    `by`: what a group's requests have in common, in order: the place of a tag in `Request.tags`, or None for the
    filter that held for them.
    """

    def __init__(self, run: TraceRun, by: Sequence[int | None], *, most: int = MOST_GROUPS) -> None:
        self._run = run
        self._by = by
        self._most = most
        self._tiers = len(run.manager.tiers)
        self._groups: dict[GroupKey, Group] = {}
        self._further = self._empty(())
        self._watcher = run.loop.watcher
        self._lost = 0
        run.loop.watcher = self

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        if self._watcher is not None:
            self._watcher.last_pass(req_id, keys, loaded, gave_up, first_new)
        run, sums = self._run, self._run.sums
        request = run.manager.requests[req_id]
        key = self._key(request.context.load_filter)
        group = self._groups.get(key)
        if group is None:
            group = self._further if len(self._groups) >= self._most else self._groups.setdefault(key, self._empty(key))
        total, outcomes = len(keys), group.outcomes
        group.requests += 1
        group.blocks += total
        group.lost_to_filter += sums.lost_to_filter - self._lost
        self._lost = sums.lost_to_filter
        promoted = 0
        if request.promoted:
            tiers = [request.promoted[block] for block in keys[:loaded] if block in request.promoted]
            promoted = len(tiers)
            for tier in tiers:
                group.served[tier + 1] += 1
        group.served[0] += loaded - promoted
        outcomes["primary"] += loaded - promoted
        outcomes["promoted"] += promoted
        if sums.stop is not None:
            outcomes[sums.stop.outcome.value] += 1
            outcomes["unreached"] += total - loaded - 1

    def _key(self, load_filter: TierFilter) -> GroupKey:
        request = self._run.request
        tags = (None if request is None else request.tags) or ()
        return tuple(load_filter if place is None else tags[place] if place < len(tags) else None for place in self._by)

    def _empty(self, key: GroupKey) -> Group:
        return Group(key, [0] * (self._tiers + 1))

    def largest(self, count: int) -> tuple[list[Group], Group | None]:
        """The groups with most blocks, at most `count` of them, of equal ones the first seen first; and what the
        others come to, None where there are none. How many these are is not known beyond `MOST_GROUPS`: then `groups`
        counts those that were told apart."""
        ordered = sorted(self._groups.values(), key=lambda group: -group.blocks)
        rest = [*ordered[count:], *([self._further] if self._further.requests else [])]
        if not rest:
            return ordered, None
        others = self._empty(())
        others.groups = len(ordered[count:])
        for group in rest:
            others.add(group)
        return ordered[:count], others

    @property
    def is_whole(self) -> bool:
        """Whether all groups were told apart."""
        return not self._further.requests
