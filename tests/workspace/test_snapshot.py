"""The CPU tier from one run to the next."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.primary import Primary
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.found import make_workspace
from kvtier_cli.workspace.snapshot import primary_lists, restore_primary
from kvtier_cli.workspace.state import ArcLists, LruLists
from tests.workspace.spaces import loaded, topology, trace

ARC = ArcLists(["a", "b"], ["c", "d"], ["e"], ["f", "g"], 1.5)


@pytest.mark.parametrize(
    ("lists", "capacity", "policy", "expected"),
    [
        (LruLists(["a", "b", "c"]), 3, "lru", LruLists(["a", "b", "c"])),
        (LruLists(["a", "b", "c"]), 2, "lru", LruLists(["b", "c"])),
        (LruLists(["a", "b"]), 0, "lru", LruLists([])),
        (ARC, 4, "arc", ARC),
        (ARC, 3, "arc", ArcLists(["b"], ["c", "d"], ["e"], ["f", "g"], 1.5)),
        (ARC, 1, "arc", ArcLists([], ["d"], ["e"], ["g"], 1.0)),
        (ARC, 4, "lru", LruLists(["a", "b", "c", "d"])),
        (LruLists(["a", "b", "c"]), 2, "arc", ArcLists(t1=["b", "c"])),
    ],
)
def test_it_comes_back_as_it_was_as_far_as_it_still_fits(
    lists: LruLists | ArcLists, capacity: int, policy: str, expected: LruLists | ArcLists
) -> None:
    primary = Primary(capacity, policy)
    restore_primary(primary, lists)
    assert primary_lists(primary) == expected
    assert (primary.busy, primary.pending) == ({}, 0)


ADDED_UP = (
    "requests",
    "blocks",
    "lookups",
    "primary_hits",
    "steps",
    "wait_steps",
    "blocks_loaded",
    "blocks_stored",
    "stores_refused",
    "blocks_evicted_by_stores",
    "blocks_evicted_by_promotions",
    "promotions_started",
    "promotions_denied",
)
BY_TIER = ("promoted_by_tier", "asked_by_tier", "hits_by_tier", "skipped_by_tier", "served_by_tier", "outcomes")

PROMPTS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=8)
TOPOLOGIES = st.builds(
    topology,
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(0, 6)),
    st.one_of(st.none(), st.integers(1, 6)),
    policy=st.sampled_from(["lru", "arc"]),
    identity=st.sampled_from(["chain", "id"]),
)


def sums(*runs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: sum(run[name] for run in runs) for name in ADDED_UP}
    for name in BY_TIER:
        total: Counter[str] = Counter()
        for run in runs:
            total.update(run[name])
        found[name] = {key: count for key, count in total.items() if count}
    return found


@settings(max_examples=15)
@given(TOPOLOGIES, PROMPTS, PROMPTS)
def test_two_loads_one_after_another_decide_as_one_run_over_both(
    made_for: Topology, first: list[list[int]], second: list[list[int]]
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        one, two = trace(folder / "one.jsonl", first), trace(folder / "two.jsonl", second)
        with TraceSource(str(one)) as a, TraceSource(str(two)) as b:
            whole = TraceRun([a, b], made_for)
            expected = whole.run()
        make_workspace(folder / "space", made_for)
        found = [loaded(folder / "space", one), loaded(folder / "space", two)]
        assert sums(*found) == sums(expected)

        whole.manager.transfers.drain()
        with open_workspace(folder / "space") as space:
            run = space.run()
            assert [tier.size() for tier in space.tiers] == [tier.size() for tier in whole.manager.tiers]
            assert list(map(len, primary_of(run))) == list(map(len, primary_of(whole)))
            for tier, totals in space.state.totals.items():
                assert totals.served == expected["served_by_tier"][tier]


def primary_of(run: TraceRun) -> list[list[object]]:
    return [part for part in run.manager.primary.state().values() if isinstance(part, list)]
