"""Stores into the CPU tier, the cascades that follow them, and what request-level tiers get besides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.state import manager_state
from kvtier_cli.tiering import Medium, PrimarySpec, TieringManager, TierSpec, Topology
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.lookup import PrefixAnswer
from kvtier_cli.tiering.manager import PreparedStore
from tests.tiering.managers import (
    NVME,
    PEER,
    POOL,
    S3,
    fill,
    held,
    jobs,
    manager_of,
    order,
    pending_store,
    positions,
    steps,
    store,
)

NO_TIER = parse_tier_filter([]).filter
WHOLE = replace(PEER, name="whole", request_level=True)


class TestStore:
    def test_only_blocks_that_are_absent_are_stored(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        assert manager.prepare_store("r2", ["b1", "b3", "b2"]) == PreparedStore(["b3"], [])
        assert manager.counters.blocks_stored == 3

    def test_it_evicts_what_it_needs_and_says_so(self) -> None:
        manager = manager_of(3)
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        assert manager.prepare_store("r2", ["b4", "b5"]) == PreparedStore(["b4", "b5"], ["b3", "b2"])
        assert manager.counters.evicted_by_stores == 2

    def test_it_is_all_or_nothing(self) -> None:
        manager = manager_of(2)
        manager.on_new_request("r1")
        pending_store(manager, "r1", "b1")
        assert manager.prepare_store("r1", ["b2", "b3"]) is None
        assert (order(manager), manager.primary.free, manager.counters.refused) == ("b1", 1, 1)

    @pytest.mark.parametrize("capacity", [0, 2])
    def test_more_blocks_than_the_cpu_tier_has_slots_are_refused(self, capacity: int) -> None:
        manager = manager_of(capacity)
        manager.on_new_request("r1")
        assert manager.prepare_store("r1", ["b1", "b2", "b3"]) is None

    def test_no_offered_block_is_evicted_for_it_resident_or_not(self) -> None:
        manager = manager_of(2)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        assert manager.prepare_store("r2", ["b2", "b3"]) == PreparedStore(["b3"], ["b1"])
        assert manager.prepare_store("r2", ["b2", "b3", "b4"]) is None

    def test_a_block_given_twice_counts_once(self) -> None:
        manager = manager_of(2)
        manager.on_new_request("r1")
        assert manager.prepare_store("r1", ["b1", "b2", "b1"]) == PreparedStore(["b1", "b2"], [])
        manager.complete_store("r1", ["b1", "b2"])
        assert (manager.primary.free, manager.primary.evictable) == (0, 2)

    def test_its_blocks_may_come_in_any_sequence_when_it_completes_and_so_may_those_of_a_load(self) -> None:
        manager = manager_of(2)
        manager.on_new_request("r1")
        manager.prepare_store("r1", ("b1", "b2"))
        manager.complete_store("r1", ("b1", "b2"))
        manager.prepare_load("r1", ("b1",))
        manager.complete_load("r1", ["b1"])
        assert manager.primary.evictable == 2

    def test_what_is_being_read_is_not_evicted(self) -> None:
        manager = manager_of(2)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.prepare_load("r2", ["b2"])
        assert manager.prepare_store("r2", ["b3", "b4"]) is None
        assert store(manager, "r2", "b3") == ["b1"]
        manager.complete_load("r2", ["b2"])
        assert store(manager, "r2", "b4") == ["b2"]

    def test_each_read_of_a_block_holds_it(self) -> None:
        manager = manager_of(1)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        manager.on_new_request("r3")
        manager.prepare_load("r2", ["b1"])
        manager.prepare_load("r3", ["b1"])
        manager.complete_load("r2", ["b1"])
        assert manager.prepare_store("r3", ["b2"]) is None
        manager.complete_load("r3", ["b1"])
        assert store(manager, "r3", "b2") == ["b1"]

    def test_a_store_that_failed_frees_its_slots_and_cascades_nothing(self) -> None:
        manager = manager_of(2, NVME)
        manager.on_new_request("r1")
        manager.complete_store("r1", pending_store(manager, "r1", "b1 b2"), success=False)
        steps(manager, 2)
        assert (manager.primary.free, held(manager, "nvme")) == (2, "")

    def test_a_store_of_nothing_is_no_store(self) -> None:
        manager = manager_of(1, NVME, events=True)
        manager.on_new_request("r1")
        assert manager.prepare_store("r1", []) == PreparedStore([], [])
        manager.complete_store("r1", [])
        assert (jobs(manager), manager.take_events()) == ([], [])


class TestCascade:
    def test_stored_blocks_go_to_every_tier_a_job_each_whatever_the_filter(self) -> None:
        manager = manager_of(4, NVME, S3)
        manager.on_new_request("r1", load_filter=NO_TIER)
        store(manager, "r1", "b1 b2")
        assert jobs(manager) == ["0 cascade nvme r1: b1 b2", "1 cascade s3 r1: b1 b2"]
        steps(manager, 2)
        assert (held(manager, "nvme"), held(manager, "s3")) == ("b1 b2", "b1 b2")

    def test_blocks_stay_until_their_slowest_tier_has_them(self) -> None:
        manager = manager_of(1, NVME, replace(S3, store_latency=3))
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        refused = 0
        while manager.prepare_store("r1", ["b2"]) is None:
            refused += 1
            manager.on_schedule_end()
        assert (refused, manager.counters.steps) == (3, 3)

    def test_each_job_counts_as_a_pin(self) -> None:
        manager = manager_of(2, NVME, replace(S3, store_latency=1), replace(POOL, store_latency=2))
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        pins = []
        for _ in range(4):
            pins.append(manager.primary.pins(manager.transfers.hidden_pins()))
            manager.on_schedule_end()
            manager.lookup("r1", "b1")
        assert pins == [{"b1": 3}, {"b1": 1}, {"b1": 0}, {"b1": 0}]

    def test_one_that_failed_releases_its_pins_all_the_same(self) -> None:
        manager = manager_of(1, replace(NVME, fail_stores=frozenset({"b1"})))
        fill(manager, "r1", "b1")
        assert (manager.primary.evictable, held(manager, "nvme")) == (1, "")

    def test_its_reads_are_no_accesses(self) -> None:
        manager = manager_of(3, replace(NVME, store_latency=2))
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        fill(manager, "r2", "b2")
        steps(manager, 3)
        manager.on_new_request("r3")
        assert store(manager, "r3", "b3 b4") == ["b1"]


class TestRequestLevel:
    """A tier that wants requests whole also gets the blocks that the CPU tier had before."""

    def test_a_ready_block_that_is_offered_again_goes_to_request_level_tiers_alone(self) -> None:
        manager = manager_of(4, NVME, WHOLE)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        store(manager, "r2", "b1 b2")
        assert jobs(manager) == ["2 cascade whole r2: b1", "3 cascade nvme r2: b2", "4 cascade whole r2: b2"]

    def test_one_still_pending_is_parked_and_cascaded_at_the_end_of_the_step_it_is_ready(self) -> None:
        manager = manager_of(4, WHOLE)
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        manager.on_new_request("r2")
        assert store(manager, "r2", "b1") == []
        manager.on_schedule_end()
        assert (jobs(manager), manager.has_pending_work()) == ([], True)
        manager.complete_store("r1", keys)
        manager.on_schedule_end()
        assert jobs(manager) == ["1 cascade whole r2: b1"]  # the store's own, 0, was due at once

    def test_it_is_parked_once_a_call_that_offers_it(self) -> None:
        manager = manager_of(4, replace(WHOLE, store_latency=1))
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        manager.on_new_request("r2")
        store(manager, "r2", "b1 b1")
        store(manager, "r2", "b1")
        manager.complete_store("r1", keys)
        manager.on_schedule_end()
        assert jobs(manager)[1] == "1 cascade whole r2: b1 b1"
        assert manager.primary.pins(manager.transfers.hidden_pins()) == {"b1": 3}
        steps(manager, 2)
        assert manager.primary.evictable == 1

    def test_one_that_left_the_cpu_tier_meanwhile_is_dropped(self) -> None:
        manager = manager_of(4, WHOLE)
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        manager.on_new_request("r2")
        store(manager, "r2", "b1")
        manager.complete_store("r1", keys, success=False)
        manager.on_schedule_end()
        assert (jobs(manager), manager.has_pending_work()) == ([], False)

    def test_parked_ones_follow_the_promotions_of_the_step_in_the_order_of_arrival(self) -> None:
        manager = manager_of(4, WHOLE, replace(WHOLE, name="whole2"), seeds={"whole": "b9"})
        for request in ("r1", "r2", "r3"):
            manager.on_new_request(request)
        keys = pending_store(manager, "r1", "b1")
        store(manager, "r3", "b1")
        store(manager, "r2", "b1")
        manager.lookup("r3", "b9")
        manager.complete_store("r1", keys)
        manager.on_schedule_end()
        assert jobs(manager)[2:] == [
            "2 promotion whole r3: b9",
            *("3 cascade whole r2: b1", "4 cascade whole2 r2: b1"),
            *("5 cascade whole r3: b1", "6 cascade whole2 r3: b1"),
        ]

    def test_a_refused_store_cascades_and_parks_nothing(self) -> None:
        manager = manager_of(2, WHOLE)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        pending_store(manager, "r2", "b2")
        assert store(manager, "r2", "b1 b2 b3") is None
        manager.on_schedule_end()
        assert (jobs(manager), manager.has_pending_work()) == ([], False)


class TestRequests:
    def test_the_tiers_are_told_at_once_that_a_request_is_over(self) -> None:
        manager = manager_of(4, NVME)
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        manager.on_request_finished("r1")
        assert list(manager.requests) == []

    def test_or_when_its_last_store_completes(self) -> None:
        manager = manager_of(4, NVME)
        manager.on_new_request("r1")
        first, second = pending_store(manager, "r1", "b1"), pending_store(manager, "r1", "b2")
        manager.on_request_finished("r1")
        manager.complete_store("r1", second)
        assert list(manager.requests) == ["r1"]
        manager.complete_store("r1", first, success=False)
        assert list(manager.requests) == []

    def test_or_when_its_last_parked_cascade_is_on_its_way(self) -> None:
        manager = manager_of(4, replace(WHOLE, store_latency=5))
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        manager.on_new_request("r2")
        store(manager, "r2", "b1")
        manager.on_request_finished("r2")
        manager.on_schedule_end()
        assert list(manager.requests) == ["r1", "r2"]
        manager.complete_store("r1", keys)
        manager.on_schedule_end()
        assert list(manager.requests) == ["r1"]

    def test_promotions_and_cascades_under_way_do_not_hold_it(self) -> None:
        manager = manager_of(4, replace(NVME, load_latency=3, store_latency=3), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        store(manager, "r1", "b2")
        manager.on_request_finished("r1")
        assert list(manager.requests) == []
        steps(manager, 4)
        manager.on_new_request("r2")
        assert manager.lookup_prefix("r2", ["b1", "b2"]) == PrefixAnswer(2, False)

    def test_a_load_may_complete_after_the_finish(self) -> None:
        manager = manager_of(1)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        manager.prepare_load("r2", ["b1"])
        manager.on_request_finished("r2")
        assert manager.primary.evictable == 0
        manager.complete_load("r2", ["b1"])
        assert manager.primary.evictable == 1

    def test_its_id_may_come_again_and_knows_nothing_of_before(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r1")
        store(manager, "r1", "b3 b2")
        manager.on_request_finished("r1")
        assert order(manager) == "b1 b2 b3"

    def test_one_that_looked_up_alone_leaves_no_trace(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        positions(manager, "r2", "b2 b1")
        manager.lookup_prefix("r2", ["b2", "b1"])
        manager.on_request_finished("r2")
        assert (order(manager), list(manager.requests)) == ("b2 b1", [])


class TestReset:
    def test_it_empties_the_cpu_tier_and_leaves_the_others(self) -> None:
        manager = manager_of(2, NVME)
        fill(manager, "r1", "b1 b2")
        manager.reset_cache()
        assert (order(manager), manager.primary.free, manager.primary.evictable) == ("", 2, 0)
        assert held(manager, "nvme") == "b1 b2"

    def test_running_jobs_end_first(self) -> None:
        manager = manager_of(2, replace(NVME, store_latency=9))
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        manager.reset_cache()
        assert (jobs(manager), held(manager, "nvme")) == ([], "b1")

    def test_queued_promotions_pins_and_pending_stores_go(self) -> None:
        manager = manager_of(4, replace(WHOLE, load_latency=1), seeds={"whole": "b1"})
        for request in ("r1", "r2"):
            manager.on_new_request(request)
        manager.lookup("r1", "b1")
        pending_store(manager, "r1", "b2")
        store(manager, "r2", "b2")  # parked
        manager.on_request_finished("r2")
        manager.reset_cache()
        assert (manager.transfers.queued(), manager.has_pending_work()) == ([], False)
        assert list(manager.requests) == ["r1"]  # r2 waited for its parked cascade alone
        manager.on_request_finished("r1")
        assert list(manager.requests) == []

    def test_promotions_are_held_until_the_gpu_side_has_flushed_and_stores_are_not(self) -> None:
        manager = manager_of(4, NVME, seeds={"nvme": "b1"})
        manager.reset_cache()
        manager.on_new_request("r1")
        assert manager.lookup_prefix("r1", ["b1"]) == PrefixAnswer(0, False)
        assert manager.counters.asked == [0]
        assert store(manager, "r1", "b2") == []
        assert manager.lookup_prefix("r1", ["b2", "b1"]) == PrefixAnswer(1, False)
        manager.on_reset_flushed()
        assert manager.lookup_prefix("r1", ["b2", "b1"]) == PrefixAnswer(2, True)

    def test_what_was_being_read_or_written_is_over(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        manager.prepare_load("r2", ["b1"])
        keys = pending_store(manager, "r2", "b2")
        manager.reset_cache()
        with pytest.raises(ManagerError, match="no such load under way"):
            manager.complete_load("r2", ["b1"])
        with pytest.raises(ManagerError, match="no such store under way"):
            manager.complete_store("r2", keys)
        assert (order(manager), manager.primary.free) == ("", 4)

    def test_job_ids_and_retry_counts_go_on(self) -> None:
        manager = manager_of(4, replace(NVME, lookup_retry=1), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        store(manager, "r1", "b2")
        assert manager.lookup_prefix("r1", ["b1"]) == PrefixAnswer(1, True)
        manager.reset_cache()
        manager.on_reset_flushed()
        assert manager.lookup_prefix("r1", ["b1"]) == PrefixAnswer(1, True)
        manager.on_schedule_end()
        assert jobs(manager) == ["1 promotion nvme r1: b1"]

    def test_a_live_request_goes_on_with_its_positions_and_nothing_else(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        positions(manager, "r1", "b1 b2 b3")
        store(manager, "r1", "b1")
        fill(manager, "r2", "b4")
        manager.reset_cache()
        store(manager, "r1", "b2 b3")
        fill(manager, "r3", "b5")
        assert order(manager) == "b3 b2 b5"
        manager.on_request_finished("r1")
        assert order(manager) == "b5 b3 b2"


@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_a_store_in_one_call_leaves_what_its_two_halves_leave(policy: str) -> None:
    topology = Topology(primary=PrimarySpec(4, policy), tiers=(TierSpec("t0", Medium.STORAGE), TierSpec("t1")))
    whole, halves = TieringManager(topology, events=True), TieringManager(topology, events=True)
    for manager in (whole, halves):
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b1", "b2", "b3", "b4", "b5", "b6"], range(16, 112, 16))
    for blocks in (["b1", "b2"], ["b2", "b3", "b4"], ["b5"], ["b1", "b2", "b3", "b4", "b5"], ["b6"]):
        stored = whole.store("r1", blocks)
        prepared = halves.prepare_store("r1", blocks)
        if prepared is not None:
            halves.complete_store("r1", prepared.keys)
        assert stored == prepared
        assert manager_state(whole) == manager_state(halves)
        assert whole.take_events() == halves.take_events()
        for manager in (whole, halves):
            manager.on_schedule_end()
