"""One request's story as data: its tiers, its blocks, and why it stopped where it did. `story.py` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.slots import SlotUse
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import Locality, LookupResult, Medium, Verdict


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
    passes it was looked up; `steps`: how many ends of steps it was waited for.
    """

    index: int
    name: str
    outcome: Outcome
    tier: str | None
    result: LookupResult | None
    verdicts: tuple[Verdict, ...]
    cells: tuple[Cell, ...]
    holders: tuple[str, ...]
    looks: int
    steps: int


@dataclass(frozen=True, slots=True)
class StopStory:
    """Why the block at index `at`, the first that was not loaded, was not. `tier` as in `StoryBlock`.

    For an absent block `reason`, and where known `by` (the request that evicted it, or whose store of it was refused;
    `by_itself`: this very request) and `evicted_from`. For a filtered one `held_behind`: how many blocks right behind
    it that tier holds too. For a denied one `slots`: what took them, at that moment. For one given up `answer`, what it
    said last, and `waiting_for`, the tiers that this is about. For a failed one `failure`, where it can be told, and
    `tries`, the promotions that were started.
    """

    at: int
    outcome: Outcome
    tier: str | None = None
    reason: AbsentReason | None = None
    by: str | None = None
    by_itself: bool = False
    evicted_from: str | None = None
    held_behind: int = 0
    slots: tuple[SlotUse, ...] = ()
    answer: LookupResult | None = None
    waiting_for: tuple[str, ...] = ()
    failure: str | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True)
class RequestStory:
    """What became of a request. `label` is its name, None for blocks looked up without one.

    `stop` is None where every block was served. `lost_to_filter` is an upper bound, in blocks. `block_tokens` is None
    where the size of a block is not known; `primary_capacity` counts blocks.
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

    def promoted_by_tier(self) -> dict[str, int]:
        """Served blocks by the secondary tier that they were promoted from, all of them in lookup order."""
        counts = dict.fromkeys((tier.name for tier in self.tiers[1:]), 0)
        for block in self.blocks:
            if block.outcome is Outcome.PROMOTED and block.tier is not None:
                counts[block.tier] += 1
        return counts
