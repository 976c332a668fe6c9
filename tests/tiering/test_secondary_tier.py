"""The secondary tier of ours: a queue with latency in steps over a store, its capacity, its retries, its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.tiering import recency
from kvtier_cli.tiering.filters import ALL
from kvtier_cli.tiering.jobs import RequestContext, TransferJob
from kvtier_cli.tiering.model import JobKind, LookupResult
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import TierSpec
from tests.conformance.backends import BACKENDS
from tests.tiering.managers import NVME
from tests.tiering.naive_manager import NaiveTier
from tests.tiering.strategies import BLOCKS

HIT, RETRY, MISS = LookupResult.HIT, LookupResult.RETRY, LookupResult.MISS
R1, R2 = RequestContext("r1", ALL), RequestContext("r2", ALL)


def tier_of(blocks: str = "", **fields: Any) -> SecondaryTier:
    tier = SecondaryTier(replace(NVME, **fields))
    tier.seed(blocks.split())
    return tier


def job(kind: JobKind, blocks: str, number: int = 0) -> TransferJob:
    return TransferJob(number, kind, "nvme", "r1", blocks.split())


def stored(tier: SecondaryTier, blocks: str) -> list[tuple[int, list[str]]]:
    """Store blocks and let it end: the jobs that ended, each with the blocks that failed."""
    tier.submit_store(job(JobKind.CASCADE, blocks))
    tier.drain_jobs()
    return ended(tier)


def loaded(tier: SecondaryTier, blocks: str) -> list[tuple[int, list[str]]]:
    tier.submit_load(job(JobKind.PROMOTION, blocks))
    tier.drain_jobs()
    return ended(tier)


def ended(tier: SecondaryTier) -> list[tuple[int, list[str]]]:
    return [
        (result.job.job_id, [str(key) for key in result.job.keys if key in result.failed])
        for result in tier.get_finished_jobs()
    ]


def held(tier: SecondaryTier) -> str:
    return " ".join(map(str, tier.blocks()))


class TestLatency:
    @pytest.mark.parametrize("latency", [0, 1, 3])
    def test_a_job_is_due_when_so_many_steps_have_ended_and_takes_effect_with_the_poll(self, latency: int) -> None:
        tier = tier_of(store_latency=latency)
        tier.submit_store(job(JobKind.CASCADE, "b1"))
        for _ in range(latency):
            assert (ended(tier), held(tier)) == ([], "")
            tier.on_schedule_end()
        assert held(tier) == ""
        assert (ended(tier), held(tier), ended(tier)) == ([(0, [])], "b1", [])

    def test_loads_and_stores_each_have_their_own(self) -> None:
        tier = tier_of("b1", store_latency=2, load_latency=1)
        tier.submit_store(job(JobKind.CASCADE, "b2", 0))
        tier.submit_load(job(JobKind.PROMOTION, "b1", 1))
        tier.on_schedule_end()
        assert ended(tier) == [(1, [])]
        tier.on_schedule_end()
        assert ended(tier) == [(0, [])]

    def test_what_is_due_together_ends_in_the_order_of_submission(self) -> None:
        tier = tier_of(store_latency=2, load_latency=1)
        tier.submit_store(job(JobKind.CASCADE, "b1", 0))
        tier.on_schedule_end()
        tier.submit_load(job(JobKind.PROMOTION, "b1", 1))
        tier.on_schedule_end()
        assert ended(tier) == [(0, []), (1, [])]

    def test_draining_makes_every_running_job_due_at_once(self) -> None:
        tier = tier_of("b1", store_latency=9, load_latency=5)
        tier.submit_store(job(JobKind.CASCADE, "b2", 0))
        tier.submit_load(job(JobKind.PROMOTION, "b1 b2", 1))
        tier.drain_jobs()
        assert (ended(tier), held(tier)) == ([(0, []), (1, [])], "b1 b2")


class TestCapacity:
    def test_the_least_recent_blocks_make_way(self) -> None:
        tier = tier_of("b1 b2 b3", capacity=3)
        stored(tier, "b4 b5")
        assert held(tier) == "b3 b4 b5"

    def test_a_block_that_is_stored_again_or_loaded_becomes_most_recent(self) -> None:
        tier = tier_of("b1 b2 b3 b4", capacity=4)
        stored(tier, "b2")
        loaded(tier, "b1 b3")
        assert held(tier) == "b4 b2 b1 b3"

    def test_of_a_job_with_more_blocks_than_fit_the_last_stay(self) -> None:
        tier = tier_of("b9", capacity=2)
        assert stored(tier, "b1 b2 b3") == [(0, [])]
        assert held(tier) == "b2 b3"

    def test_a_block_of_the_job_itself_may_make_way_for_a_later_one(self) -> None:
        tier = tier_of("b1 b2", capacity=2, request_level=True)
        stored(tier, "b3 b1 b3")
        assert held(tier) == "b1 b3"

    def test_a_capacity_of_0_keeps_nothing_and_fails_nothing(self) -> None:
        tier = tier_of("b1", capacity=0)
        assert (stored(tier, "b2"), held(tier)) == ([(0, [])], "")

    def test_a_lookup_or_a_peek_changes_no_recency_and_a_touch_does_the_first_most(self) -> None:
        tier = tier_of("b1 b2 b3 b4")
        tier.lookup("b1", R1)
        assert (tier.holds("b1"), tier.holds("b9")) == (True, False)
        assert held(tier) == "b1 b2 b3 b4"
        tier.touch(["b3", "b9", "b1", "b3"], R1)
        assert held(tier) == "b2 b4 b1 b3"


class TestFaults:
    def test_blocks_marked_to_fail_are_not_stored_and_fail_their_job(self) -> None:
        tier = tier_of(fail_stores=frozenset({"b2"}))
        assert stored(tier, "b1 b2 b3") == [(0, ["b2"])]
        assert held(tier) == "b1 b3"

    def test_a_seed_does_not_care(self) -> None:
        assert held(tier_of("b1 b2", fail_stores=frozenset({"b2"}))) == "b1 b2"

    def test_blocks_marked_to_fail_or_gone_fail_their_load_and_stay_where_they_are(self) -> None:
        tier = tier_of("b1 b2 b3", fail_loads=frozenset({"b2"}))
        assert loaded(tier, "b2 b9 b1") == [(0, ["b2", "b9"])]
        assert held(tier) == "b2 b3 b1"

    def test_an_offline_tier_misses_everything_and_fails_every_job(self) -> None:
        tier = tier_of("b1", offline=True, lookup_retry=1)
        assert [tier.lookup("b1", R1), tier.lookup("b1", R1)] == [MISS, MISS]
        assert (stored(tier, "b2"), loaded(tier, "b1")) == ([(0, ["b2"])], [(0, ["b1"])])
        assert held(tier) == "b1"

    @pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0])
    def test_a_fail_rate_fails_that_share_of_the_blocks_of_stores_and_loads(self, rate: float) -> None:
        blocks = " ".join(f"b{number}" for number in range(4000))
        stores = tier_of(fail_rate=rate, seed=7)
        loads = tier_of(blocks, fail_rate=rate, seed=7)
        [(_, lost)], [(_, unread)] = stored(stores, blocks), loaded(loads, blocks)
        assert len(lost) / 4000 == pytest.approx(rate, abs=0.03)
        assert len(unread) / 4000 == pytest.approx(rate, abs=0.03)
        assert len(stores.blocks()) == 4000 - len(lost)

    def test_the_same_seed_fails_the_same_blocks_and_another_seed_others(self) -> None:
        blocks = " ".join(f"b{number}" for number in range(50))
        runs = [stored(tier_of(fail_rate=0.5, seed=seed), blocks) for seed in (1, 1, 2)]
        assert runs[0] == runs[1] != runs[2]

    def test_a_lookup_or_a_seed_uses_up_no_luck(self) -> None:
        plain, asked = tier_of(fail_rate=0.5), tier_of(fail_rate=0.5)
        asked.seed(["b8", "b9"])
        asked.lookup("b8", R1)
        blocks = " ".join(f"b{number}" for number in range(20, 60))
        assert stored(plain, blocks) == stored(asked, blocks)


class TestRetry:
    def test_the_first_lookups_of_a_block_say_retry_whether_it_is_held_or_not(self) -> None:
        tier = tier_of("b1", lookup_retry=2)
        assert [tier.lookup("b1", R1) for _ in range(4)] == [RETRY, RETRY, HIT, HIT]
        assert [tier.lookup("b2", R1) for _ in range(3)] == [RETRY, RETRY, MISS]

    def test_those_of_all_requests_count(self) -> None:
        tier = tier_of("b1", lookup_retry=2)
        assert [tier.lookup("b1", request) for request in (R1, R2, R1)] == [RETRY, RETRY, HIT]

    def test_they_are_forgotten_when_the_last_request_that_asked_is_over(self) -> None:
        tier = tier_of("b1", lookup_retry=1)
        tier.lookup("b1", R1)
        assert tier.lookup("b1", R2) is HIT  # it asked too, although the retries were used up
        tier.on_request_finished(R1)
        assert tier.lookup("b1", R2) is HIT
        tier.on_request_finished(R2)
        assert tier.lookup("b1", R2) is RETRY


class TestRun:
    def test_the_leading_blocks_that_would_hit(self) -> None:
        assert tier_of("b1 b2 b4").lookup_run(["b1", "b2", "b3", "b4"], R1) == ["b1", "b2"]

    @pytest.mark.parametrize("fields", [{"offline": True}, {"lookup_retry": 1}])
    def test_a_tier_that_retries_or_is_offline_is_asked_block_by_block(self, fields: dict[str, Any]) -> None:
        assert tier_of("b1", **fields).lookup_run(["b1"], R1) is None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("slack", [4096, -4096])
@given(
    capacity=st.sampled_from((None, 0, 1, 2, 3, 4, 6)),
    fail_stores=st.frozensets(st.sampled_from(BLOCKS), max_size=2),
    request_level=st.booleans(),
    calls=st.lists(
        st.tuples(st.sampled_from(("seed", "store", "load", "touch")), st.lists(st.sampled_from(BLOCKS), max_size=10)),
        min_size=1,
        max_size=12,
    ),
)
def test_any_sequence_of_calls_leaves_what_a_plain_list_would_hold(
    backend: str,
    slack: int,
    tmp_path_factory: pytest.TempPathFactory,
    capacity: int | None,
    fail_stores: frozenset[str],
    request_level: bool,
    calls: Sequence[tuple[str, list[str]]],
) -> None:
    spec = TierSpec("t0", capacity=capacity, fail_stores=fail_stores, request_level=request_level)
    store = BACKENDS[backend](spec, tmp_path_factory.mktemp("tier"))
    tier, plain = SecondaryTier(spec, store), NaiveTier(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recency, "_SLACK", slack)
        for kind, blocks in calls:
            if kind == "seed":
                tier.seed(blocks)
                kept = blocks
            elif kind == "store":
                if not request_level:  # only what was parked may stand in a job twice
                    blocks = list(dict.fromkeys(blocks))
                stored(tier, " ".join(blocks))
                kept = [block for block in blocks if block not in fail_stores]
            else:
                if kind == "load":
                    blocks = list(dict.fromkeys(blocks))
                    loaded(tier, " ".join(blocks))
                else:
                    tier.touch(blocks, R1)
                    blocks = blocks[::-1]
                kept = [block for block in blocks if block in plain.blocks]
            for block in kept:
                plain.put(block)
            assert list(tier.blocks()) == plain.blocks
            assert set(store.index) == set(plain.blocks)
            assert list(store.oldest(2)) == plain.blocks[:2]
    store.close()
