"""The KV events a server would publish: what became resident in a medium, and what left the CPU tier."""

from __future__ import annotations

from dataclasses import replace

from kvtier_cli.tiering.manager import TieringManager
from tests.tiering.managers import NVME, PEER, S3, fill, manager_of, pending_store, steps, store


def events(manager: TieringManager) -> list[str]:
    """The events since the last look, in words."""
    return [
        " ".join(
            [
                *(event.medium.value, "-" if event.locality is None else event.locality.value),
                *("removed" if event.removed else "stored", *map(str, event.keys)),
            ]
        )
        for event in manager.take_events()
    ]


def test_a_store_is_reported_by_the_cpu_tier_when_it_completes() -> None:
    manager = manager_of(4, events=True)
    manager.on_new_request("r1")
    keys = pending_store(manager, "r1", "b1 b2")
    assert events(manager) == []
    manager.complete_store("r1", keys)
    assert events(manager) == ["CPU - stored b1 b2"]
    assert events(manager) == []


def test_what_an_eviction_took_is_reported_before_the_store_that_caused_it() -> None:
    manager = manager_of(2, events=True)
    fill(manager, "r1", "b1 b2")
    manager.take_events()
    manager.on_new_request("r2")
    store(manager, "r2", "b3 b4")
    assert events(manager) == ["CPU - removed b2 b1", "CPU - stored b3 b4"]


def test_a_promotion_is_reported_when_its_load_ends_and_its_eviction_at_once() -> None:
    manager = manager_of(2, NVME, seeds={"nvme": "b3 b4"}, events=True)
    fill(manager, "r1", "b1 b2")
    manager.take_events()
    manager.on_new_request("r2")
    manager.lookup_prefix("r2", ["b3", "b4"])
    assert events(manager) == ["CPU - removed b2", "CPU - removed b1"]
    steps(manager, 2)
    assert events(manager) == ["CPU - stored b3 b4"]


def test_of_a_promotion_only_the_blocks_that_arrived_are_reported() -> None:
    manager = manager_of(4, replace(NVME, fail_loads=frozenset({"b1"})), seeds={"nvme": "b1 b2"}, events=True)
    manager.on_new_request("r1")
    manager.lookup_prefix("r1", ["b1", "b2"])
    steps(manager, 2)
    assert events(manager) == ["CPU - stored b2"]


def test_a_secondary_tier_reports_a_job_that_succeeded_whole_with_what_it_declares() -> None:
    undeclared_locality = replace(S3, name="s4", locality=None)
    failing = replace(S3, name="s5", fail_stores=frozenset({"b2"}))
    manager = manager_of(4, undeclared_locality, NVME, failing, PEER, events=True)
    fill(manager, "r1", "b1 b2")
    assert events(manager) == ["CPU - stored b1 b2", "STORAGE - stored b1 b2", "STORAGE LOCAL stored b1 b2"]


def test_a_secondary_tier_reports_stores_again_and_never_what_it_evicts() -> None:
    manager = manager_of(1, replace(NVME, capacity=1), events=True)
    for request, block in [("r1", "b1"), ("r2", "b2"), ("r3", "b1")]:
        fill(manager, request, block)
    assert [event for event in events(manager) if event.startswith("STORAGE")] == [
        *("STORAGE LOCAL stored b1", "STORAGE LOCAL stored b2", "STORAGE LOCAL stored b1"),
    ]


def test_seeds_loads_failed_stores_and_failed_promotions_report_nothing() -> None:
    manager = manager_of(4, replace(NVME, fail_loads=frozenset({"b9"})), seeds={"nvme": "b9"}, events=True)
    fill(manager, "r1", "b1")
    manager.take_events()
    manager.on_new_request("r2")
    manager.load("r2", ["b1"])
    manager.complete_store("r2", pending_store(manager, "r2", "b2"), success=False)
    manager.lookup("r2", "b9")
    steps(manager, 2)
    assert events(manager) == []


def test_of_a_reset_only_the_jobs_that_it_ends_are_reported() -> None:
    manager = manager_of(4, replace(NVME, store_latency=9, load_latency=9), seeds={"nvme": "b1"}, events=True)
    manager.on_new_request("r1")
    manager.lookup("r1", "b1")
    steps(manager, 1)
    store(manager, "r1", "b2")
    manager.take_events()
    manager.reset_cache()
    assert events(manager) == ["CPU - stored b1", "STORAGE LOCAL stored b2"]


def test_the_cpu_tiers_events_come_first_then_each_tiers_in_topology_order() -> None:
    manager = manager_of(4, S3, NVME, events=True)
    fill(manager, "r1", "b1")
    fill(manager, "r2", "b2")
    assert events(manager) == [
        *("CPU - stored b1", "CPU - stored b2"),
        *("STORAGE REMOTE stored b1", "STORAGE REMOTE stored b2"),
        *("STORAGE LOCAL stored b1", "STORAGE LOCAL stored b2"),
    ]


def test_a_manager_that_was_not_asked_for_events_has_none() -> None:
    manager = manager_of(1, NVME)
    fill(manager, "r1", "b1")
    fill(manager, "r2", "b2")
    assert manager.take_events() == []
