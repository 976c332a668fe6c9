"""Every block of every request of a replay ends in exactly one outcome, with its reason, and the sums add up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.figures import figures
from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import (
    AbsentReason,
    BlockHistory,
    Outcome,
    OutcomeSums,
    Stop,
    find_stop,
    keeps_everything,
)
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.jobs import JobResult
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.source import TraceSource
from tests.tiering.managers import NVME, PEER, S3, tier_of
from tests.tiering.strategies import load_tiers, tier_lists

TOKENS = 16


class Replay:
    """A server, what was asked of it, and why the last request's first block that was not served was not."""

    def __init__(self, capacity: int, *tiers: TierSpec, block: BlockSpec | None = None, **spec: Any) -> None:
        self.topology = Topology(block or BlockSpec(), PrimarySpec(capacity), tiers=tiers, replay=ReplaySpec(**spec))
        self.history = BlockHistory()
        self.manager = TieringManager(self.topology, observer=self.history)
        self.sums = OutcomeSums(self.manager, self.history)
        self.loop = ReplayLoop(self.manager, self.topology.replay, TOKENS, self)
        self.stop: Stop | None = None

    def last_pass(self, req_id: int, keys: Sequence[Any], loaded: int, gave_up: bool, first_new: int) -> None:
        self.stop = find_stop(self.manager, self.manager.requests[req_id], keys, loaded, gave_up, self.history)
        self.sums.last_pass(req_id, keys, loaded, gave_up, first_new)

    def ask(self, *ids: int, load_filter: object = None) -> Stop | None:
        self.loop.replay(self.loop.table.keys(ids), parse_tier_filter(load_filter).filter)
        return self.stop

    def seed(self, tier: str, *ids: int) -> None:
        tier_of(self.manager, tier).seed(self.loop.table.keys(ids))

    def outcomes(self) -> dict[str, int]:
        """The outcomes that there were."""
        return {name: count for name, count in self.figures()["outcomes"].items() if count}

    def figures(self) -> dict[str, Any]:
        return figures(self.loop, self.sums, self.topology)


# One outcome at a time


def test_what_nobody_ever_stored_is_absent_and_cold_and_what_is_behind_it_unreached() -> None:
    replay = Replay(9, NVME)
    assert replay.ask(1, 2, 3) == Stop(0, Outcome.ABSENT, reason=AbsentReason.COLD)
    assert replay.outcomes() == {"absent": 1, "unreached": 2}
    assert replay.figures()["absent_by_reason"] == {"cold": 1, "evicted": 0, "refused": 0, "offline": 0}


def test_loaded_blocks_are_primary_or_promoted_by_whether_this_request_brought_them() -> None:
    replay = Replay(2, NVME)
    for prompt in ([1, 2], [3], [1], [1, 2]):  # 3 evicts 2, which nvme keeps
        replay.ask(*prompt)
    assert replay.stop is None
    assert replay.outcomes() == {"primary": 2, "promoted": 1, "absent": 2, "unreached": 1}
    assert replay.figures()["served_by_tier"] == {"cpu": 2, "nvme": 1}
    assert replay.figures()["requests_served_whole"] == 2


def test_a_block_that_only_a_skipped_tier_holds_is_filtered_and_those_behind_it_lost_too() -> None:
    replay = Replay(3, NVME)
    for prompt in ([1, 2, 3], [4, 5, 6]):
        replay.ask(*prompt)
    assert replay.ask(1, 2, 9, load_filter=[]) == Stop(0, Outcome.FILTERED, 0)
    found = replay.figures()
    assert found["outcomes"]["filtered"] == 1
    assert found["filtered_by_tier"] == {"nvme": 1}
    assert found["lost_to_filter"] == 2
    assert found["unreached_held_by_tier"] == {"nvme": 1}


def test_only_what_a_skipped_tier_holds_in_a_row_is_lost_to_the_filter() -> None:
    replay = Replay(9, NVME)
    first, _, third = replay.loop.table.keys([1, 2, 3])
    tier_of(replay.manager, "nvme").seed([first, third])
    replay.ask(1, 2, 3, load_filter=[])
    assert replay.figures()["lost_to_filter"] == 1
    assert replay.figures()["unreached_held_by_tier"] == {"nvme": 1}


def test_a_block_that_the_filter_skipped_but_nobody_holds_is_not_filtered() -> None:
    stop = Replay(3, NVME).ask(1, load_filter=[])
    assert stop == Stop(0, Outcome.ABSENT, reason=AbsentReason.COLD)


def test_the_first_skipped_tier_that_holds_it_filtered_the_block() -> None:
    replay = Replay(3, NVME, S3, PEER)
    replay.seed("s3", 1)
    replay.seed("peer", 1)
    assert replay.ask(1, load_filter=[]) == Stop(0, Outcome.FILTERED, 1)


def test_a_block_behind_the_hole_is_counted_where_it_lies_first_skipped_or_not() -> None:
    replay = Replay(3, NVME, S3)
    _, second, third = replay.loop.table.keys([1, 2, 3])
    tier_of(replay.manager, "s3").seed([second, third])
    tier_of(replay.manager, "nvme").seed([third])
    replay.ask(1, 2, 3, 4, load_filter=[{"locality": "local"}])
    assert replay.outcomes() == {"absent": 1, "unreached": 3}
    assert replay.figures()["unreached_held_by_tier"] == {"nvme": 1, "s3": 1}


def test_a_block_whose_last_promotion_failed_has_failed_even_where_the_request_gave_up() -> None:
    replay = Replay(2, TierSpec("t", fail_loads=frozenset({1})))
    replay.seed("t", 0, 7)  # the blocks 0 and 1 of the table
    assert replay.ask(0, 7) == Stop(1, Outcome.FAILED, 0)
    assert replay.outcomes() == {"promoted": 1, "failed": 1}
    assert replay.figures()["failed_by_tier"] == {"t": 16}  # each of 17 looks starts it again, and 16 end
    assert replay.loop.gave_up == 1


def test_a_hit_that_finds_the_cpu_tier_full_of_pins_is_denied() -> None:
    replay = Replay(2, TierSpec("slow", store_latency=99), NVME)
    replay.seed("nvme", 7)
    replay.ask(1, 2)
    assert replay.ask(7) == Stop(0, Outcome.DENIED, 1)
    assert replay.figures()["denied_by_tier"] == {"slow": 0, "nvme": 1}
    assert replay.outcomes() == {"absent": 1, "unreached": 1, "denied": 1}


def test_while_promotions_are_held_after_a_reset_a_miss_is_held() -> None:
    replay = Replay(2, NVME)
    replay.seed("nvme", 1)
    replay.manager.reset_cache()
    assert replay.ask(1) == Stop(0, Outcome.HELD)
    replay.manager.on_reset_flushed()
    assert replay.ask(1) is None
    assert replay.outcomes() == {"primary": 1, "held": 1}


def test_without_a_secondary_tier_nothing_is_held() -> None:
    replay = Replay(2)
    replay.manager.reset_cache()
    assert replay.ask(1) == Stop(0, Outcome.ABSENT, reason=AbsentReason.COLD)


def test_a_request_that_waited_too_long_gave_up() -> None:
    replay = Replay(2, TierSpec("t", lookup_retry=99))
    assert replay.ask(1, 2) == Stop(0, Outcome.GAVE_UP)
    assert replay.outcomes() == {"gave_up": 1, "unreached": 1}


def test_a_block_of_a_tier_that_is_off_line_is_absent_for_that() -> None:
    replay = Replay(1, NVME)
    replay.ask(1)
    replay.ask(2)
    tier_of(replay.manager, "nvme").offline = True
    assert replay.ask(1) == Stop(0, Outcome.ABSENT, 0, AbsentReason.OFFLINE)
    assert replay.figures()["absent_by_reason"]["offline"] == 1


def test_a_filter_is_not_to_blame_for_a_tier_that_would_not_have_answered() -> None:
    replay = Replay(1, NVME, S3)
    replay.ask(1)
    replay.ask(2)
    tier_of(replay.manager, "nvme").offline = True
    remote = [{"medium": "storage", "locality": "remote"}]
    assert replay.ask(1, load_filter=[{"medium": "cpu"}]) == Stop(0, Outcome.FILTERED, 1)
    replay.ask(2)
    tier_of(replay.manager, "s3").offline = True
    assert replay.ask(1, load_filter=remote) == Stop(0, Outcome.ABSENT, 0, AbsentReason.OFFLINE)
    assert replay.sums.lost_to_filter == 1


# Why an absent block is nowhere


def test_an_evicted_block_knows_whose_store_took_its_place_and_which_tier_it_left_last() -> None:
    alone = Replay(1)
    alone.ask(1)
    alone.ask(2)
    assert alone.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.EVICTED, 1, "cpu")
    beside = Replay(1, TierSpec("t", capacity=1))
    for block in (1, 2, 3):  # the cascade of the second leaves t when that of the third arrives, and the first before
        beside.ask(block)
    assert beside.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.EVICTED, 1, "t")


def test_a_block_whose_store_was_refused_knows_by_whom() -> None:
    replay = Replay(1)
    replay.ask(1, 2)
    assert replay.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.REFUSED, 0)
    assert replay.figures()["absent_by_reason"]["refused"] == 1


def test_the_latest_loss_counts_an_eviction_after_a_refusal() -> None:
    stored = Replay(1)
    for prompt in ([1, 2], [1], [5]):  # refused, stored, evicted
        stored.ask(*prompt)
    assert stored.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.EVICTED, 2, "cpu")

    promoted = Replay(1, TierSpec("t", capacity=1))
    promoted.seed("t", 1)
    promoted.ask(1, 2, load_filter=[])  # filtered, and its store refused
    assert promoted.ask(1) is None
    promoted.ask(5)
    promoted.ask(6)
    assert promoted.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.EVICTED, 2, "t")


def test_a_store_makes_up_for_a_refusal() -> None:
    history = BlockHistory()
    history.on_refused("r1", ["b1", "b2"])
    history.on_stored("r2", ["b1"], [])
    assert [history.last_loss(block)[0] for block in ("b1", "b2")] == [AbsentReason.COLD, AbsentReason.REFUSED]


def test_the_latest_loss_counts_a_refusal_after_an_eviction() -> None:
    replay = Replay(1)
    for prompt in ([1], [5], [1, 2]):
        replay.ask(*prompt)
    assert replay.ask(1) == Stop(0, Outcome.ABSENT, None, AbsentReason.REFUSED, 2)


# Promoted for nothing


def test_a_promoted_block_that_leaves_unread_is_counted_once() -> None:
    replay = Replay(1, NVME, max_wait_steps=1)
    replay.seed("nvme", 1, 2)
    replay.ask(1, 2)  # 2 takes the place of 1, and the request gives up
    assert replay.figures()["evicted_unread"] == 1
    replay.ask(5)
    assert replay.figures()["evicted_unread"] == 2


def test_a_promoted_block_that_was_read_before_it_left_is_not_unread() -> None:
    replay = Replay(1, NVME)
    for block in (1, 2, 1, 3):
        replay.ask(block)
    assert replay.figures()["evicted_unread"] == 0


def test_a_block_that_was_computed_after_its_promotion_failed_is_not_unread_when_it_leaves() -> None:
    class Dies(Observer):
        """Takes the tier off line when the first load from it has failed."""

        def on_job_finished(self, result: JobResult) -> None:
            tier.offline = tier.offline or bool(result.failed)

    replay = Replay(1, TierSpec("t", fail_loads=frozenset({0})))
    tier = tier_of(replay.manager, "t")
    replay.manager.observe(ObserverGroup([replay.history, Dies()]))
    for block in (1, 2, 1, 3):
        replay.ask(block)
    found = replay.figures()
    assert (found["promotions_started"], found["promotions_failed"], found["blocks_stored"]) == (1, 1, 4)
    assert found["evicted_unread"] == 0


# Other figures


def test_bytes_are_known_where_the_size_of_a_block_is() -> None:
    replay = Replay(1, NVME, block=BlockSpec(TOKENS, 100))
    for block in (1, 2, 1):
        replay.ask(block)
    assert replay.figures()["bytes"] == {"nvme": {"read": 1600, "written": 3200}}
    assert Replay(1, NVME).figures()["bytes"] is None


def test_rates_are_shares_of_what_their_formula_says_and_none_of_nothing() -> None:
    replay = Replay(1, NVME)
    assert {rate["value"] for rate in replay.figures()["rates"].values()} == {None}
    for block in (1, 2, 1):
        replay.ask(block)
    rates = replay.figures()["rates"]
    assert rates["served_of_all"] == {"value": 1 / 3, "formula": "blocks_loaded / blocks"}
    assert rates["cpu_of_all"] == {"value": 0, "formula": "outcomes.primary / blocks"}
    assert rates["cpu_of_asked"] == {"value": 1 / 4, "formula": "primary_hits / lookups"}
    assert rates["nvme_of_asked"] == {"value": 1 / 3, "formula": "hits_by_tier.nvme / asked_by_tier.nvme"}
    assert rates["nvme_of_all"] == {"value": 1 / 3, "formula": "served_by_tier.nvme / blocks"}


@pytest.mark.parametrize(
    ("tiers", "all_kept"),
    [
        ((), False),
        ((NVME,), True),
        ((TierSpec("t", capacity=10**9),), False),
        ((TierSpec("t", capacity=3), PEER), True),
        ((TierSpec("t", fail_stores=frozenset({"b"})),), False),
        ((TierSpec("t", fail_rate=0.1),), False),
        ((TierSpec("t", offline=True),), False),
    ],
)
def test_a_tier_without_limit_or_fault_keeps_everything(tiers: tuple[TierSpec, ...], all_kept: bool) -> None:
    assert keeps_everything(Topology(tiers=tiers)) is all_kept


# A real trace

CONVERSATION = [
    (None, {"primary": 60_923, "promoted": 44_787, "absent": 11_913, "unreached": 170_877}, 0),
    (
        [{"medium": "storage", "locality": "local"}],
        {"primary": 60_923, "promoted": 39_481, "filtered": 197, "absent": 11_719, "unreached": 176_180},
        197,
    ),
]


@pytest.mark.parametrize(("load_filter", "expected", "filtered"), CONVERSATION)
def test_the_outcomes_of_the_public_conversation_trace(
    recordings: Path, load_filter: object, expected: dict[str, int], filtered: int
) -> None:
    file = recordings.parent / "data" / "mooncake" / "conversation_trace.jsonl"
    if not file.is_file():
        pytest.skip(f"the public trace {file.name} is not beside the recordings")
    given_filter = None if load_filter is None else parse_tier_filter(load_filter).filter
    with TraceSource(file) as source:
        found = TraceRun([source], BUILT_IN, given_filter).run()
    assert {name: count for name, count in found["outcomes"].items() if count} == expected
    assert found["filtered_by_tier"] == {"nvme": 0, "s3": filtered}


# Whatever is asked of whichever tiers

PROMPTS = st.lists(
    st.tuples(
        st.builds(lambda first, count: list(range(first, first + count)), st.integers(0, 7), st.integers(0, 6)),
        load_tiers(),
    ),
    max_size=14,
)


class Case(NamedTuple):
    """Tiers and requests."""

    topology: Topology
    requests: list[tuple[list[int], dict[str, Any]]]

    def replay(self, history: BlockHistory, watcher: type[Any] = OutcomeSums) -> tuple[dict[str, Any], Any]:
        manager = TieringManager(self.topology, observer=history)
        sums = watcher(manager, history)
        loop = ReplayLoop(manager, self.topology.replay, TOKENS, sums)
        requests = [Request(i, i + 1, TOKENS * len(ids), list(ids)) for i, (ids, _) in enumerate(self.requests)]
        filters = [parse_tier_filter(given.get("kv_load_tiers")).filter for _, given in self.requests]
        for _ in loop.run(requests, lambda request: filters[request.index]):
            pass
        return figures(loop, sums, self.topology), sums


CASES = st.builds(
    lambda capacity, policy, tiers, batch, identity, requests: Case(
        Topology(
            primary=PrimarySpec(capacity, policy),
            tiers=tiers,
            replay=ReplaySpec(max_wait_steps=3, store_batch_blocks=batch, identity=identity),
        ),
        requests,
    ),
    st.integers(0, 7),
    st.sampled_from(("lru", "arc")),
    tier_lists(),
    st.sampled_from((0, 0, 2)),
    st.sampled_from(("chain", "chain", "id")),
    PROMPTS,
)


@given(CASES)
def test_the_sums_add_up(case: Case) -> None:
    found, _ = case.replay(BlockHistory())
    outcomes = found["outcomes"]
    assert sum(outcomes.values()) == found["blocks"] == sum(len(ids) for ids, _ in case.requests)
    assert outcomes["primary"] + outcomes["promoted"] == found["blocks_loaded"] == sum(found["served_by_tier"].values())
    assert sum(found["loaded_by_source"].values()) == found["blocks_loaded"]
    for outcome, parts in [
        ("absent", "absent_by_reason"),
        ("filtered", "filtered_by_tier"),
        ("denied", "denied_by_tier"),
    ]:
        assert sum(found[parts].values()) == outcomes[outcome]
    assert sum(found["unreached_held_by_tier"].values()) <= outcomes["unreached"]
    assert outcomes["filtered"] <= found["lost_to_filter"] <= outcomes["filtered"] + outcomes["unreached"]
    stopped = sum(outcomes[name] for name in ("filtered", "absent", "denied", "failed", "held", "gave_up"))
    assert stopped + found["requests_served_whole"] == found["requests"] == len(case.requests)
    assert outcomes["held"] == 0
    if not any(given.get("kv_load_tiers") is not None for _, given in case.requests):
        assert outcomes["filtered"] == found["lost_to_filter"] == sum(found["skipped_by_tier"].values()) == 0


class Checked(OutcomeSums):
    """Sums that look at each stop for themselves, and add it up a second time without knowing which blocks are new."""

    def __init__(self, manager: TieringManager, history: BlockHistory) -> None:
        super().__init__(manager, history)
        self.asking = OutcomeSums(manager, history)

    def last_pass(self, req_id: int, keys: Sequence[Any], loaded: int, gave_up: bool, first_new: int) -> None:
        super().last_pass(req_id, keys, loaded, gave_up, first_new)
        self.asking.last_pass(req_id, keys, loaded, gave_up, len(keys))
        manager, request = self.manager, self.manager.requests[req_id]
        assert all(manager.primary.is_ready(key) for key in keys[:loaded])
        stop = find_stop(manager, request, keys, loaded, gave_up, self.history)
        assert (stop is None) == (loaded == len(keys))
        if stop is None:
            return
        key = keys[stop.at]
        holders = {index for index, tier in enumerate(manager.tiers) if tier.holds(key)}
        admitted = {index for index, _, admits in request.scan if admits}
        assert gave_up or stop.outcome is Outcome.FAILED or key not in manager.primary.resident
        if stop.outcome is Outcome.FILTERED:
            assert stop.tier == min(index for index in holders - admitted if not manager.tiers[index].offline)  # type: ignore[attr-defined]
        elif stop.outcome is Outcome.DENIED:
            assert stop.tier in holders & admitted
        elif stop.outcome is Outcome.ABSENT:
            assert (stop.reason is AbsentReason.OFFLINE) == bool(holders)
            assert all(manager.tiers[index].offline for index in holders)  # type: ignore[attr-defined]


@given(CASES)
def test_each_stop_is_what_it_says_and_new_blocks_need_no_asking(case: Case) -> None:
    _, sums = case.replay(BlockHistory(), Checked)
    for name in ("counts", "absent", "filtered", "denied", "unreached_held", "lost_to_filter", "served_whole"):
        assert getattr(sums, name) == getattr(sums.asking, name), name


@given(CASES)
def test_evictions_need_not_be_remembered_where_a_tier_keeps_everything(case: Case) -> None:
    every, _ = case.replay(BlockHistory())
    few, _ = case.replay(BlockHistory(evictions=not keeps_everything(case.topology)))
    assert every == few
