"""Every scenario recorded from vLLM 0.33's manager comes out the same, op by op and field by field."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.replay.life import BlockLife
from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.replay.outcomes import BlockHistory
from kvtier_cli.replay.placements import Placements
from kvtier_cli.replay.story_recorder import StoryRecorder
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from tests.conformance.backends import BACKENDS, SLOW, MakeStore
from tests.conformance.corpus import HERE, SETS, Difference, Scenario, first_difference, paths, read, runner
from tests.tiering.naive_manager import NaiveManager

SHIPPED = [path for name in SETS for path in paths(HERE / name)]

OUTCOME_FIELDS = (
    *("op", "filter", "warnings", "offload_policy"),
    *("result", "verdicts", "promotion", "denied", "evicted", "source"),
    *("stored", "blocks", "success", "loaded", "sources"),
    *("completed", "tier_finished", "events"),
)
STATE_FIELDS = ("blocks", "policy", "free", "evictable", "tiers", "jobs", "queued", "pending_work", "live")


def difference(scenario: Scenario, make_store: MakeStore, folder: Path) -> Difference | None:
    with runner(scenario.topology, make_store, folder) as ops:
        return first_difference(scenario, ops)


def told(difference: Difference | None) -> str:
    return "" if difference is None else str(difference)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_comes_out_as_vllm_did_it(path: Path, backend: str, tmp_path: Path) -> None:
    assert told(difference(read(path), BACKENDS[backend], tmp_path)) == ""


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.soak] * (name in SLOW)) for name in BACKENDS]
)
@pytest.mark.parametrize("name", ["scenarios", "scenarios-extended"])
def test_so_do_all_the_others_where_they_are(name: str, backend: str, recordings: Path, tmp_path: Path) -> None:
    shipped = {path.name for path in SHIPPED if path.parent.name == name}
    others = [path for path in paths(recordings / name) if path.name not in shipped]
    assert others
    different = []
    for path in others:
        folder = tmp_path / path.stem
        folder.mkdir()
        different.append(told(difference(read(path), BACKENDS[backend], folder)))
    assert [words for words in different if words] == []


def explainers(manager: TieringManager) -> Observer:
    """All that `kvtier explain` listens with, asked about all blocks."""
    history, names = BlockHistory(), [f"b{block}{group}" for block in range(40) for group in ("", "@1")]
    recorder = StoryRecorder(manager, 10_000)
    return ObserverGroup([history, Placements(manager), BlockLife(manager, history, names), recorder])


def unobserved_difference(scenario: Scenario) -> str:
    """Where the states come out otherwise when nobody hears of the decisions, or only those do who sum up outcomes, or
    who explain."""
    for hears in (lambda _: None, lambda _: BlockHistory(), explainers):
        ops = OpRunner(scenario.topology)
        ops.manager.observe(hears(ops.manager))
        for index, (op, recorded) in enumerate(zip(scenario.ops, scenario.outcomes, strict=True)):
            ops.run(op)
            if ops.state() != recorded["state"]:
                return f"{scenario.name}, op {index}: {op}"
    return ""


def test_who_hears_of_the_decisions_changes_none_of_them() -> None:
    assert [words for scenario in shipped_scenarios() if (words := unobserved_difference(scenario))] == []


@pytest.mark.parametrize("name", ["scenarios", "scenarios-extended"])
def test_nor_does_it_in_all_the_others_where_they_are(name: str, recordings: Path) -> None:
    different = [unobserved_difference(read(path)) for path in paths(recordings / name)]
    assert different
    assert [words for words in different if words] == []


@cache
def shipped_scenarios() -> list[Scenario]:
    return [read(path) for path in SHIPPED]


@pytest.mark.parametrize("scenario_set", SETS)
def test_the_naive_manager_of_the_property_tests_does_the_same(scenario_set: str) -> None:
    for scenario in shipped_scenarios():
        if scenario.name.startswith(f"{scenario_set}/"):
            naive = NaiveManager(scenario.topology)
            for index, (op, recorded) in enumerate(zip(scenario.ops, scenario.outcomes, strict=True)):
                assert naive.run(op) == recorded, f"{scenario.name}, op {index}: {op}"


# That the above can fail


def test_the_shipped_part_is_large_enough_to_mean_something() -> None:
    of_set = {name: [path for path in SHIPPED if path.parent.name == name] for name in SETS}
    assert len(of_set["scenarios"]) >= 60
    assert len(of_set["scenarios-extended"]) >= 40
    assert len(of_set["fuzzed"]) >= 100
    assert sum(path.stat().st_size for path in SHIPPED) < 4_000_000


def telling(scenario: Scenario, field: str) -> Iterator[tuple[int, Any]]:
    """The ops of a scenario whose outcome says something in this field, with what it says."""
    for index, outcome in enumerate(scenario.outcomes):
        where: Any = outcome["state"] if field.startswith("state.") else outcome
        value = where.get(field.removeprefix("state."))
        if value not in (None, [], {}):
            yield index, value


def falsify(value: Any) -> Any:
    """Another value of the same type; of a list the same members in another order, if it has two that differ."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"not {value}"
        case list():
            return value[::-1] if value != value[::-1] else [*value, "another"]
        case dict():
            last = list(value)[-1]
            return {**value, last: falsify(value[last])}
        case _:
            return "something"


@pytest.mark.parametrize("field", [*OUTCOME_FIELDS, *(f"state.{name}" for name in STATE_FIELDS)])
def test_a_falsified_recording_is_noticed(field: str, tmp_path: Path) -> None:
    scenario, (index, value) = next(
        (scenario, found) for scenario in shipped_scenarios() for found in telling(scenario, field)
    )
    outcomes = copy.deepcopy(list(scenario.outcomes))
    where = outcomes[index]["state"] if field.startswith("state.") else outcomes[index]
    where[field.removeprefix("state.")] = falsify(value)  # type: ignore[index]
    noticed = difference(replace(scenario, outcomes=outcomes), BACKENDS["memory"], tmp_path)
    assert noticed is not None
    assert noticed.index == index
    assert noticed.path.startswith(field)
    assert noticed.recorded != noticed.ours


def test_a_field_too_many_is_noticed(tmp_path: Path) -> None:
    scenario = shipped_scenarios()[0]
    outcomes = [{**outcome, "more": None} for outcome in scenario.outcomes]
    noticed = difference(replace(scenario, outcomes=outcomes), BACKENDS["memory"], tmp_path)
    assert told(noticed).endswith("more: vLLM None, here (no such field)")
