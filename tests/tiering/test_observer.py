"""What an observer hears of the manager's decisions, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from tests.tiering.managers import NVME, S3, Lookups, fill, manager_of, pending_store, steps, store


class Everything(Observer):
    """Writes down every call but those about single lookups, in words."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_request(self, req_id: Any, load_filter: Any) -> None:
        self.heard.append(f"{req_id} arrives with {load_filter.short()}")

    def on_promoted(self, req_id: Any, tier: str, keys: Any) -> None:
        self.heard.append(f"{req_id} promotes {' '.join(keys)} from {tier}")

    def on_evicted(self, req_id: Any, tier: str, keys: Any) -> None:
        self.heard.append(f"{req_id} evicts {' '.join(keys)} from {tier}")

    def on_stored(self, req_id: Any, keys: Any, evicted: Any) -> None:
        self.heard.append(f"{req_id} stores {' '.join(keys)} for {len(evicted)}")

    def on_refused(self, req_id: Any, keys: Any) -> None:
        self.heard.append(f"{req_id} is refused {' '.join(keys)}")

    def on_loaded(self, req_id: Any, keys: Any) -> None:
        self.heard.append(f"{req_id} loads {' '.join(keys)}")

    def on_job_submitted(self, job: Any) -> None:
        self.heard.append(f"job {job.job_id}: {job.kind.value} of {' '.join(job.keys)}, {job.tier}")

    def on_job_finished(self, result: Any) -> None:
        self.heard.append(f"job {result.job.job_id} ends, {len(result.failed)} failed")

    def on_request_finished(self, req_id: Any) -> None:
        self.heard.append(f"{req_id} finishes")

    def on_tier_finished(self, tier: str, req_id: Any) -> None:
        self.heard.append(f"{tier} hears that {req_id} is over")

    def on_step(self) -> None:
        self.heard.append("step")

    def on_reset(self) -> None:
        self.heard.append("reset")


def two_requests(manager: TieringManager) -> None:
    """One stores three blocks, the other promotes two of them and stores one."""
    manager.on_new_request("r1")
    store(manager, "r1", "b1 b2")
    manager.on_request_finished("r1")
    steps(manager, 2)
    manager.on_new_request("r2")
    manager.load("r2", ["b1"])
    store(manager, "r2", "b2 b3 b4")
    store(manager, "r2", "b3")
    manager.lookup("r2", "b9")
    manager.on_request_finished("r2")
    manager.on_schedule_end()
    manager.reset_cache()


STORY = [
    "r1 arrives with all",
    *("r1 stores b1 b2 for 0", "job 0: cascade of b1 b2, nvme", "r1 finishes", "nvme hears that r1 is over", "step"),
    *("job 0 ends, 0 failed", "step"),
    *("r2 arrives with all", "r2 loads b1", "r2 is refused b3 b4"),
    *("r2 evicts b2 from cpu", "r2 stores b3 for 1", "job 1: cascade of b3, nvme"),
    *("r2 evicts b1 from cpu", "r2 promotes b9 from nvme", "r2 finishes", "nvme hears that r2 is over"),
    *("job 2: promotion of b9, nvme", "step", "job 1 ends, 0 failed", "job 2 ends, 0 failed", "reset"),
]


def watched(make: Callable[[], Observer]) -> Observer:
    observer = make()
    two_requests(manager_of(2, NVME, seeds={"nvme": "b9"}, observer=observer))
    return observer


def test_decisions_are_heard_in_the_order_in_which_they_take_effect() -> None:
    observer = watched(Everything)
    assert isinstance(observer, Everything)
    assert observer.heard == STORY


def test_a_group_tells_each_of_its_observers_groups_among_them() -> None:
    first, second, lookups = Everything(), Everything(), Lookups()
    watched(lambda: ObserverGroup([first, Observer(), ObserverGroup([lookups, second])]))
    assert first.heard == second.heard == STORY
    assert [lookup.promotion for lookup in lookups.heard] == ["nvme"]


def test_a_group_of_nobody_hears_nothing_and_disturbs_nothing() -> None:
    watched(lambda: ObserverGroup([]))


def test_what_is_heard_has_taken_effect_already() -> None:
    class Looks(Observer):
        def __init__(self) -> None:
            self.seen: list[tuple[str, bool]] = []
            self.manager: TieringManager | None = None

        def look(self, what: str, key: Any) -> None:
            assert self.manager is not None
            self.seen.append((what, key in self.manager.primary.resident))

        def on_evicted(self, req_id: Any, tier: str, keys: Any) -> None:
            self.look("evicted", keys[0])

        def on_stored(self, req_id: Any, keys: Any, evicted: Any) -> None:
            self.look("stored", keys[0])

        def on_promoted(self, req_id: Any, tier: str, keys: Any) -> None:
            self.look("promoted", keys[0])

    observer = Looks()
    observer.manager = manager_of(1, NVME, seeds={"nvme": "b3"}, observer=observer)
    fill(observer.manager, "r1", "b1")
    fill(observer.manager, "r2", "b2")
    observer.manager.on_new_request("r3")
    observer.manager.lookup("r3", "b3")
    assert observer.seen == [
        ("stored", True),
        *(("evicted", False), ("stored", True)),
        *(("evicted", False), ("promoted", True)),
    ]


def test_a_run_of_promotions_is_told_as_one_to_who_does_not_ask_for_single_lookups() -> None:
    observer = Everything()
    manager = manager_of(2, NVME, seeds={"nvme": "b3 b4"}, observer=observer)
    fill(manager, "r1", "b1 b2")
    observer.heard.clear()
    manager.on_new_request("r2")
    manager.lookup_prefix("r2", ["b3", "b4"])
    assert observer.heard[1:] == ["r2 evicts b2 b1 from cpu", "r2 promotes b3 b4 from nvme"]


def test_one_who_asks_for_single_lookups_hears_of_every_block_of_a_prefix_those_that_are_ready_too() -> None:
    observer = Lookups()
    manager = manager_of(4, NVME, seeds={"nvme": "b3"}, observer=observer)
    fill(manager, "r1", "b1 b2")
    manager.on_new_request("r2")
    manager.lookup_prefix("r2", ["b1", "b2", "b3", "b4", "b5"])
    assert [lookup.result.name for lookup in observer.heard] == ["HIT", "HIT", "HIT_PENDING", "MISS"]


def test_what_a_secondary_tier_evicts_is_told_with_the_request_whose_blocks_needed_the_room() -> None:
    observer = Everything()
    manager = manager_of(2, S3, replace(NVME, capacity=2), seeds={"nvme": "b8 b9"}, observer=observer)
    fill(manager, "r1", "b1")
    fill(manager, "r2", "b9 b2")
    assert [words for words in observer.heard if "evicts" in words] == [
        "r1 evicts b8 from nvme",
        "r2 evicts b1 from cpu",
        "r2 evicts b1 from nvme",
    ]


def test_an_observer_may_come_later_and_go_again() -> None:
    first, second = Everything(), Lookups()
    manager = manager_of(2, NVME, observer=first)
    manager.on_new_request("r1")
    manager.observe(second)
    manager.lookup("r1", "b1")
    manager.observe(None)
    manager.lookup("r1", "b2")
    manager.on_request_finished("r1")
    assert first.heard == ["r1 arrives with all"]
    assert len(second.heard) == 1


def test_one_that_goes_is_told_nothing_by_the_tiers_either() -> None:
    observer = Everything()
    manager = manager_of(2, replace(NVME, capacity=1), observer=observer)
    fill(manager, "r1", "b1")
    manager.observe(None)
    observer.heard.clear()
    fill(manager, "r2", "b2")
    assert observer.heard == []


def test_a_store_that_completes_later_is_heard_when_it_takes_its_slots() -> None:
    observer = Everything()
    manager = manager_of(2, NVME, observer=observer)
    manager.on_new_request("r1")
    keys = pending_store(manager, "r1", "b1")
    assert observer.heard[-1] == "r1 stores b1 for 0"
    manager.complete_store("r1", keys)
    assert observer.heard[-1] == "job 0: cascade of b1, nvme"
