"""What a lookup answers: the CPU tier, the secondary tiers that the filter admits, promotions and their denial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvtier_cli.tiering import PrefixAnswer
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.model import LoadSource, LookupResult
from tests.tiering.managers import (
    NVME,
    PEER,
    POOL,
    S3,
    Lookup,
    Lookups,
    fill,
    jobs,
    manager_of,
    order,
    pending_store,
    positions,
    steps,
    store,
    tier_of,
)

HIT, PENDING, RETRY, MISS = LookupResult.HIT, LookupResult.HIT_PENDING, LookupResult.RETRY, LookupResult.MISS


def test_a_block_that_no_tier_holds_is_a_miss_after_all_were_asked() -> None:
    lookups = Lookups()
    manager = manager_of(4, NVME, S3, observer=lookups)
    manager.on_new_request("r1")
    assert manager.lookup("r1", "b1") is MISS
    assert lookups.heard == [Lookup(MISS, "miss miss")]


def test_a_block_in_the_cpu_tier_is_a_hit_and_no_tier_is_reached() -> None:
    lookups = Lookups()
    manager = manager_of(4, NVME, observer=lookups)
    fill(manager, "r1", "b1")
    manager.on_new_request("r2")
    assert manager.lookup("r2", "b1") is HIT
    assert lookups.heard == [Lookup(HIT, "not_reached")]


def test_a_block_on_its_way_from_the_gpu_is_pending_until_its_store_completes() -> None:
    lookups = Lookups()
    manager = manager_of(4, NVME, observer=lookups)
    manager.on_new_request("r1")
    keys = pending_store(manager, "r1", "b1")
    assert manager.lookup("r1", "b1") is PENDING
    manager.complete_store("r1", keys)
    assert manager.lookup("r1", "b1") is HIT
    assert lookups.heard == [Lookup(PENDING, "not_reached"), Lookup(HIT, "not_reached")]


@pytest.mark.parametrize(("latency", "waits"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_a_hit_in_a_secondary_tier_is_pending_and_becomes_a_hit_after_the_step_that_loads_it(
    latency: int, waits: int
) -> None:
    manager = manager_of(4, replace(NVME, load_latency=latency), seeds={"nvme": "b1"})
    manager.on_new_request("r1")
    answers = []
    for _ in range(waits + 1):
        answers.append(manager.lookup("r1", "b1"))
        manager.on_schedule_end()
    assert answers == [PENDING] * waits + [HIT]


def test_the_first_tier_that_hits_serves_and_later_ones_are_not_asked() -> None:
    lookups = Lookups()
    manager = manager_of(4, POOL, NVME, S3, seeds={"nvme": "b1", "s3": "b1"}, observer=lookups)
    manager.on_new_request("r1")
    manager.lookup("r1", "b1")
    assert lookups.heard == [Lookup(PENDING, "miss hit not_reached", promotion="nvme")]
    assert (manager.counters.asked, manager.counters.hits) == ([1, 1, 0], [0, 1, 0])


def test_a_tier_that_the_filter_skips_is_not_asked() -> None:
    lookups = Lookups()
    manager = manager_of(4, NVME, S3, seeds={"nvme": "b1 b2", "s3": "b1"}, observer=lookups)
    manager.on_new_request("r1", parse_tier_filter([{"locality": "remote"}]).filter)
    assert [manager.lookup("r1", block) for block in ("b1", "b2")] == [PENDING, MISS]
    assert lookups.heard == [Lookup(PENDING, "skipped hit", promotion="s3"), Lookup(MISS, "skipped miss")]
    assert (manager.counters.skipped, manager.counters.asked) == ([2, 0], [0, 2])


@pytest.mark.parametrize(
    ("raw", "served"),
    [
        (None, "nvme s3 pool peer"),
        ([], ""),
        ([{"medium": "storage"}], "nvme s3 peer"),
        ([{"locality": "remote"}], "s3 pool peer"),
        ([{"medium": "storage", "locality": "local"}], "nvme peer"),
        ([{"medium": "cpu"}, {"locality": "local"}], "nvme pool peer"),
        ([{"medium": "gpu"}], "nvme s3 pool peer"),  # fails open
        ([{"medum": "cpu"}], "nvme s3 pool peer"),  # so does this
    ],
)
def test_a_filter_admits_tiers_by_what_they_declare(raw: Any, served: str) -> None:
    tiers = (NVME, S3, POOL, PEER)
    manager = manager_of(8, *tiers, seeds={tier.name: f"of-{tier.name}" for tier in tiers})
    manager.on_new_request("r1", parse_tier_filter(raw).filter)
    answers = {tier.name: manager.lookup("r1", f"of-{tier.name}") for tier in tiers}
    assert " ".join(name for name, answer in answers.items() if answer is PENDING) == served


@pytest.mark.parametrize("raw", [[], [{"medium": "storage"}]])
def test_the_cpu_tier_is_never_filtered(raw: Any) -> None:
    manager = manager_of(4, NVME)
    fill(manager, "r1", "b1")
    manager.on_new_request("r2", parse_tier_filter(raw).filter)
    assert manager.lookup("r2", "b1") is HIT


def test_a_tier_that_says_retry_does_not_stop_the_scan() -> None:
    lookups = Lookups()
    manager = manager_of(4, replace(NVME, lookup_retry=1), S3, seeds={"nvme": "b1", "s3": "b1"}, observer=lookups)
    manager.on_new_request("r1")
    assert [manager.lookup("r1", "b1"), manager.lookup("r1", "b2")] == [PENDING, RETRY]
    assert lookups.heard == [Lookup(PENDING, "retry hit", promotion="s3"), Lookup(RETRY, "retry miss")]


class TestDenied:
    def test_a_hit_without_a_slot_is_a_miss_and_later_tiers_are_not_asked(self) -> None:
        lookups = Lookups()
        manager = manager_of(1, NVME, S3, seeds={"nvme": "b2", "s3": "b2"}, observer=lookups)
        manager.on_new_request("r1")
        pending_store(manager, "r1", "b1")
        assert manager.lookup("r1", "b2") is MISS
        assert lookups.heard == [Lookup(MISS, "hit not_reached", denied="nvme")]
        assert (manager.counters.denied, manager.counters.hits) == (1, [1, 0])

    def test_it_is_remembered_for_the_request_until_it_looks_at_its_prefix_again(self) -> None:
        manager = manager_of(1, NVME, S3, seeds={"nvme": "b3", "s3": "b2"})
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        assert manager.lookup_prefix("r1", ["b1", "b2", "b3"]) == PrefixAnswer(1, True)
        assert manager.requests["r1"].denied == {"b2": 1}
        manager.complete_store("r1", keys)
        steps(manager, 2)
        manager.lookup_prefix("r1", ["b1", "b3"])
        assert manager.requests["r1"].denied == {}

    def test_a_cpu_tier_without_slots_denies_everything(self) -> None:
        manager = manager_of(0, NVME, seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        assert manager.lookup_prefix("r1", ["b1"]) == PrefixAnswer(0, False)
        assert manager.counters.denied == 1


class TestPromotion:
    def test_it_takes_its_slot_at_once_and_evicts_for_it(self) -> None:
        lookups = Lookups()
        manager = manager_of(2, NVME, seeds={"nvme": "b3"}, observer=lookups)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.lookup("r2", "b3")
        assert lookups.heard == [Lookup(PENDING, "hit", promotion="nvme", evicted="b2")]
        assert (order(manager), manager.primary.free, manager.counters.evicted_by_promotions) == ("b1 b3", 0, 1)

    def test_it_may_evict_a_block_that_the_same_request_has_just_hit(self) -> None:
        manager = manager_of(2, NVME, seeds={"nvme": "b2 b3"})
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        assert manager.lookup_prefix("r2", ["b1", "b2", "b3"]) == PrefixAnswer(3, True)
        assert order(manager) == "b2 b3"

    def test_those_of_a_step_are_one_job_for_each_tier_and_request_in_the_order_of_the_tiers_first(self) -> None:
        manager = manager_of(8, NVME, S3, seeds={"nvme": "b2 b3 b5", "s3": "b1 b4"})
        manager.on_new_request("r1")
        manager.on_new_request("r2")
        for request, block in [("r1", "b1"), ("r2", "b2"), ("r1", "b3"), ("r1", "b4"), ("r2", "b5")]:
            manager.lookup(request, block)
        assert jobs(manager) == []
        manager.on_schedule_end()
        assert jobs(manager) == ["0 promotion s3 r1: b1 b4", "1 promotion nvme r2: b2 b5", "2 promotion nvme r1: b3"]

    def test_blocks_that_fail_give_their_slots_back_and_the_others_become_ready(self) -> None:
        manager = manager_of(4, replace(NVME, fail_loads=frozenset({"b2"})), seeds={"nvme": "b1 b2 b3"})
        manager.on_new_request("r1")
        manager.lookup_prefix("r1", ["b1", "b2", "b3"])
        manager.on_schedule_end()
        assert [manager.lookup("r1", block) for block in ("b1", "b3")] == [HIT, HIT]
        assert (manager.primary.free, manager.counters.failed) == (2, [1])
        assert manager.requests["r1"].failed == {"b2": 0}

    def test_a_doomed_one_starts_again_with_the_next_lookup(self) -> None:
        manager = manager_of(4, replace(NVME, fail_loads=frozenset({"b1"})), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        for _ in range(3):
            assert manager.lookup("r1", "b1") is PENDING
            manager.on_schedule_end()
        assert (manager.counters.promoted, manager.counters.failed) == ([3], [2])

    def test_a_block_that_left_its_tier_meanwhile_fails(self) -> None:
        manager = manager_of(4, replace(NVME, capacity=1, load_latency=2), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        tier_of(manager, "nvme").seed(["b2"])
        steps(manager, 2)
        assert manager.lookup("r1", "b1") is MISS
        assert (manager.counters.failed, manager.primary.free) == ([1], 4)


class TestPrefix:
    def test_it_ends_at_the_first_miss_although_later_blocks_are_there(self) -> None:
        manager = manager_of(4, NVME, seeds={"nvme": "b3"})
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        assert manager.lookup_prefix("r2", ["b1", "b2", "b3"]) == PrefixAnswer(1, False)
        assert (manager.counters.lookups, manager.counters.asked) == (2, [1])

    def test_one_pending_block_voids_the_answer(self) -> None:
        manager = manager_of(4, NVME, seeds={"nvme": "b2"})
        fill(manager, "r1", "b1")
        fill(manager, "r2", "b3")
        manager.on_new_request("r3")
        assert manager.lookup_prefix("r3", ["b1", "b2", "b3"]) == PrefixAnswer(3, True)
        manager.on_schedule_end()
        assert manager.lookup_prefix("r3", ["b1", "b2", "b3"]) == PrefixAnswer(3, False)

    def test_a_retry_goes_on_to_the_next_block(self) -> None:
        manager = manager_of(4, replace(NVME, lookup_retry=1), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(2, True)
        assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(1, True)

    def test_a_block_that_a_store_has_under_way_voids_it_too(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        pending_store(manager, "r1", "b1")
        assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(1, True)

    def test_a_prefix_longer_than_the_cpu_tier_is_served_as_far_as_there_are_slots(self) -> None:
        manager = manager_of(2, NVME, seeds={"nvme": "b1 b2 b3"})
        manager.on_new_request("r1")
        assert manager.lookup_prefix("r1", ["b1", "b2", "b3"]) == PrefixAnswer(2, True)
        assert (manager.counters.promoted, manager.counters.denied) == ([2], 1)


class TestLoadSource:
    @pytest.mark.parametrize(
        ("tier", "source"),
        [(NVME, LoadSource.DISK), (POOL, LoadSource.HOST), (PEER, LoadSource.EXTERNAL_UNSPECIFIED)],
    )
    def test_it_tells_the_medium_of_the_tier_to_the_request_that_promoted_and_host_to_others(
        self, tier: Any, source: LoadSource
    ) -> None:
        manager = manager_of(4, tier, seeds={tier.name: "b1"})
        manager.on_new_request("r1")
        manager.on_new_request("r2")
        manager.lookup("r1", "b1")
        manager.on_schedule_end()
        assert (manager.load_source("r1", "b1"), manager.load_source("r2", "b1")) == (source, LoadSource.HOST)

    def test_it_outlives_the_eviction_of_the_block(self) -> None:
        manager = manager_of(1, NVME, seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        manager.on_schedule_end()
        assert store(manager, "r1", "b2") == ["b1"]
        steps(manager, 2)
        manager.on_new_request("r2")
        assert store(manager, "r2", "b1") == ["b2"]
        assert manager.load_source("r1", "b1") is LoadSource.DISK

    def test_it_ends_with_the_failure_of_that_load(self) -> None:
        manager = manager_of(4, replace(NVME, fail_loads=frozenset({"b1"})), seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        manager.on_schedule_end()
        store(manager, "r1", "b1")
        assert manager.load_source("r1", "b1") is LoadSource.HOST

    def test_it_ends_with_a_reset(self) -> None:
        manager = manager_of(4, NVME, seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        manager.reset_cache()
        assert manager.load_source("r1", "b1") is LoadSource.HOST


class TestPolling:
    """Jobs that have ended are taken note of once a step, by whatever looks first; a store always does."""

    def test_a_second_lookup_in_a_step_does_not_poll(self) -> None:
        manager = manager_of(4, NVME)
        manager.on_new_request("r1")
        manager.lookup("r1", "b9")
        store(manager, "r1", "b1")
        assert manager.lookup("r1", "b1") is HIT
        assert jobs(manager) == ["0 cascade nvme r1: b1"]

    def test_a_store_polls_again(self) -> None:
        manager = manager_of(4, NVME)
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        store(manager, "r1", "b2")
        assert jobs(manager) == ["1 cascade nvme r1: b2"]

    def test_a_step_polls_only_if_nothing_has(self) -> None:
        manager = manager_of(4, NVME)
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        manager.on_schedule_end()
        assert jobs(manager) == ["0 cascade nvme r1: b1"]
        manager.on_schedule_end()
        assert jobs(manager) == []

    def test_neither_a_load_nor_a_completion_nor_a_touch_nor_a_finish_polls(self) -> None:
        manager = manager_of(4, replace(NVME, store_latency=1))
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        keys = pending_store(manager, "r1", "b2")
        manager.on_schedule_end()
        manager.complete_store("r1", keys)
        manager.load("r1", ["b1"])
        manager.touch("r1", ["b1"])
        manager.on_request_finished("r1")
        assert jobs(manager) == ["0 cascade nvme r1: b1", "1 cascade nvme r1: b2"]
        manager.on_new_request("r2")
        manager.lookup("r2", "b1")
        assert jobs(manager) == ["1 cascade nvme r1: b2"]


def test_a_lookup_changes_no_recency() -> None:
    manager = manager_of(4)
    fill(manager, "r1", "b1 b2")
    manager.on_new_request("r2")
    positions(manager, "r2", "b2 b1")
    manager.lookup_prefix("r2", ["b2", "b1"])
    manager.on_request_finished("r2")
    assert order(manager) == "b2 b1"
