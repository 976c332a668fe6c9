"""Whole traces, through the command line, give the figures that vLLM 0.33's manager gave under the same loop."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RECORDINGS, RunsKvtier

TRACES = ("conversation_trace", "synthetic_trace")
TELLING = (
    ("conversation_trace", "default"),
    ("conversation_trace", "local-only"),  # a filter that costs hits
    ("conversation_trace", "tiny-primary"),  # stores refused, promotions denied
    ("synthetic_trace", "tiny-primary-arc-batched"),  # requests that give up
    ("synthetic_trace", "retrying-tiers"),
    ("synthetic_trace", "full-blocks-only"),
)
RUNS = (
    *("default", "local-only", "remote-only", "deny-all", "cpu-only", "invalid-means-all"),
    *("arc", "small-primary", "small-primary-arc", "slow-tiers", "batched-stores", "full-blocks-only"),
    *("tiny-primary", "tiny-primary-arc-batched", "retrying-tiers"),
)


@cache
def recorded(trace: str) -> Any:
    return json.loads((RECORDINGS / "replay" / f"{trace}.json").read_text(encoding="utf-8"))


def unequal(theirs: Mapping[str, Any], ours: Mapping[str, Any], inside: str = "") -> Iterator[str]:
    """Figures that the recording names and that came out otherwise. A tier that a map leaves out is 0 there."""
    for name, figure in theirs.items():
        here = ours.get(name, 0 if inside else None)
        if isinstance(figure, dict):
            yield from unequal(figure, here if isinstance(here, dict) else {}, f"{inside}{name}.")
            if isinstance(here, dict):
                yield from (f"{name}.{more}: vLLM 0, here {here[more]}" for more in here.keys() - figure if here[more])
        elif figure != here or isinstance(here, bool):
            yield f"{inside}{name}: vLLM {figure}, here {here}"


def check(kvtier: RunsKvtier, recordings: Path, tmp_path: Path, trace: str, run: str) -> None:
    file = recordings.parent / "data" / "mooncake" / f"{trace}.jsonl"
    if not file.is_file():
        pytest.skip(f"the public trace {file.name} is not beside the recordings")
    recording = recorded(trace)["runs"][run]
    topology = tmp_path / "topology.json"
    topology.write_text(json.dumps(recording["topology"]), encoding="utf-8")
    tiers = ["--tiers", json.dumps(recording["kv_load_tiers"])] if "kv_load_tiers" in recording else []
    ran = kvtier("replay", str(file), "--topology", str(topology), *tiers, "--json")
    assert (ran.status, ran.stdout != "") == (0, True), ran.stderr
    figures = json.loads(ran.stdout)["figures"]
    assert list(unequal(recording["figures"], figures)) == []
    outcomes = figures["outcomes"]
    assert sum(outcomes.values()) == figures["blocks"]
    assert outcomes["primary"] + outcomes["promoted"] == figures["blocks_loaded"]
    assert tiers or outcomes["filtered"] == 0


@pytest.mark.parametrize(("trace", "run"), TELLING)
def test_the_figures_of_a_whole_trace(
    kvtier: RunsKvtier, recordings: Path, tmp_path: Path, trace: str, run: str
) -> None:
    check(kvtier, recordings, tmp_path, trace, run)


@pytest.mark.soak
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("run", RUNS)
def test_the_figures_of_every_recorded_run(
    kvtier: RunsKvtier, recordings: Path, tmp_path: Path, trace: str, run: str
) -> None:
    check(kvtier, recordings, tmp_path, trace, run)


@pytest.mark.parametrize("trace", TRACES)
def test_no_recorded_run_is_left_out(recordings: Path, trace: str) -> None:
    assert set(recorded(trace)["runs"]) == set(RUNS)


@pytest.mark.parametrize(
    ("ours", "noticed"),
    [
        ({"blocks": 7, "promoted_by_tier": {"nvme": 3}}, []),
        ({"blocks": 7, "promoted_by_tier": {"nvme": 3, "s3": 0}, "outcomes": {"absent": 4}}, []),
        ({"blocks": 8, "promoted_by_tier": {"nvme": 3}}, ["blocks: vLLM 7, here 8"]),
        ({"promoted_by_tier": {"nvme": 3}}, ["blocks: vLLM 7, here None"]),
        ({"blocks": 7, "promoted_by_tier": {}}, ["promoted_by_tier.nvme: vLLM 3, here 0"]),
        ({"blocks": 7}, ["promoted_by_tier.nvme: vLLM 3, here 0"]),
        ({"blocks": 7, "promoted_by_tier": {"nvme": 3, "more": 1}}, ["promoted_by_tier.more: vLLM 0, here 1"]),
    ],
)
def test_another_figure_is_noticed(ours: dict[str, Any], noticed: list[str]) -> None:
    assert list(unequal({"blocks": 7, "promoted_by_tier": {"nvme": 3, "s3": 0}}, ours)) == noticed
