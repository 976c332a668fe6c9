"""One request's story as data: its tiers, its blocks, and why it stopped where it did. `story.py` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.placements import Cause, How
from kvtier_cli.replay.slots import SlotUse
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import Locality, LookupResult, Medium, Verdict
from kvtier_cli.tiering.token_caps import BlockLimits


class Cell(Enum):
    """What one tier has to do with one block, as a ladder shows it."""

    BLANK = "not_reached"
    READY = "ready"
    PROMOTED = "promoted"
    MISS = "miss"
    RETRY = "retry"
    SKIPPED_HOLDS = "skipped_holds"
    SKIPPED = "skipped"
    NO_SLOT = "no_slot"
    LOAD_FAILED = "load_failed"
    PENDING = "pending"
    HOLDS = "holds"


@dataclass(frozen=True, slots=True)
class StoryTier:
    """One tier, the primary first, and what the request's filter makes of it."""

    name: str
    medium: Medium | None
    locality: Locality | None
    admitted: bool
    why: str


@dataclass(frozen=True, slots=True)
class StoryBlock:
    """One block of the request. `index` counts from 0.

    `tier` is the one that it was promoted from, that holds a filtered, offline or unreached block, that hit a denied
    one, or whose load failed. `result` and `verdicts` (one a secondary tier) are those of the deciding lookup: the last
    that reached the tiers, else the last; None and empty where there was none. `cells` has one entry a tier, the
    primary first. `holders`: the tiers that hold the block when the last pass ends, asked or not. `looks`: in how many
    passes it was looked up; `steps`: how many ends of steps it was waited for (both None in the story of a log, as is
    `result`: it does not tell).
    """

    index: int
    name: str
    outcome: Outcome
    tier: str | None
    result: LookupResult | None
    verdicts: tuple[Verdict, ...]
    cells: tuple[Cell, ...]
    holders: tuple[str, ...]
    looks: int | None
    steps: int | None


@dataclass(frozen=True, slots=True)
class StopStory:
    """Why the block at index `at`, the first that was not loaded, was not. `tier` as in `StoryBlock`. An outcome
    UNREACHED: the request's cap on loads ends in front of it.

    For an absent block `reason`, and where known `by` (the request that evicted it, or whose store of it was refused;
    `by_itself`: this very request) and `evicted_from`. For a filtered one `held_behind`: how many blocks right behind
    it that tier holds too. For a denied one `slots`: what took them, at that moment. For one given up `answer`, what it
    said last, and `waiting_for`, the tiers that this is about. For a failed one `failure`, where it can be told, and
    `tries`, the promotions that were started. None are `slots`, `waiting_for` and `tries` in the story of a log, which
    does not tell.
    """

    at: int
    outcome: Outcome
    tier: str | None = None
    reason: AbsentReason | None = None
    by: str | None = None
    by_itself: bool = False
    evicted_from: str | None = None
    held_behind: int = 0
    slots: tuple[SlotUse, ...] | None = ()
    answer: LookupResult | None = None
    waiting_for: tuple[str, ...] | None = ()
    failure: str | None = None
    tries: int | None = 0


class Look(NamedTuple):
    """One lookup of one block: the answer, a verdict a secondary tier, and the tier of a promotion or a denial."""

    result: LookupResult
    verdicts: tuple[Verdict, ...]
    promotion: str | None
    denied: str | None

    @property
    def reached_tiers(self) -> bool:
        """Whether the lookup got as far as the secondary tiers, be it to skip them all."""
        return any(verdict is not Verdict.NOT_REACHED for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class PassStory:
    """One look at the prefix. `step`: how many steps had ended before it, over the whole run. `looks` has one entry a
    block from the first on, up to the first miss."""

    step: int
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True)
class StoreBatch:
    """One store of the request's: in which `step`, of which `blocks` (those that the primary did not have), and
    whether it was `refused`."""

    step: int
    blocks: tuple[str, ...]
    refused: bool


@dataclass(frozen=True, slots=True)
class EvictedBlock:
    """A block that the request put out of `tier`, in `step`, by what it did (`cause`).

    `put_by`: the request that had put it there (`own`: this very one), `how`, and in which step; None where nobody
    knows, as with what was there before the run. `unread`: nobody read it there since: loaded it from the primary, or
    promoted it from a secondary tier.
    """

    block: str
    tier: str
    cause: Cause
    step: int
    put_by: str | None
    own: bool
    how: How | None
    put_step: int | None
    unread: bool


@dataclass(frozen=True, slots=True)
class WithoutFilter:
    """What the same request would have got without a filter, after the same history: so many blocks `served`,
    `by_tier` (the primary first, the secondary tiers that they were promoted from in lookup order)."""

    served: int
    by_tier: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RequestStory:
    """What became of a request. `label` is its name, None for blocks looked up without one.

    `stop` is None where every block was served. `lost_to_filter` is an upper bound, in blocks. `block_tokens` is None
    where the size of a block is not known; `primary_capacity` counts blocks. `pass_looks` has its `passes`, each with
    its lookups; `stores` what it stored then, batch by batch; `evicted` what it put out of the tiers, as far as that
    has happened yet: cascades end later. `without_filter` is None where nobody asked, or the filter skipped nothing.
    `limits`: the caps that it carries.
    """

    label: str | None
    filter: FilterParse
    tiers: tuple[StoryTier, ...]
    blocks: tuple[StoryBlock, ...]
    stop: StopStory | None
    passes: int
    gave_up: bool
    lost_to_filter: int
    block_tokens: int | None
    primary_capacity: int
    pass_looks: tuple[PassStory, ...] = ()
    stores: tuple[StoreBatch, ...] = ()
    evicted: tuple[EvictedBlock, ...] = ()
    without_filter: WithoutFilter | None = None
    limits: BlockLimits | None = None

    @property
    def served(self) -> int:
        """How many blocks were served: the leading ones."""
        return len(self.blocks) if self.stop is None else self.stop.at

    def tokens(self, blocks: int) -> int | None:
        """Tokens that so many blocks hold, a partly filled last one counted whole; None where that is not known."""
        return None if self.block_tokens is None else blocks * self.block_tokens

    def counts(self) -> dict[Outcome, int]:
        """Blocks by outcome, all outcomes in their order."""
        counts = dict.fromkeys(Outcome, 0)
        for block in self.blocks:
            counts[block.outcome] += 1
        return counts

    def served_by_tier(self) -> dict[str, int]:
        """Served blocks by where they came from: the primary, then the secondary tiers in lookup order."""
        return {self.tiers[0].name: self.counts()[Outcome.PRIMARY], **self.promoted_by_tier()}

    def promoted_by_tier(self) -> dict[str, int]:
        """Served blocks by the secondary tier that they were promoted from, all of them in lookup order."""
        counts = dict.fromkeys((tier.name for tier in self.tiers[1:]), 0)
        for block in self.blocks:
            if block.outcome is Outcome.PROMOTED and block.tier is not None:
                counts[block.tier] += 1
        return counts
