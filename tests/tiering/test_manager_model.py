"""Whatever requests do, the manager decides as its naive twin does, watched or not, and its books balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kvtier_cli.tiering import recency
from kvtier_cli.tiering.topology import PrimarySpec, TierSpec, Topology
from tests.tiering.lockstep import KNOWN, Lockstep
from tests.tiering.strategies import BLOCKS, TWO_GROUPS, block_lists, load_tiers, tier_lists

WHICH = st.integers(0, 3)
KNOW = st.sampled_from(KNOWN)
SLACK = recency._SLACK


class Managers(RuleBasedStateMachine):
    """Requests of all kinds, one after another and at the same time."""

    policy: ClassVar[str]

    @initialize(
        capacity=st.sampled_from((5, 6, 4, 6, 3, 8, 2, 1, 0)),
        tiers=tier_lists(),
        blocks=st.sampled_from((BLOCKS, TWO_GROUPS)),
        level=st.booleans(),
        listening=st.booleans(),
        tidy=st.booleans(),
    )
    def start(
        self,
        capacity: int,
        tiers: tuple[TierSpec, ...],
        blocks: Sequence[str],
        level: bool,
        listening: bool,
        tidy: bool,
    ) -> None:
        # How much that no longer counts an order of recency gathers before it tidies up.
        recency._SLACK = -SLACK if tidy else SLACK
        topology = Topology(primary=PrimarySpec(capacity, self.policy), tiers=tiers)
        # Blocks of one group at one position: what LRU makes of them before the finish, vLLM leaves open.
        self.managers = Lockstep(topology, blocks, level=level and self.policy == "arc", listening=listening)

    def names(self, numbers: Sequence[int]) -> list[str]:
        blocks = self.managers.blocks
        return [blocks[number % len(blocks)] for number in numbers]

    def one(self, which: int) -> str:
        """One of the unfinished requests."""
        if not self.managers.unfinished:
            self.managers.arrive({})
        return self.managers.unfinished[which % len(self.managers.unfinished)]

    @rule(which=WHICH, numbers=block_lists(max_size=10, unique=True))
    @precondition(lambda self: self.managers.bare.tiers)
    def seed(self, which: int, numbers: list[int]) -> None:
        self.managers.seed(which % len(self.managers.bare.tiers), self.names(numbers))

    @rule(load_tiers=load_tiers(), prompt=st.just([]) | block_lists())
    @precondition(lambda self: len(self.managers.unfinished) < 4)
    def arrive(self, load_tiers: dict[str, Any], prompt: list[int]) -> None:
        self.managers.arrive(load_tiers, self.names(prompt))

    @rule(numbers=block_lists(min_size=1), load_tiers=load_tiers(), known=KNOW)
    def serve(self, numbers: list[int], load_tiers: dict[str, Any], known: str) -> None:
        self.managers.serve(self.names(numbers), load_tiers, known)

    @rule(which=WHICH, numbers=block_lists(min_size=1), known=KNOW)
    def look_up(self, which: int, numbers: list[int], known: str) -> None:
        self.managers.look_up(self.one(which), self.names(numbers), known)

    @rule(which=WHICH, numbers=block_lists(), known=KNOW, defer=st.booleans())
    def store(self, which: int, numbers: list[int], known: str, defer: bool) -> None:
        self.managers.store(self.one(which), self.names(numbers), known, defer=defer)

    @rule(which=WHICH, success=st.booleans())
    @precondition(lambda self: self.managers.stores)
    def end_store(self, which: int, success: bool) -> None:
        self.managers.end_store(self.managers.stores[which % len(self.managers.stores)], success=success)

    @rule(which=WHICH, numbers=block_lists(), known=KNOW, defer=st.booleans())
    def load(self, which: int, numbers: list[int], known: str, defer: bool) -> None:
        self.managers.load(self.one(which), self.names(numbers), known, defer=defer)

    @rule(which=WHICH)
    @precondition(lambda self: self.managers.loads)
    def end_load(self, which: int) -> None:
        self.managers.end_load(self.managers.loads[which % len(self.managers.loads)])

    @rule(which=WHICH, numbers=block_lists(), known=KNOW)
    def touch(self, which: int, numbers: list[int], known: str) -> None:
        self.managers.touch(self.one(which), self.names(numbers), known)

    @rule(which=WHICH)
    def finish(self, which: int) -> None:
        self.managers.finish(self.one(which))

    @rule()
    def step(self) -> None:
        self.managers.step()

    @rule(hold=st.booleans())
    @precondition(lambda self: self.managers.ops_since_quiet > 60)
    def reset(self, hold: bool) -> None:
        self.managers.reset(hold=hold)

    @rule()
    @precondition(lambda self: self.managers.bare.holds_promotions)
    def flush(self) -> None:
        self.managers.flush()

    @invariant()
    def nobody_watching_makes_no_difference(self) -> None:
        self.managers.check_alike()

    @invariant()
    def the_counters_count_what_happened(self) -> None:
        self.managers.check_counts()

    @invariant()
    def no_slot_is_lost_or_doubled(self) -> None:
        primary = self.managers.bare.primary
        state = primary.state()
        listed = state["order"] if self.policy == "lru" else state["t1"] + state["t2"]
        assert len(listed) == len(primary.resident)
        assert set(listed) == set(primary.resident)
        assert primary.free == primary.capacity - len(listed) >= 0

    @invariant()
    def what_keeps_a_block_from_eviction_is_a_write_or_a_pin(self) -> None:
        primary = self.managers.bare.primary
        assert primary.busy.keys() <= primary.resident.keys()
        assert all(pins == -1 or pins > 0 for pins in primary.busy.values())
        assert primary.pending == list(primary.busy.values()).count(-1)
        assert primary.evictable == len([block for block in primary.resident if block not in primary.busy])

    @rule()
    @precondition(lambda self: self.managers.ops_since_quiet > 60)
    def when_all_has_ended_nothing_is_pinned_pending_or_live(self) -> None:
        self.managers.end_all()
        manager = self.managers.bare
        assert (manager.primary.busy, manager.primary.pending) == ({}, 0)
        assert (manager.requests, manager.transfers.jobs, manager.transfers.queued()) == ({}, {}, [])
        assert not manager.has_pending_work()

    def teardown(self) -> None:
        recency._SLACK = SLACK


class LruManagers(Managers):
    policy = "lru"


class ArcManagers(Managers):
    policy = "arc"


@pytest.mark.parametrize("machine", [LruManagers, ArcManagers])
def test_three_managers_decide_alike(machine: type[Managers]) -> None:
    thrice = 3 * settings().max_examples
    run_state_machine_as_test(machine, settings=settings(max_examples=thrice, stateful_step_count=60))
