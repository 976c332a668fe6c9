"""The replay loop drives a request as a server without a queue would: look up, wait, load, store the rest, finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.loop import ReplayLoop, Served
from kvtier_cli.replay.outcomes import BlockHistory, OutcomeSums
from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.filters import ALL, parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import LoadSource, Locality, Medium
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.model import Request
from tests.tiering.managers import NVME, PEER, POOL, Lookups, tier_of
from tests.tiering.strategies import tier_lists

TOKENS = 16


def loop_over(capacity: int, *tiers: TierSpec, policy: str = "lru", **spec: Any) -> ReplayLoop:
    topology = Topology(primary=PrimarySpec(capacity, policy), tiers=tiers, replay=ReplaySpec(**spec))
    return ReplayLoop(TieringManager(topology), topology.replay, TOKENS)


def ask(loop: ReplayLoop, *ids: int, tokens: int | None = None, load_filter: object = None) -> Served:
    """One request for these ids; its prompt fills its blocks unless told otherwise."""
    request = Request(0, 1, TOKENS * len(ids) if tokens is None else tokens, list(ids))
    (served,) = loop.run([request], lambda _: parse_tier_filter(load_filter).filter)
    return served


def told(served: Served) -> tuple[int, int, bool, int]:
    return served.loaded, served.passes, served.gave_up, served.refused


def ready(loop: ReplayLoop) -> set[str]:
    """The labels of what the primary has."""
    return {loop.table.name(key) for key in loop.manager.primary.resident}  # type: ignore[arg-type]


class Looks:
    """Keeps what a watcher is told of each request."""

    def __init__(self) -> None:
        self.told: list[tuple[int, list[Any], int, bool, int]] = []

    def last_pass(self, req_id: int, keys: Sequence[Any], loaded: int, gave_up: bool, first_new: int) -> None:
        self.told.append((req_id, list(keys), loaded, gave_up, first_new))


# Waiting


def test_a_request_with_nothing_to_wait_for_looks_once_and_ends_one_step() -> None:
    loop = loop_over(4, NVME)
    assert told(ask(loop, 1, 2)) == (0, 1, False, 0)
    assert told(ask(loop, 1, 2, 3)) == (2, 1, False, 0)
    assert (loop.manager.counters.steps, loop.wait_steps, loop.requests, loop.blocks) == (2, 0, 2, 5)


def test_a_promotion_is_waited_for_and_then_the_whole_prefix_looked_up_again() -> None:
    loop = loop_over(2, NVME)
    ask(loop, 1, 2)
    ask(loop, 3, 4)  # evicts 1 and 2, which nvme keeps
    looked_up = loop.manager.counters.lookups
    served = ask(loop, 1, 2)
    assert (served.loaded, served.passes) == (2, 2)
    assert loop.manager.counters.lookups - looked_up == 4


@pytest.mark.parametrize(("most", "passes"), [(16, 17), (3, 4), (1, 2), (0, 1)])
def test_a_request_waits_so_many_steps_and_no_more(most: int, passes: int) -> None:
    loop = loop_over(4, TierSpec("t", lookup_retry=99), max_wait_steps=most)
    served = ask(loop, 1)
    assert (served.passes, served.gave_up) == (passes, True)
    # A step's end between two looks each, and the one in which the request finishes: none after the last look.
    assert loop.manager.counters.steps == passes
    assert (loop.wait_steps, loop.gave_up) == (passes - 1, 1)


def test_a_wait_that_ends_with_the_last_look_is_no_giving_up() -> None:
    slow = TierSpec("t", lookup_retry=3)
    assert not ask(loop_over(4, slow, max_wait_steps=3), 1).gave_up
    assert ask(loop_over(4, slow, max_wait_steps=2), 1).gave_up


def test_who_gives_up_takes_the_blocks_at_the_head_that_are_ready_and_stores_the_rest() -> None:
    loop = loop_over(6, TierSpec("t", lookup_retry=99))
    ask(loop, 1, 2)
    served = ask(loop, 1, 2, 3, 4)
    assert (served.loaded, served.gave_up) == (2, True)
    assert ready(loop) == {"1", "2", "3", "4"}


def test_a_prompt_longer_than_the_cpu_tier_promotes_and_evicts_itself_until_it_gives_up() -> None:
    loop = loop_over(2, NVME)
    tier_of(loop.manager, "nvme").seed(loop.table.keys([1, 2, 3]))
    served = ask(loop, 1, 2, 3)
    assert (served.passes, served.gave_up) == (17, True)
    assert served.loaded < 3
    assert loop.manager.counters.evicted_by_promotions > 10


def test_a_prompt_longer_than_the_cpu_tier_is_not_stored_in_one_batch() -> None:
    loop = loop_over(2, NVME)
    assert ask(loop, 1, 2, 3).refused == 1
    assert (ready(loop), loop.manager.counters.refused) == (set(), 1)


# Storing


def test_a_prompt_longer_than_the_cpu_tier_passes_through_it_in_batches_with_a_step_between() -> None:
    loop = loop_over(2, NVME, store_batch_blocks=2)
    assert ask(loop, 1, 2, 3, 4, 5).refused == 0
    assert loop.manager.counters.steps == 3
    assert loop.manager.counters.blocks_stored == 5
    assert ready(loop) == {"3", "5"}


def test_a_batch_that_finds_no_slots_is_left_out_and_counted() -> None:
    loop = loop_over(2, TierSpec("t", store_latency=9), store_batch_blocks=2)
    served = ask(loop, 1, 2, 3, 4, 5)  # the first batch stays pinned by its cascade
    assert (served.refused, loop.manager.counters.blocks_stored) == (2, 2)
    assert ready(loop) == {"1", "2"}


def test_without_a_batch_size_no_step_ends_between_stores() -> None:
    loop = loop_over(9, NVME)
    ask(loop, 1, 2, 3, 4, 5)
    assert loop.manager.counters.steps == 1


def test_only_what_was_not_loaded_is_stored() -> None:
    loop = loop_over(9)
    ask(loop, 1, 2)
    ask(loop, 1, 2, 3)
    assert loop.manager.counters.blocks_stored == 3
    assert loop.manager.counters.blocks_loaded == 2


# Prompts


@pytest.mark.parametrize(
    ("tail", "tokens", "blocks"),
    [("keep", 33, 3), ("drop", 33, 2), ("drop", 48, 3), ("drop", 15, 0), ("drop", 0, 0), ("keep", 0, 3)],
)
def test_a_partly_filled_last_block_is_one_or_is_left_out(tail: str, tokens: int, blocks: int) -> None:
    assert len(ask(loop_over(4, tail=tail), 1, 2, 3, tokens=tokens).keys) == blocks


def test_a_request_without_blocks_is_one_step_and_nothing_else() -> None:
    loop = loop_over(4, NVME)
    assert told(ask(loop)) == (0, 1, False, 0)
    counters = loop.manager.counters
    assert (counters.steps, counters.lookups, counters.blocks_stored, loop.requests) == (1, 0, 0, 1)


def test_a_block_is_known_to_end_where_its_tokens_do() -> None:
    loop = loop_over(3)

    class Positions(Looks):
        def last_pass(self, req_id: int, *rest: Any) -> None:
            seen.append(dict(loop.manager.requests[req_id].positions))

    seen: list[dict[Any, int]] = []
    loop.watcher = Positions()
    ask(loop, 1, 2, 3)
    ask(loop, 1, 9)
    assert seen == [{0: 16, 1: 32, 2: 48}, {0: 16, 3: 32}]


def test_of_a_prompt_the_last_block_is_evicted_first() -> None:
    loop = loop_over(3)
    ask(loop, 1, 2, 3)
    ask(loop, 9)
    assert ready(loop) == {"1", "2", "9"}


def test_ids_as_they_are_make_one_block_of_a_repeated_id() -> None:
    loop = loop_over(4, identity="id")
    ask(loop, 1, 2)
    assert ask(loop, 5, 2).loaded == 0
    assert ask(loop, 2, 2, 1).loaded == 3


# What loads came from


def test_loads_are_labelled_by_the_medium_of_the_tier_that_was_promoted_from() -> None:
    for tier, source in [
        (NVME, LoadSource.DISK),
        (POOL, LoadSource.HOST),
        (PEER, LoadSource.EXTERNAL_UNSPECIFIED),
    ]:
        loop = loop_over(2, tier)
        for block in (1, 2, 3, 1, 1):  # stored thrice, promoted, found in the primary
            ask(loop, block)
        expected = dict.fromkeys(LoadSource, 0)
        expected[source] += 1
        expected[LoadSource.HOST] += 1
        assert loop.loaded_by_source == expected
        assert loop.loaded_promoted == [1]


def test_a_filter_holds_for_its_request_alone() -> None:
    loop = loop_over(1, NVME)
    ask(loop, 1)
    ask(loop, 2)
    assert ask(loop, 1, load_filter=[]).loaded == 0
    ask(loop, 2, load_filter=[])
    assert ask(loop, 1).loaded == 1


# Faults on demand


@pytest.mark.parametrize("mark", ["2", "7"])
def test_a_block_that_is_to_fail_is_named_by_its_label(mark: str) -> None:
    failing = TierSpec("t", fail_loads=frozenset({mark}))
    loop = loop_over(2, failing, max_wait_steps=1)
    for prompt in ([1, 2], [3, 4], [1, 2]):
        served = ask(loop, *prompt)
    assert served.loaded == (1 if mark == "2" else 2)
    assert loop.manager.counters.failed == [1 if mark == "2" else 0]


def test_a_label_names_all_its_blocks_and_stores_may_fail_too() -> None:
    loop = loop_over(9, TierSpec("t", fail_stores=frozenset({"2"})))
    for prompt in ([1, 2], [5, 2], [6]):
        ask(loop, *prompt)
    loop.manager.on_schedule_end()
    assert sorted(loop.table.name(key) for key in loop.manager.tiers[0].blocks()) == ["1", "5", "6"]


# Who watches


@pytest.mark.parametrize(("identity", "new"), [("chain", [0, 2, 1, 3]), ("id", [2, 3, 2, 3])])
def test_a_watcher_is_told_from_where_on_no_block_was_there_before(identity: str, new: list[int]) -> None:
    loop = loop_over(9, identity=identity)
    loop.watcher = looks = Looks()
    for prompt in ([1, 2], [1, 2, 3], [1, 4], [1, 2, 3]):
        ask(loop, *prompt)
    assert [first for *_, first in looks.told] == new
    assert [loaded for _, _, loaded, _, _ in looks.told] == [0, 2, 1, 3]


def test_a_watcher_sees_the_tiers_before_anything_is_loaded_or_stored() -> None:
    loop = loop_over(9)

    class Peeks(Looks):
        def last_pass(self, req_id: int, *rest: Any) -> None:
            seen.append((sorted(ready(loop)), loop.manager.counters.blocks_loaded))

    seen: list[tuple[list[str], int]] = []
    loop.watcher = Peeks()
    ask(loop, 1)
    ask(loop, 1, 2)
    assert seen == [([], 0), (["1"], 0)]


class Everything(Observer):
    """Hears of all there is to hear of, so that nothing takes a short cut."""

    def __init__(self) -> None:
        self.heard = 0

    def _hear(self, *_: object, **__: object) -> None:
        self.heard += 1

    on_request = on_promoted = on_evicted = on_stored = on_refused = on_loaded = _hear
    on_job_submitted = on_job_finished = on_request_finished = on_tier_finished = on_step = _hear


def tallies(counters: Counters) -> dict[str, Any]:
    return {name: getattr(counters, name) for name in Counters.__slots__}


PROMPTS = st.lists(
    st.builds(lambda first, count: list(range(first, first + count)), st.integers(0, 7), st.integers(0, 6)), max_size=12
)


@given(
    prompts=PROMPTS,
    capacity=st.integers(0, 7),
    policy=st.sampled_from(("lru", "arc")),
    tiers=tier_lists(),
    batch=st.sampled_from((0, 0, 1, 2)),
    identity=st.sampled_from(("chain", "chain", "id")),
    load_filter=st.sampled_from((None, None, [], [{"medium": "storage"}], [{"locality": "local"}])),
)
def test_watched_or_not_every_request_gets_the_same(
    prompts: list[list[int]],
    capacity: int,
    policy: str,
    tiers: tuple[TierSpec, ...],
    batch: int,
    identity: str,
    load_filter: object,
) -> None:
    spec = ReplaySpec(max_wait_steps=4, store_batch_blocks=batch, identity=identity)
    topology = Topology(primary=PrimarySpec(capacity, policy), tiers=tiers, replay=spec)
    requests = [Request(i, i + 1, TOKENS * len(ids), list(ids)) for i, ids in enumerate(prompts)]
    filter_ = ALL if load_filter is None else parse_tier_filter(load_filter).filter

    bare = ReplayLoop(TieringManager(topology), spec, TOKENS)
    history = BlockHistory()
    observers = ObserverGroup([Everything(), history, Lookups()])
    watched = ReplayLoop(TieringManager(topology, observer=observers, events=True), spec, TOKENS)
    watched.watcher = OutcomeSums(watched.manager, history)

    assert list(bare.run(requests, lambda _: filter_)) == list(watched.run(requests, lambda _: filter_))
    assert tallies(bare.manager.counters) == tallies(watched.manager.counters)
    assert bare.loaded_by_source == watched.loaded_by_source
    assert bare.manager.primary.state() == watched.manager.primary.state()
    assert [list(tier.blocks()) for tier in bare.manager.tiers] == [list(t.blocks()) for t in watched.manager.tiers]


def test_the_sources_of_loads_add_up_to_the_loads() -> None:
    remote = TierSpec("s3", Medium.STORAGE, Locality.REMOTE)
    loop = loop_over(3, NVME, remote, POOL)
    for start in (0, 3, 0, 1, 5, 3, 0):
        ask(loop, *range(start, start + 3))
    assert sum(loop.loaded_by_source.values()) == loop.manager.counters.blocks_loaded > 0
