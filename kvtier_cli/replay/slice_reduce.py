"""Smaller states from which one request may come to the same outcomes, the smallest first and the whole one last.

A block that is cut takes its slot with it: the tier's capacity shrinks by one, so that it is as full as before. Where
nothing of the others is kept, the capacities stay, and nothing is evicted at all. Whether a reduction does is for
`slice.py` to try out; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology

_ALL: Final = -1


@dataclass(frozen=True, slots=True)
class Reduced:
    """A state (as `raw_state` has it) and its topology; `cut`: tier → how many blocks were left out;
    `shrunk` says whether capacities were made smaller by as many."""

    state: dict[str, Any]
    topology: Topology
    cut: Mapping[str, int]
    shrunk: bool


def reductions(state: Mapping[str, Any], topology: Topology, keys: Sequence[BlockKey]) -> Iterator[Reduced]:
    """States with the blocks `keys` and fewer and more of the others: those that would be evicted first, and those that
    something is on its way with."""
    own = set(keys)
    few, many = len(own), 4 * len(own) + 16
    for primary, tiers, busy in (
        (0, 0, False),
        (0, 0, True),
        (few, 0, True),
        (few, few, True),
        (many, few, True),
        (many, many, True),
        (_ALL, 0, True),
        (_ALL, many, True),
        (_ALL, _ALL, True),
    ):
        yield _reduced(state, topology, own, primary, tiers, busy=busy)


def _reduced(
    state: Mapping[str, Any], topology: Topology, own: set[BlockKey], primary: int, tiers: int, *, busy: bool
) -> Reduced:
    moving = {key for key, pins in state["blocks"].items() if pins != 0} if busy else set()
    for waiting in state["waiting"] if busy else ():
        moving.update(key for blocks in waiting["parked"].values() for key in blocks)
    kept_always = own | moving
    policy, kept = _reduced_policy(state["policy"], kept_always, primary, topology.primary.capacity)
    cut = {PRIMARY_NAME: len(state["blocks"]) - len(kept)}
    capacity = topology.primary.capacity - (cut[PRIMARY_NAME] if primary else 0)
    if "target" in policy:
        policy["target"] = min(policy["target"], capacity)
        for ghosts in ("b1", "b2"):
            policy[ghosts] = policy[ghosts][max(0, len(policy[ghosts]) - capacity) :]
    blocks = {key: pins for key, pins in state["blocks"].items() if key in kept}
    specs = []
    held: dict[str, list[BlockKey]] = {}
    for spec in topology.tiers:
        before = state["tiers"][spec.name]
        held[spec.name] = _first(before, kept_always, tiers)
        cut[spec.name] = len(before) - len(held[spec.name])
        room = spec.capacity if spec.capacity is None or not tiers else spec.capacity - cut[spec.name]
        specs.append(replace(spec, capacity=room))
    jobs = [job for job in (_restricted(job, kept) for job in state["jobs"]) if job["blocks"]]
    if not busy:
        blocks = _with_pins(blocks, jobs)
    waiting = state["waiting"] if busy else []
    return Reduced(
        {
            "blocks": blocks,
            "policy": policy,
            "tiers": held,
            "jobs": jobs,
            "queued": [entry for entry in (_restricted(entry, kept) for entry in state["queued"]) if entry["blocks"]],
            "live": [],
            "held": state["held"],
            "waiting": waiting,
            "retries": state["retries"] if busy else {},
            "draws": state["draws"],
        },
        replace(topology, primary=replace(topology.primary, capacity=capacity), tiers=tuple(specs)),
        cut,
        bool(primary or tiers),
    )


def _reduced_policy(
    policy: Mapping[str, Any], always: set[BlockKey], count: int, capacity: int
) -> tuple[dict[str, Any], set[BlockKey]]:
    """The policy's lists with those blocks that are kept always and the first `count` others; and which these are."""
    if policy["name"] == "lru":
        order = _first(policy["order"], always, count)
        return {"name": "lru", "order": order}, set(order)
    reduced = {name: _first(policy[name], always, count) for name in ("t1", "t2")}
    # Ghosts say more by their numbers than by their names, but only where something is evicted.
    ghosts = {name: _last(policy[name], always, count) for name in ("b1", "b2")}
    target = policy["target"]
    if count:
        target = max(0.0, target - (len(policy["t1"]) - len(reduced["t1"])))
    return {"name": policy["name"], **reduced, **ghosts, "target": target}, {*reduced["t1"], *reduced["t2"]}


def _first(blocks: Sequence[BlockKey], always: set[BlockKey], count: int) -> list[BlockKey]:
    """Blocks in their order: those in `always`, and the first `count` of the others."""
    if count == _ALL:
        return list(blocks)
    kept = []
    for key in blocks:
        if key in always:
            kept.append(key)
        elif count:
            count -= 1
            kept.append(key)
    return kept


def _last(blocks: Sequence[BlockKey], always: set[BlockKey], count: int) -> list[BlockKey]:
    return _first(blocks[::-1], always, count)[::-1]


def _restricted(entry: Mapping[str, Any], kept: set[BlockKey]) -> dict[str, Any]:
    """A job with those of its blocks that are kept."""
    return {**entry, "blocks": [key for key in entry["blocks"] if key in kept]}


def _with_pins(blocks: Mapping[BlockKey, int | None], jobs: Sequence[Mapping[str, Any]]) -> dict[BlockKey, int | None]:
    """The pins that the cascades among `jobs` hold. (Blocks that are pending stay so: their promotion is kept.)"""
    pins = {key: count if count is None else 0 for key, count in blocks.items()}
    for job in jobs:
        if job["kind"] == "cascade":
            for key in job["blocks"]:
                pins[key] = (pins[key] or 0) + 1
    return pins
