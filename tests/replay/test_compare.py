"""Several variants in one pass: each comes out as a run of its own, and the requests that differ are found exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.replay.compare import Comparison, Difference, Span, Variant, differing_blocks, differing_spans
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import ALL, TierFilter, parse_tier_filter
from kvtier_cli.tiering.topology import BUILT_IN, Topology
from kvtier_cli.tiering.topology_file import load_topology, topology_from_builtins
from kvtier_cli.traces.source import TraceSource
from tests.conftest import CHECKOUT

DEMO = load_topology(str(CHECKOUT / "fixtures" / "demo.toml"))
LOCAL = parse_tier_filter([{"medium": "storage", "locality": "local"}]).filter
DENY = parse_tier_filter([]).filter
PRIMARY, PROMOTED, ABSENT, FILTERED, UNREACHED = (
    Outcome.PRIMARY,
    Outcome.PROMOTED,
    Outcome.ABSENT,
    Outcome.FILTERED,
    Outcome.UNREACHED,
)


def topology(**fields: Any) -> Topology:
    return topology_from_builtins(fields, "topology")


@contextmanager
def trace(path: Path, *requests: list[int | str], **more: Any) -> Iterator[TraceSource]:
    lines = [json.dumps({"input_length": 512 * len(ids), "hash_ids": ids, **more}) for ids in requests]
    path.write_text("\n".join(lines) + "\n")
    with TraceSource(path) as source:
        yield source


def compare(source: TraceSource, *variants: tuple[Topology, TierFilter | None], keep: int = 10) -> Comparison:
    comparison = Comparison(source, [Variant(*each) for each in variants], keep=keep)
    comparison.run()
    return comparison


MIXED = [
    (DEMO, None),
    (DEMO, LOCAL),
    (BUILT_IN, DENY),
    (topology(primary={"capacity": 40, "policy": "arc"}, tiers=[{"name": "s3"}]), None),
    (topology(replay={"identity": "id", "tail": "drop"}, tiers=[{"name": "t", "load_latency": 2}]), None),
    (topology(primary={"capacity": 60}, tiers=[{"name": "t", "fail_loads": ["3", "40"]}]), None),
]
"""Policies, filters, other tiers, blocks known in another way, faults: all that a shared table could confuse."""


@pytest.mark.parametrize("name", ["chat.jsonl", "agent.jsonl"])
def test_each_variant_has_the_figures_of_a_replay_of_its_own(name: str) -> None:
    with TraceSource(CHECKOUT / "fixtures" / name) as source:
        comparison = compare(source, *MIXED)
        for together, (tiers, load_filter) in zip(comparison.runs, MIXED, strict=True):
            alone = TraceRun([source], tiers, load_filter)
            assert together.figures() == alone.run()
            assert [*comparison.reading.warnings, *together.warnings] == alone.warnings


@pytest.mark.parametrize("name", ["chat.jsonl", "agent.jsonl"])
def test_the_requests_that_differ_are_those_of_two_replays(name: str) -> None:
    variants = [(DEMO, ALL), (DEMO, LOCAL)]
    with TraceSource(CHECKOUT / "fixtures" / name) as source:
        comparison = compare(source, *variants, keep=10_000)
        served = [[each.loaded for each in TraceRun([source], *variant).steps()] for variant in variants]
    found = {each.number: each.served for each in comparison.differences.worst()}
    apart = {number: pair for number, pair in enumerate(zip(*served, strict=True)) if pair[0] != pair[1]}
    assert {number: found[number] for number in apart} == apart
    assert all(pair[0] == pair[1] for number, pair in found.items() if number not in apart)
    assert comparison.differences.requests == len(found)
    assert comparison.differences.against_first[1].fewer == sum(pair[1] < pair[0] for pair in apart.values())
    figures = [run.figures() for run in comparison.runs]
    change = sum(pair[1] - pair[0] for pair in found.values())
    assert change == figures[1]["blocks_loaded"] - figures[0]["blocks_loaded"]


def test_the_same_variant_twice_differs_in_nothing() -> None:
    with TraceSource(CHECKOUT / "fixtures" / "agent.jsonl") as source:
        comparison = compare(source, (DEMO, None), (DEMO, None))
    assert (comparison.differences.requests, comparison.differences.worst()) == (0, [])


TINY = {"primary": {"capacity": 2}, "tiers": [{"name": "disk", "medium": "storage", "locality": "local"}]}


def test_a_block_that_only_one_variant_may_load_differs(tmp_path: Path) -> None:
    with trace(tmp_path / "t.jsonl", [1, 2], [3, 4], [1, 2]) as source:
        comparison = compare(source, (topology(**TINY), None), (topology(**TINY), DENY))
    (found,) = comparison.differences.worst()
    assert (found.number, found.served, found.change) == (2, (2, 0), -2)
    assert found.spans == (
        (Span(2, PROMOTED, "disk"),),
        (Span(1, FILTERED, "disk"), Span(2, UNREACHED, None)),
    )
    assert [(each.at, each.name, each.outcomes, each.tiers) for each in differing_blocks(found)] == [
        (0, "1", (PROMOTED, FILTERED), ("disk", "disk")),
        (1, "2", (PROMOTED, UNREACHED), ("disk", None)),
    ]
    assert [moved["disk"].read for moved in comparison.moved()] == [2, 0]


def test_a_block_that_comes_from_another_tier_differs_though_as_many_are_served(tmp_path: Path) -> None:
    other = {"primary": {"capacity": 2}, "tiers": [{"name": "tape"}]}
    with trace(tmp_path / "t.jsonl", [1, 2], [3, 4], [1, 2]) as source:
        comparison = compare(source, (topology(**TINY), None), (topology(**other), None))
    (found,) = comparison.differences.worst()
    assert (found.served, found.change, found.blocks) == ((2, 2), 0, 2)
    against = comparison.differences.against_first[1]
    assert (against.differ, against.fewer, against.more) == (1, 0, 0)


def test_a_tail_that_only_one_variant_keeps_is_no_block_of_the_other(tmp_path: Path) -> None:
    dropping = topology(**TINY, replay={"tail": "drop"})
    (tmp_path / "t.jsonl").write_text('{"input_length": 600, "hash_ids": [1, 2]}\n')
    with TraceSource(tmp_path / "t.jsonl") as source:
        comparison = compare(source, (dropping, None), (topology(**TINY), None))
    (found,) = comparison.differences.worst()
    assert [(each.name, each.outcomes) for each in differing_blocks(found)] == [("2", (None, UNREACHED))]


def test_the_worst_is_who_changes_most_then_who_differs_in_most_blocks_then_the_first(tmp_path: Path) -> None:
    prompts: list[list[int | str]] = [[1], [2, 3], [4], [5, 6, 7], [9, 10, 11, 12]]
    small = {"primary": {"capacity": 4}, "tiers": [{"name": "disk"}]}
    with trace(tmp_path / "t.jsonl", *prompts, [1], [2, 3], [4]) as source:
        variants = [(topology(**small), None), (topology(**small), DENY)]
        assert [each.number for each in compare(source, *variants).differences.worst()] == [6, 5, 7]
        assert [each.number for each in compare(source, *variants, keep=2).differences.worst()] == [6, 5]
        nothing = compare(source, *variants, keep=0).differences
        assert (nothing.requests, nothing.worst()) == (3, [])


def test_only_the_worst_requests_are_kept() -> None:
    with TraceSource(CHECKOUT / "fixtures" / "chat.jsonl") as source:
        few, all_of_them = (compare(source, (DEMO, ALL), (DEMO, DENY), keep=keep).differences for keep in (3, 10_000))
    assert [each.number for each in few.worst()] == [each.number for each in all_of_them.worst()[:3]]
    assert (few.requests, few.blocks, few.against_first) == (
        all_of_them.requests,
        all_of_them.blocks,
        all_of_them.against_first,
    )


def test_accounts_of_a_request_are_compared_block_by_block() -> None:
    one = (Span(2, PRIMARY, None), Span(5, PROMOTED, "s3"), Span(6, ABSENT, None), Span(9, UNREACHED, None))
    other = (Span(3, PRIMARY, None), Span(5, PROMOTED, "s3"), Span(6, FILTERED, "s3"))
    assert list(differing_spans([one, other])) == [
        (2, 3, ((PROMOTED, "s3"), (PRIMARY, None))),
        (5, 6, ((ABSENT, None), (FILTERED, "s3"))),
        (6, 9, ((UNREACHED, None), None)),
    ]


def test_with_several_variants_a_request_counts_by_who_is_furthest_from_the_first() -> None:
    spans = tuple((Span(number, PRIMARY, None),) for number in (5, 4, 9, 1))
    found = Difference(0, None, (5, 4, 9, 1), spans, 9, [], compare_table())
    assert (found.furthest, found.change) == (3, -4)


def compare_table() -> Any:
    from kvtier_cli.replay.identity import BlockTable

    return BlockTable()
