"""What an op changed: blocks in and out of each tier, pins, pending writes that ended, order, jobs, requests."""

from __future__ import annotations

from typing import Any

import pytest

from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_ops, runner_of
from kvtier_cli.replay.state_change import ListChange, StateChange, state_change

LRU = "topology: {primary: {capacity: 2}, tiers: [{name: t0, capacity: 2}]}"
ARC = "topology: {primary: {capacity: 2, policy: arc}}"


def change_by_last(*ops: str, topology: str = LRU) -> StateChange:
    """What the last of the ops changed."""
    fixture = fixture_from_text(f"{topology}\nops:\n" + "\n".join(f"- {op}" for op in ops), "bug.yaml")
    runner = runner_of(fixture)
    states = [runner.state(), *(runner.state() for _ in run_ops(fixture, runner))]
    return state_change(states[-2], states[-1])


R1 = "{op: request, id: r1}"
STORED = (R1, "{op: store, id: r1, blocks: [b1, b2], positions: [16, 32]}")


def test_a_step_without_work_changes_nothing() -> None:
    assert not change_by_last("{op: step}")


@pytest.mark.parametrize(
    ("ops", "changed"),
    [
        ([R1], {"live": ["r1"]}),
        ([R1, "{op: finish, id: r1}"], {"over": ["r1"]}),
        (["{op: seed, tier: t0, blocks: [b1]}"], {"tiers": {"t0": ListChange(["b1"], [], None)}}),
        (
            ["{op: seed, tier: t0, blocks: [b1, b2]}", "{op: seed, tier: t0, blocks: [b3]}"],
            {"tiers": {"t0": ListChange(["b3"], ["b1"], None)}},
        ),
        (
            ["{op: seed, tier: t0, blocks: [b1, b2]}", R1, "{op: touch, id: r1, blocks: [b1]}"],
            {"tiers": {"t0": ListChange([], [], ["b2", "b1"])}},
        ),
        ([R1, "{op: store, id: r1, blocks: [b1], defer: true}"], {"arrived": {"b1": None}}),
        (
            ["{op: seed, tier: t0, blocks: [b1]}", R1, "{op: lookup, id: r1, block: b1}"],
            {"arrived": {"b1": None}, "queued": [{"tier": "t0", "req": "r1", "blocks": ["b1"]}]},
        ),
        ([*STORED, "{op: load, id: r1, blocks: [b1], defer: true}"], {"pins": {"b1": (1, 2)}}),
        (["{op: preset, state: {blocks: {b2: 0, b1: 0}}}", "{op: reset}"], {"left": ["b1", "b2"]}),
    ],
)
def test_each_kind_of_change_is_told_and_no_other(ops: list[str], changed: dict[str, Any]) -> None:
    change = change_by_last(*ops)
    assert {name: getattr(change, name) for name in StateChange.__slots__ if getattr(change, name)} == changed


def test_a_write_that_ended_makes_its_blocks_ready_and_pinned_by_their_copy() -> None:
    change = change_by_last(R1, "{op: store, id: r1, blocks: [b1], defer: true}", "{op: complete_store, id: r1}")
    assert (change.ready, change.pins, change.pending) == (["b1"], {"b1": (0, 1)}, [])
    assert [(job["kind"], job["blocks"]) for job in change.jobs] == [("cascade", ["b1"])]


def test_the_order_counts_where_it_is_not_just_that_of_new_blocks_behind_the_old() -> None:
    more_room = LRU.replace("capacity: 2", "capacity: 4", 1)
    others = [*STORED, "{op: request, id: r2}", "{op: store, id: r2, blocks: [c1], positions: [16]}"]
    assert change_by_last(*others, topology=more_room).policy == {}
    late = "{op: store, id: r1, blocks: [b3], positions: [48]}"  # ranks with the beginning of r1
    change = change_by_last(*others, late, topology=more_room)
    assert change.policy["order"].order == ["b3", "b2", "b1", "c1"]


def test_of_arc_the_lists_and_the_target_are_told() -> None:
    change = change_by_last(*STORED, "{op: touch, id: r1, blocks: [b1]}", topology=ARC)
    assert change.policy == {"t1": ListChange([], ["b1"], None), "t2": ListChange(["b1"], [], None)}
    evicted = ("{op: store, id: r1, blocks: [b3, b4]}", "{op: request, id: r2}", "{op: store, id: r2, blocks: [b1]}")
    assert change_by_last(*STORED, *evicted, topology=ARC).target == (0.0, 1.0)
