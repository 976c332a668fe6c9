"""LRU as vLLM 0.33 plays it: by request first, and the head of a prompt outlives its tail."""

from __future__ import annotations

import pytest

from tests.tiering.managers import NVME, fill, manager_of, order, pending_store, positions, store


class TestBeforeTheFinish:
    def test_later_blocks_of_a_request_go_first(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        positions(manager, "r1", "b1 b2 b3")
        store(manager, "r1", "b2 b3")
        store(manager, "r1", "b1")
        assert order(manager) == "b3 b2 b1"

    def test_a_block_inserted_late_ranks_with_its_requests_first_access(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        positions(manager, "r1", "b1 b2")
        store(manager, "r1", "b1")
        fill(manager, "r2", "b3")
        store(manager, "r1", "b2")
        assert order(manager) == "b2 b1 b3"

    def test_without_a_position_it_ranks_by_itself(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        store(manager, "r1", "b1")
        fill(manager, "r2", "b3")
        store(manager, "r1", "b2")
        assert order(manager) == "b1 b3 b2"

    def test_the_first_access_to_a_ready_block_moves_it_to_the_requests_rank(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        positions(manager, "r2", "b2 b3")
        manager.load("r2", ["b2", "b3"])
        assert order(manager) == "b1 b3 b2"

    def test_unless_it_ranks_later_already(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1")
        manager.on_new_request("r2")
        positions(manager, "r2", "b1 b2")
        manager.load("r2", ["b1"])
        fill(manager, "r3", "b2")
        manager.load("r2", ["b2"])
        assert order(manager) == "b1 b2"

    def test_later_accesses_move_nothing(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.load("r2", ["b2"])
        positions(manager, "r2", "b2 b1")
        manager.load("r2", ["b2"])
        assert order(manager) == "b2 b1"
        manager.load("r2", ["b1"])
        assert order(manager) == "b2 b1"

    def test_at_the_same_position_the_lower_kv_group_goes_first(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b1", "b1@1", "b2", "b2@1"], [16, 16, 32, 32])
        store(manager, "r1", "b1 b1@1 b2 b2@1")
        assert order(manager) == "b2 b2@1 b1 b1@1"

    def test_a_later_position_counts_for_what_comes_after_it(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b1", "b2", "b3"], [16, 32, 48])
        store(manager, "r1", "b2 b3")
        manager.set_positions("r1", ["b1", "b3"], [40, None])
        store(manager, "r1", "b1")
        assert order(manager) == "b3 b1 b2"

    def test_a_pending_block_that_is_offered_is_not_accessed(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        keys = pending_store(manager, "r1", "b1")
        fill(manager, "r2", "b2")
        manager.on_new_request("r3")
        store(manager, "r3", "b1")
        manager.complete_store("r1", keys)
        manager.on_request_finished("r3")
        assert order(manager) == "b1 b2"


class TestTouch:
    def test_it_makes_blocks_recent_the_first_most_of_all(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2 b3 b4")
        manager.on_new_request("r2")
        manager.touch("r2", ["b4", "b9", "b3"])
        assert order(manager) == "b2 b1 b3 b4"

    def test_pending_ones_too(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        pending_store(manager, "r1", "b1")
        fill(manager, "r2", "b2")
        manager.touch("r1", ["b1"])
        assert order(manager) == "b2 b1"

    def test_it_is_no_access(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        manager.touch("r2", ["b1"])
        fill(manager, "r3", "b3")
        manager.on_request_finished("r2")
        assert order(manager) == "b2 b1 b3"


class TestFinish:
    def test_the_head_of_the_prompt_ends_most_recent_and_nothing_of_others_before_it(self) -> None:
        manager = manager_of(6)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        positions(manager, "r2", "b1 b2 b3 b4")
        manager.load("r2", ["b1", "b2"])
        store(manager, "r2", "b3 b4")
        fill(manager, "r3", "b5")
        manager.on_request_finished("r2")
        assert order(manager) == "b5 b4 b3 b2 b1"

    def test_without_positions_what_was_accessed_first_does(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        store(manager, "r1", "b2 b1")
        store(manager, "r1", "b3")
        manager.on_request_finished("r1")
        assert order(manager) == "b3 b1 b2"

    def test_a_position_told_later_replaces_that_of_the_prompt(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        positions(manager, "r1", "b1 b2 b3")
        store(manager, "r1", "b1 b2 b3")
        manager.set_positions("r1", ["b1"], [64])
        manager.on_request_finished("r1")
        assert order(manager) == "b1 b3 b2"

    def test_one_told_before_the_prompts_stays(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b3"], [64])
        positions(manager, "r1", "b1 b2")
        store(manager, "r1", "b1 b3 b2")
        assert order(manager) == "b3 b2 b1"
        manager.on_request_finished("r1")
        assert order(manager) == "b3 b2 b1"

    def test_one_position_that_is_missing_sets_all_of_its_group_back_to_that(self) -> None:
        manager = manager_of(6)
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b1", "b2", "b1@1", "b2@1"], [16, 32, 16, None])
        store(manager, "r1", "b2 b1 b2@1 b1@1")
        manager.on_request_finished("r1")
        assert order(manager) == "b1@1 b2@1 b2 b1"

    def test_at_one_position_the_higher_kv_group_comes_first(self) -> None:
        manager = manager_of(4)
        manager.on_new_request("r1")
        manager.set_positions("r1", ["b1", "b1@1", "b2", "b2@1"], [16, 16, 32, 32])
        store(manager, "r1", "b1 b2 b1@1 b2@1")
        manager.on_request_finished("r1")
        assert order(manager) == "b2@1 b2 b1@1 b1"

    def test_a_block_accessed_while_it_was_absent_counts_once_it_is_there(self) -> None:
        manager = manager_of(2)
        fill(manager, "r1", "b1 b2")
        manager.on_new_request("r2")
        assert store(manager, "r2", "b3 b4 b5") is None
        fill(manager, "r3", "b3 b6")
        manager.on_request_finished("r2")
        assert order(manager) == "b6 b3"

    def test_even_if_a_request_that_ranks_earlier_put_it_there(self) -> None:
        manager = manager_of(3)
        manager.on_new_request("r1")
        positions(manager, "r1", "b1 b2")
        keys = pending_store(manager, "r1", "b1")
        fill(manager, "r2", "b4")
        manager.on_new_request("r3")
        positions(manager, "r3", "b2 b3 b5")
        assert store(manager, "r3", "b2 b3 b5") is None
        store(manager, "r1", "b2")
        manager.complete_store("r1", keys)
        assert order(manager) == "b2 b1 b4"
        manager.on_request_finished("r3")
        assert order(manager) == "b1 b4 b2"

    def test_a_promotion_that_is_still_pending_moves_too(self) -> None:
        manager = manager_of(4, NVME, seeds={"nvme": "b1"})
        manager.on_new_request("r1")
        manager.lookup("r1", "b1")
        fill(manager, "r2", "b2")
        manager.on_request_finished("r1")
        assert order(manager) == "b2 b1"


class TestEviction:
    def test_the_least_recent_block_that_is_ready_and_unread_goes(self) -> None:
        manager = manager_of(4)
        fill(manager, "r1", "b1 b2 b3")
        manager.on_new_request("r2")
        pending_store(manager, "r2", "b4")
        manager.prepare_load("r2", ["b3"])
        assert store(manager, "r2", "b5 b6") == ["b2", "b1"]

    @pytest.mark.parametrize("known", [True, False])
    def test_a_live_request_may_evict_its_own_blocks(self, known: bool) -> None:
        manager = manager_of(2)
        manager.on_new_request("r1")
        if known:
            positions(manager, "r1", "b1 b2 b3")
        store(manager, "r1", "b1 b2")
        assert store(manager, "r1", "b3") == (["b2"] if known else ["b1"])
