"""`max_load_tokens` and `max_offload_tokens`: a request looks up, loads and stores as much as it carries caps for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.figures import figures
from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory, Outcome, OutcomeSums, Stop
from kvtier_cli.replay.reasons import deciding_line, headline, row_reason
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import ALL, FilterParse, parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.token_caps import TokenCaps
from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec, PrimarySpec, ReplaySpec, TierSpec, Topology
from tests.replay.trace_files import asks, write_trace
from tests.tiering.managers import NVME, S3, tier_of

TOKENS = 16


class Capped:
    """A server to which requests with caps come."""

    def __init__(self, capacity: int, *tiers: TierSpec, **spec: Any) -> None:
        self.topology = Topology(primary=PrimarySpec(capacity), tiers=tiers, replay=ReplaySpec(**spec))
        self.history = BlockHistory()
        self.manager = TieringManager(self.topology, observer=self.history)
        self.sums = OutcomeSums(self.manager, self.history)
        self.loop = ReplayLoop(self.manager, self.topology.replay, TOKENS, self.sums)

    def ask(
        self, *ids: int, load: int | None = None, offload: int | None = None, load_filter: object = None
    ) -> tuple[int, Stop | None]:
        """One request; what was loaded, and why not more."""
        keys = self.loop.table.keys(ids)
        limits = TokenCaps(load, offload).limits(len(keys), TOKENS)
        served = self.loop.replay(keys, parse_tier_filter(load_filter).filter, limits=limits)
        return served.loaded, self.sums.stop

    def tell(self, *ids: int, load: int | None = None, offload: int | None = None) -> RequestStory:
        keys = self.loop.table.keys(ids)
        limits = TokenCaps(load, offload).limits(len(keys), TOKENS)
        return tell_story(self.loop, keys, FilterParse(None, ALL), self.history, label="r", limits=limits)

    def seed(self, tier: str, *ids: int) -> None:
        tier_of(self.manager, tier).seed(self.loop.table.keys(ids))

    def ready(self) -> set[str]:
        return {self.loop.table.name(key) for key in self.manager.primary.resident}  # type: ignore[arg-type]

    def figures(self) -> dict[str, Any]:
        return figures(self.loop, self.sums, self.topology)

    def outcomes(self) -> dict[str, int]:
        return {name: count for name, count in self.figures()["outcomes"].items() if count}


def test_what_is_behind_the_cap_on_loads_is_not_looked_up_and_unreached() -> None:
    server = Capped(9, NVME)
    server.ask(1, 2, 3, 4)
    before = server.manager.counters.lookups
    assert server.ask(1, 2, 3, 4, load=2 * TOKENS + 15) == (2, Stop(2, Outcome.UNREACHED))
    assert server.manager.counters.lookups - before == 2
    assert server.outcomes() == {"primary": 2, "absent": 1, "unreached": 5}
    found = server.figures()
    assert (found["unreached_capped"], found["unreached_held_by_tier"]) == (2, {"nvme": 2})


def test_a_cap_of_less_than_a_block_looks_nothing_up() -> None:
    server = Capped(9, NVME)
    server.seed("nvme", 1, 2)
    assert server.ask(1, 2, load=TOKENS - 1) == (0, Stop(0, Outcome.UNREACHED))
    assert server.manager.counters.lookups == 0
    assert server.figures()["promotions_started"] == 0


def test_a_capped_request_promotes_nothing_that_it_may_not_load() -> None:
    server = Capped(9, NVME)
    server.seed("nvme", 1, 2, 3)
    assert server.ask(1, 2, 3, load=2 * TOKENS) == (2, Stop(2, Outcome.UNREACHED))
    assert server.outcomes() == {"promoted": 2, "unreached": 1}
    assert server.figures()["promotions_started"] == 2


def test_a_request_that_stops_before_its_cap_stops_for_the_reason_it_would_have_without() -> None:
    server = Capped(9, NVME)
    server.ask(1)
    loaded, stop = server.ask(1, 2, 3, 4, load=3 * TOKENS)
    assert (loaded, stop and stop.outcome) == (1, Outcome.ABSENT)
    assert server.figures()["unreached_capped"] == 0


def test_what_the_cap_kept_from_being_loaded_is_computed_and_offered_for_a_store() -> None:
    server = Capped(9, S3)
    server.seed("s3", 1, 2, 3)
    server.ask(1, 2, 3, load=TOKENS)
    assert server.ready() == {"1", "2", "3"}
    assert server.figures()["blocks_stored"] == 2


@pytest.mark.parametrize(
    ("cap", "stored"), [(0, 0), (15, 0), (16, 1), (3 * 16 + 15, 3), (4 * 16, 4), (10**30, 4), (None, 4)]
)
def test_only_whole_blocks_within_the_cap_on_stores_are_stored(cap: int | None, stored: int) -> None:
    server = Capped(9, NVME)
    server.ask(1, 2, 3, 4, offload=cap)
    assert server.figures()["blocks_stored"] == stored
    assert server.ready() == {str(block) for block in range(1, stored + 1)}
    assert server.figures()["unstored_capped"] == 4 - stored


def test_the_cap_on_stores_counts_from_the_start_of_the_prompt_not_from_what_was_loaded() -> None:
    server = Capped(9, NVME)
    server.ask(1, 2, 3)
    server.ask(1, 2, 3, 4, 5, offload=4 * TOKENS)
    assert server.ready() == {"1", "2", "3", "4"}
    server.ask(1, 2, 3, 4, 5, offload=TOKENS)
    assert server.ready() == {"1", "2", "3", "4"}
    assert server.figures()["unstored_capped"] == 2


def test_caps_bound_what_a_filter_can_have_cost() -> None:
    server = Capped(9, NVME)
    server.seed("nvme", 1, 2, 3, 4)
    server.ask(1, 2, 3, 4, load=2 * TOKENS, load_filter=[])
    assert server.outcomes() == {"filtered": 1, "unreached": 3}
    assert server.figures()["lost_to_filter"] == 2


def test_batches_of_stores_end_at_the_cap() -> None:
    server = Capped(9, NVME, store_batch_blocks=2)
    server.ask(1, 2, 3, 4, 5, 6, offload=3 * TOKENS)
    assert server.ready() == {"1", "2", "3"}
    assert server.figures()["steps"] == 2


def test_a_request_that_gives_up_takes_no_block_from_behind_its_cap() -> None:
    slow = TierSpec("slow", lookup_retry=99)
    server = Capped(9, slow, max_wait_steps=1)
    server.ask(9, 1)
    loaded, stop = server.ask(2, 1, load=TOKENS)
    assert (loaded, stop and stop.outcome) == (0, Outcome.GAVE_UP)


caps = st.none() | st.integers(0, 9 * TOKENS)
prompts = st.lists(st.integers(0, 5), max_size=8)


@given(st.lists(st.tuples(prompts, caps, caps), max_size=12), st.integers(1, 8))
def test_whatever_the_caps_each_block_ends_in_one_outcome(
    requests: list[tuple[list[int], int | None, int | None]], capacity: int
) -> None:
    server = Capped(capacity, NVME, S3)
    for ids, load, offload in requests:
        loaded, stop = server.ask(*ids, load=load, offload=offload)
        assert load is None or loaded * TOKENS <= load
        assert (stop is None) == (loaded == len(ids))
    found = server.figures()
    assert sum(found["outcomes"].values()) == found["blocks"]
    assert found["unreached_capped"] <= found["outcomes"]["unreached"]
    assert sum(found["unreached_held_by_tier"].values()) <= found["outcomes"]["unreached"]


@given(st.lists(prompts, max_size=12), st.integers(1, 8))
def test_caps_that_are_as_long_as_the_prompts_change_nothing(requests: list[list[int]], capacity: int) -> None:
    plain, capped = Capped(capacity, NVME), Capped(capacity, NVME)
    for ids in requests:
        plain.loop.replay(plain.loop.table.keys(ids), ALL)
        capped.ask(*ids, load=len(ids) * TOKENS, offload=len(ids) * TOKENS)
    assert {**capped.figures(), "requests_capped": 0} == plain.figures()


# Told


def test_the_story_of_a_capped_request_names_its_cap() -> None:
    server = Capped(9, NVME)
    server.ask(1, 2, 3)
    told = server.tell(1, 2, 3, load=2 * TOKENS + 1, offload=TOKENS)
    assert headline(told) == (
        "The request's max_load_tokens (33) ends before block 2. 2 of 3 blocks served: 2 primary. "
        "Its max_offload_tokens (16) kept 1 block from being stored."
    )
    assert deciding_line(told) == (
        "block 2 (3) was not looked up: max_load_tokens (33) leaves 2 whole blocks to load; cpu holds it."
    )
    assert row_reason(told, told.blocks[2]) == "behind max_load_tokens (cpu holds it)"
    assert told.blocks[2].outcome is Outcome.UNREACHED


def test_the_story_of_a_request_that_may_load_nothing() -> None:
    told = Capped(9, NVME).tell(1, 2, load=3)
    assert headline(told).startswith("The request's max_load_tokens (3) is less than a block: nothing was looked up.")


# As traces carry them


def capped(**params: object) -> dict[str, object]:
    return {"kv_transfer_params": params}


def test_a_traces_requests_run_under_the_caps_that_they_carry(tmp_path: Path) -> None:
    requests = [asks(1, 2, 3), asks(1, 2, 3, **capped(max_load_tokens=1024)), asks(4, **capped(max_offload_tokens=0))]
    found = TraceRun([write_trace(tmp_path, *requests)], BUILT_IN).run()
    assert (found["blocks_loaded"], found["blocks_stored"]) == (2, 3)
    assert (found["requests_capped"], found["unreached_capped"], found["unstored_capped"]) == (2, 1, 1)


def test_a_filter_for_all_requests_leaves_them_their_caps(tmp_path: Path) -> None:
    requests = [asks(1, 2), asks(1, 2, **capped(max_load_tokens=512, kv_load_tiers=[{"medum": "cpu"}]))]
    run = TraceRun([write_trace(tmp_path, *requests)], BUILT_IN, ALL)
    assert run.run()["blocks_loaded"] == 1
    assert run.warnings == []


def test_caps_that_are_none_are_told_as_often_as_vllm_would_warn(tmp_path: Path) -> None:
    requests = [asks(1, **capped(max_load_tokens="512", max_offload_tokens=-1)), asks(1, **capped(max_load_tokens=1.0))]
    run = TraceRun([write_trace(tmp_path, *requests)], BUILT_IN)
    run.run()
    assert run.warnings == [
        "vLLM would log 3 warnings about the requests' max_load_tokens and max_offload_tokens: what is no whole number "
        "from 0 on caps nothing"
    ]


def test_a_cap_counts_tokens_of_the_traces_own_blocks(tmp_path: Path) -> None:
    size = {"block_size": 16}
    requests = [asks(1, 2, 3, **size), asks(1, 2, 3, **size, **capped(max_load_tokens=32))]
    run = TraceRun([write_trace(tmp_path, *requests)], Topology(block=BlockSpec(tokens=512)))
    assert run.run()["blocks_loaded"] == 2
