"""ARC as vLLM 0.33 plays it: T1 for what was put in, T2 for what another request used again, ghosts of both."""

from __future__ import annotations

import pytest

from kvtier_cli.tiering.lookup import PrefixAnswer
from tests.tiering.managers import NVME, arc, fill, manager_of, pending_store, positions, store


def test_blocks_enter_t1_and_the_finish_puts_the_head_of_the_prompt_last() -> None:
    manager = manager_of(4, policy="arc")
    manager.on_new_request("r1")
    positions(manager, "r1", "b1 b2 b3")
    store(manager, "r1", "b1 b2 b3")
    assert arc(manager) == {"t1": "b1 b2 b3"}
    manager.on_request_finished("r1")
    assert arc(manager) == {"t1": "b3 b2 b1"}


class TestReuse:
    def test_what_another_request_inserted_moves_to_t2_at_the_finish(self) -> None:
        manager = manager_of(4, policy="arc")
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        positions(manager, "r2", "b1 b2 b3")
        manager.load("r2", ["b1"])
        store(manager, "r2", "b2")  # offered while ready: as good as loaded
        assert arc(manager) == {"t1": "b3 b2 b1"}
        manager.on_request_finished("r2")
        assert arc(manager) == {"t1": "b3", "t2": "b2 b1"}

    def test_again_it_moves_to_the_recent_end_of_t2(self) -> None:
        manager = manager_of(4, policy="arc")
        fill(manager, "r1", "b1 b2")
        for number, block in enumerate(["b1", "b2", "b1"]):
            manager.on_new_request(f"more{number}")
            manager.load(f"more{number}", [block])
            manager.on_request_finished(f"more{number}")
        assert arc(manager) == {"t2": "b2 b1"}

    def test_a_block_of_ones_own_is_not_reused_however_often_it_is_read(self) -> None:
        manager = manager_of(4, policy="arc")
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        manager.load("r1", ["b1"])
        manager.on_request_finished("r1")
        assert arc(manager) == {"t1": "b1"}

    def test_a_block_that_one_promoted_is_ones_own(self) -> None:
        manager = manager_of(4, NVME, policy="arc", seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        manager.on_schedule_end()
        manager.lookup("r1", "b1")
        manager.load("r1", ["b1"])
        manager.on_request_finished("r1")
        assert arc(manager) == {"t1": "b1"}

    def test_what_was_only_offered_while_absent_stays_where_it_is(self) -> None:
        manager = manager_of(2, policy="arc")
        manager.on_new_request("r1")
        assert store(manager, "r1", "b1 b2 b3") is None
        fill(manager, "r2", "b2 b1")
        manager.on_request_finished("r1")
        assert arc(manager) == {"t1": "b1 b2"}

    def test_a_refused_store_uses_the_ready_blocks_in_it_all_the_same(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        assert store(manager, "r2", "b1 b2 b3") is None
        manager.on_request_finished("r2")
        assert arc(manager) == {"t2": "b1"}


class TestEviction:
    def test_victims_leave_a_ghost_in_the_list_of_their_kind(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.load("r2", ["b2"])
        manager.on_request_finished("r2")
        assert arc(manager) == {"t1": "b1", "t2": "b2"}
        manager.on_new_request("r3")
        assert store(manager, "r3", "b3 b4") == ["b1", "b2"]
        assert arc(manager) == {"t1": "b3 b4", "b1": "b1", "b2": "b2"}

    def test_ghosts_are_trimmed_to_the_capacity_from_their_least_recent_end(self) -> None:
        manager = manager_of(2, policy="arc")
        for request, blocks in [("r1", "b1 b2"), ("r2", "b3 b4"), ("r3", "b5")]:
            fill(manager, request, blocks)
        assert arc(manager) == {"t1": "b3 b5", "b1": "b1 b4"}

    def test_a_pinned_t1_makes_way_for_t2(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.load("r2", ["b2"])
        manager.on_request_finished("r2")
        manager.on_new_request("r3")
        manager.prepare_load("r3", ["b1"])
        assert store(manager, "r3", "b3") == ["b2"]

    def test_too_few_victims_change_nothing(self) -> None:
        manager = manager_of(3, policy="arc")
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        manager.prepare_load("r2", ["b1"])
        before = arc(manager)
        assert store(manager, "r2", "b4 b5 b6") is None
        assert arc(manager) == before

    def test_a_write_that_failed_leaves_no_ghost(self) -> None:
        manager = manager_of(2, policy="arc")
        manager.on_new_request("r1")
        manager.complete_store("r1", pending_store(manager, "r1", "b1"), success=False)
        assert arc(manager) == {}


class TestGhosts:
    def test_a_hit_in_b1_lets_t1_grow_and_the_block_enters_t1(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1 b2")
        fill(manager, "r2", "b3")
        assert arc(manager) == {"t1": "b1 b3", "b1": "b2"}
        fill(manager, "r3", "b2")
        assert arc(manager) == {"t1": "b3 b2", "b1": "b1", "target": 1.0}

    def test_a_hit_in_b2_lets_it_shrink_and_never_below_0(self) -> None:
        manager = manager_of(1, policy="arc")
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        manager.load("r2", ["b1"])
        manager.on_request_finished("r2")
        fill(manager, "r3", "b2")
        assert arc(manager) == {"t1": "b2", "b2": "b1"}
        fill(manager, "r4", "b1")
        assert arc(manager) == {"t1": "b1", "b1": "b2"}

    def test_the_first_time_a_request_offers_an_absent_block_counts_and_no_other(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1 b2")
        fill(manager, "r2", "b3")
        manager.on_new_request("r3")
        for _ in range(3):
            assert store(manager, "r3", "b2 b8 b9") is None
        assert arc(manager) == {"t1": "b1 b3", "b1": "b2", "target": 1.0}

    def test_even_if_the_block_was_no_ghost_then(self) -> None:
        manager = manager_of(2, policy="arc")
        manager.on_new_request("r1")
        assert store(manager, "r1", "b1 b8 b9") is None
        fill(manager, "r2", "b1")
        fill(manager, "r3", "b2 b3")
        assert arc(manager) == {"t1": "b3 b2", "b1": "b1"}
        store(manager, "r1", "b1")
        assert "target" not in arc(manager)

    def test_a_denied_promotion_meets_it_too(self) -> None:
        manager = manager_of(1, NVME, policy="arc")
        fill(manager, "r1", "b1")
        fill(manager, "r2", "b2")
        manager.on_new_request("r3")
        manager.prepare_load("r3", ["b2"])
        assert manager.lookup_prefix("r3", ["b1"]) == PrefixAnswer(0, False)
        assert arc(manager) == {"t1": "b2", "b1": "b1", "target": 1.0}

    def test_the_last_blocks_of_a_call_meet_theirs_first(self) -> None:
        manager = manager_of(2, policy="arc")
        fill(manager, "r1", "b1 b2")
        fill(manager, "r2", "b3 b4")
        assert arc(manager) == {"t1": "b4 b3", "b1": "b2 b1"}
        manager.on_new_request("r3")
        assert store(manager, "r3", "b2 b1 b9") is None
        assert arc(manager) == {"t1": "b4 b3", "b1": "b1 b2", "target": 2.0}


class TestTouch:
    @pytest.fixture
    def manager(self):  # type: ignore[no-untyped-def]
        """T1 holds b1 (ready) and b4 (pending), T2 b2 and b3."""
        manager = manager_of(4, policy="arc")
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        manager.load("r2", ["b2", "b3"])
        manager.on_request_finished("r2")
        manager.on_new_request("r3")
        pending_store(manager, "r3", "b4")
        assert arc(manager) == {"t1": "b1 b4", "t2": "b3 b2"}
        return manager

    @pytest.mark.parametrize(
        ("blocks", "after"),
        [
            ("b1", {"t1": "b4", "t2": "b3 b2 b1"}),
            ("b3", {"t1": "b1 b4", "t2": "b2 b3"}),
            ("b4", {"t1": "b1 b4", "t2": "b3 b2"}),  # pending: the recent end of T1
            ("b1 b3", {"t1": "b4", "t2": "b2 b3 b1"}),
            ("b9", {"t1": "b1 b4", "t2": "b3 b2"}),
        ],
    )
    def test_ready_blocks_become_frequent_the_first_most_recent(self, manager, blocks: str, after: object) -> None:  # type: ignore[no-untyped-def]
        manager.touch("r3", blocks.split())
        assert arc(manager) == after

    def test_a_pending_block_moves_to_the_recent_end_of_t1(self) -> None:
        manager = manager_of(4, policy="arc")
        manager.on_new_request("r1")
        pending_store(manager, "r1", "b1")
        store(manager, "r1", "b2")
        manager.touch("r1", ["b1"])
        assert arc(manager) == {"t1": "b2 b1"}

    def test_a_ghost_is_hit_every_time(self) -> None:
        manager = manager_of(3, policy="arc")
        fill(manager, "r1", "b1 b2 b3")
        fill(manager, "r2", "b4")
        manager.on_new_request("r3")
        manager.touch("r3", ["b3", "b3"])
        assert arc(manager) == {"t1": "b2 b1 b4", "b1": "b3", "target": 2.0}


def test_a_reset_clears_lists_ghosts_and_target() -> None:
    manager = manager_of(1, policy="arc")
    fill(manager, "r1", "b1")
    fill(manager, "r2", "b2")
    fill(manager, "r3", "b1")
    assert arc(manager) == {"t1": "b1", "b1": "b2", "target": 1.0}
    manager.reset_cache()
    assert arc(manager) == {}
