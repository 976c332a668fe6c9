"""The recordings as scenarios, and how one is held against the manager. What they are: README.md beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_shape import topology_from_builtins
from tests.conformance.backends import MakeStore

HERE = Path(__file__).parent
SETS = ("scenarios", "scenarios-extended", "fuzzed")


@dataclass(frozen=True)
class Scenario:
    """Tiers, ops, and what vLLM's manager did in each op."""

    name: str
    topology: Topology
    ops: Sequence[Mapping[str, Any]]
    outcomes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Difference:
    """The first op of a scenario whose outcome is another one: `path` names the field."""

    scenario: str
    index: int
    op: Mapping[str, Any]
    path: str
    recorded: object
    ours: object

    def __str__(self) -> str:
        return f"{self.scenario}, op {self.index} {dict(self.op)}: {self.path}: vLLM {self.recorded}, here {self.ours}"


def paths(folder: Path) -> list[Path]:
    """The recordings in a folder."""
    return sorted(folder.glob("*.json"))


def read(path: Path) -> Scenario:
    """The scenario that was recorded in this file."""
    recording = msgspec.json.decode(path.read_bytes())
    return Scenario(
        f"{path.parent.name}/{path.stem}",
        topology_from_builtins(recording["topology"], path.name),
        recording["ops"],
        recording["outcomes"],
    )


@contextmanager
def runner(topology: Topology, make_store: MakeStore, folder: Path) -> Iterator[OpRunner]:
    """Carries out ops on a manager whose secondary tiers keep their blocks in stores of that make."""
    stores = [make_store(spec, folder) for spec in topology.tiers]
    tiers = [SecondaryTier(spec, store) for spec, store in zip(topology.tiers, stores, strict=True)]
    try:
        yield OpRunner(topology, tiers)
    finally:
        for store in stores:
            store.close()


def first_difference(scenario: Scenario, ops: OpRunner) -> Difference | None:
    """Replays the scenario until an outcome differs; None where all are the same, field by field."""
    for index, (op, recorded) in enumerate(zip(scenario.ops, scenario.outcomes, strict=True)):
        outcome = {**ops.run(op), "state": ops.state()}
        for path, theirs, ours in _unequal(recorded, outcome):
            return Difference(scenario.name, index, op, path, theirs, ours)
    return None


_NOTHING = "(no such field)"


def _unequal(recorded: Mapping[str, Any], outcome: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    for name in {**recorded, **outcome}:
        theirs, ours = recorded.get(name, _NOTHING), outcome.get(name, _NOTHING)
        if theirs == ours:
            continue
        if name == "state" and isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            yield from ((f"state.{path}", was, found) for path, was, found in _unequal(theirs, ours))
        else:
            yield name, theirs, ours
