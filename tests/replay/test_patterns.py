"""The patterns that people suffer from, as a finished run warns of them: with numbers, and only where they matter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.shipped import shipped_folder
from kvtier_cli.tiering.filters import TierFilter, parse_tier_filter
from kvtier_cli.tiering.topology import BUILT_IN, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.source import TraceSource
from tests.conftest import RunsKvtier
from tests.tiering.managers import NVME

TWO_SLOTS = Topology(primary=PrimarySpec(2), tiers=(NVME,))
Request = tuple[list[int], Any]
"""Blocks, and `kv_load_tiers`; None for no parameters."""


def asks(*blocks: int, tiers: Any = None) -> Request:
    return list(blocks), tiers


def write(path: Path, requests: Sequence[Request]) -> None:
    with path.open("w") as file:
        for blocks, tiers in requests:
            line: dict[str, Any] = {"input_length": 512 * len(blocks), "hash_ids": blocks}
            if tiers is not None:
                line["kv_transfer_params"] = {"kv_load_tiers": tiers}
            file.write(json.dumps(line) + "\n")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where the trace of a test is written."""
    return tmp_path / "t.jsonl"


def warnings(
    trace: Path, requests: Sequence[Request], topology: Topology, load_filter: TierFilter | None = None
) -> list[str]:
    write(trace, requests)
    with TraceSource(str(trace)) as source:
        run = TraceRun([source], topology, load_filter)
        run.run()
    return run.warnings


@pytest.mark.parametrize("name", ["chat.jsonl", "agent.jsonl"])
def test_an_ordinary_run_is_warned_of_nothing(name: str) -> None:
    with TraceSource(str(shipped_folder() / name)) as source:
        run = TraceRun([source], BUILT_IN)
        run.run()
    assert run.warnings == []


def test_a_prefix_longer_than_the_primary_and_what_it_promotes_in_vain(trace: Path) -> None:
    block_by_block = replace(TWO_SLOTS, replay=ReplaySpec(store_batch_blocks=1))
    requests = [asks(1, 2, 3), asks(1, 2, 3)]
    too_long, unread = warnings(trace, requests, block_by_block)
    assert too_long == (
        "1 request gave up: the prefix that is there, of up to 3 blocks, is longer than the primary (2), and promotes "
        "and evicts itself; vLLM would wait for ever; give primary.capacity 3 or more"
    )
    assert unread == (
        "32 of 34 promoted blocks (94 %) were evicted before they were loaded: the primary has too little room for "
        "what is promoted into it; give it more, or admit fewer tiers"
    )
    assert warnings(trace, requests, replace(block_by_block, primary=PrimarySpec(3))) == []


def test_a_request_that_gives_up_on_a_slow_tier_has_another_trouble(trace: Path) -> None:
    slow = replace(TWO_SLOTS, tiers=(TierSpec("slow", load_latency=20),))
    assert warnings(trace, [asks(1, 2), asks(8, 9), asks(1, 2)], slow) == []


def test_stores_larger_than_the_primary(trace: Path) -> None:
    assert warnings(trace, [asks(1, 2, 3), asks(7, 8), asks(4, 5, 6, 9)], TWO_SLOTS) == [
        "2 stores of up to 4 blocks were refused: the primary has 2 slots, and a store is all or nothing; give "
        "primary.capacity 4 or more, or set replay.store_batch_blocks (a server stores while it computes)"
    ]
    batches = replace(TWO_SLOTS, replay=ReplaySpec(store_batch_blocks=2))
    assert warnings(trace, [asks(1, 2, 3), asks(7, 8), asks(4, 5, 6, 9)], batches) == []


PINS = replace(TWO_SLOTS, tiers=(TierSpec("slow", store_latency=3),))


def test_requests_that_can_store_nothing_while_the_slots_are_pinned(trace: Path) -> None:
    (warning,) = warnings(trace, [asks(1, 2), asks(3, 4)], PINS)
    assert warning.startswith("1 request of 2 could store nothing: the slots of the primary were pinned or pending")


def test_one_such_request_in_many_is_not_worth_a_word(trace: Path) -> None:
    assert warnings(trace, [asks(1, 2), asks(3, 4), *[asks(1, 2)] * 99], PINS) == []


LOST = [asks(1, 2, tiers=["x"]), asks(8, 9), asks(1, 2, tiers=["x"])]
REMOTE = [{"locality": "remote"}]


def under(tiers: Any, requests: Sequence[Request] = LOST) -> list[Request]:
    """The requests, each under this filter."""
    return [(blocks, tiers) for blocks, _ in requests]


def test_a_tier_that_no_request_may_load_from_though_it_has_what_they_ask_for(trace: Path) -> None:
    (warning,) = warnings(trace, under(REMOTE), TWO_SLOTS)
    assert warning == (
        'no request\'s filter admits tier "nvme": 1 request of 3 stopped at a block that it holds; `kvtier filter` '
        "tells what a filter admits"
    )


def test_a_tier_that_some_request_may_load_from_or_that_has_nothing_to_give_is_fine(trace: Path) -> None:
    assert warnings(trace, [*under(REMOTE), asks(5)], TWO_SLOTS) == []
    assert warnings(trace, under(REMOTE, [asks(1), asks(2)]), TWO_SLOTS) == []


def test_a_filter_for_all_requests_is_its_users_word(trace: Path) -> None:
    assert warnings(trace, under(None), TWO_SLOTS, parse_tier_filter(REMOTE).filter) == []


HOLES = Topology(primary=PrimarySpec(3), tiers=(replace(NVME, capacity=4),))


def test_holes_in_prefixes_and_what_lies_behind_them(trace: Path) -> None:
    requests = [asks(1, 2, 3), asks(7, 8, 9), asks(1, 2, 3)]
    assert warnings(trace, requests, HOLES) == [
        "1 request of 3 stopped at a hole: an absent block with blocks behind it that a tier holds and nobody can use, "
        '1 in all; each was last evicted from tier "nvme"; give it more room, or add a tier that keeps everything'
    ]
    assert warnings(trace, requests, replace(HOLES, tiers=(NVME,))) == []
    assert warnings(trace, [*requests, *[asks(1)] * 99], HOLES) == [], "one such request in many"


def test_they_go_to_stderr_and_into_the_document(kvtier: RunsKvtier, trace: Path) -> None:
    write(trace, [asks(1, 2, 3)])
    topology = json.dumps({"primary": {"capacity": 2}})
    ran = kvtier("replay", str(trace), "--topology", topology)
    assert ran.stderr.startswith("warning: 1 store of up to 3 blocks was refused")
    assert (ran.stderr.count("\n"), ran.status) == (1, ExitStatus.DONE)
    (warning,) = json.loads(kvtier("replay", str(trace), "--topology", topology, "--json").stdout)["warnings"]
    assert ran.stderr == f"warning: {warning}\n"
