"""`kvtier lookup` in the workspace: a what-if, unless it is told to commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunsKvtier
from tests.workspace.in_process import run_here
from tests.workspace.spaces import filled, topology


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


@pytest.fixture
def space(tmp_path: Path) -> str:
    """The CPU tier has 10, 2 behind it, and 9; nvme these and the 3 behind them; s3 has everything, 1 too. 2 and 3
    stand for two blocks each."""
    return str(filled(tmp_path, [[1, 2, 3], [10, 2, 3], [9]], topology(primary=3, nvme=4)))


def looked_up(kvtier: RunsKvtier, space: str, *args: str) -> dict[str, Any]:
    ran = kvtier("lookup", "--json", "--workspace", space, *args)
    assert (ran.stderr, ran.status) == ("", 0)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def outcomes(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(block["outcome"], block["tier"]) for block in found["blocks"]]


def test_the_filter_decides_which_of_its_tiers_may_serve(kvtier: RunsKvtier, space: str) -> None:
    assert outcomes(looked_up(kvtier, space, "1")) == [("promoted", "s3")]
    assert outcomes(looked_up(kvtier, space, "1", "--tiers", "storage:local")) == [("filtered", "s3")]
    found = looked_up(kvtier, space, "9", "77")
    assert [outcome for outcome, _ in outcomes(found)] == ["primary", "absent"]
    assert (found["workspace"], found["trace"], found["unknown"]) == (space, None, ["77"])


def test_a_second_lookup_shows_that_the_first_changed_nothing(kvtier: RunsKvtier, space: str) -> None:
    before = kvtier("tiers", "--json", "--workspace", space).stdout
    first = kvtier("lookup", "1", "10", "--workspace", space)
    assert kvtier("lookup", "1", "10", "--workspace", space) == first
    assert kvtier("tiers", "--json", "--workspace", space).stdout == before


def test_with_commit_a_promoted_block_is_a_primary_hit_next_time(kvtier: RunsKvtier, space: str) -> None:
    assert outcomes(looked_up(kvtier, space, "1", "--commit")) == [("promoted", "s3")]
    assert outcomes(looked_up(kvtier, space, "1")) == [("primary", None)]
    assert outcomes(looked_up(kvtier, space, "10")) == [("primary", None)]
    [held] = [match for match in looked_up(kvtier, space, "2")["ambiguous"]["2"] if "nvme" in match["holders"]]
    assert held["holders"] == ["nvme", "s3"]  # the least recent block of the primary had to go for it


def test_a_commit_stores_nothing_that_was_not_there(kvtier: RunsKvtier, space: str) -> None:
    looked_up(kvtier, space, "77", "--commit")
    assert outcomes(looked_up(kvtier, space, "77")) == [("absent", None)]


def test_a_label_of_several_blocks_lists_them_with_who_holds_them(kvtier: RunsKvtier, space: str) -> None:
    ran = kvtier("lookup", "2", "--workspace", space)
    assert " ".join(ran.stdout.split()).startswith(f"2 stands for 2 blocks of {space}")
    matches = looked_up(kvtier, space, "2")["ambiguous"]["2"]
    assert sorted(tuple(match["holders"]) for match in matches) == [("cpu", "nvme", "s3"), ("s3",)]
    by_holders = {tuple(match["holders"]): match["name"] for match in matches}
    assert outcomes(looked_up(kvtier, space, by_holders["s3",])) == [("promoted", "s3")]


def test_a_fault_on_demand_shows(kvtier: RunsKvtier, space: str) -> None:
    kvtier("tiers", "set", "s3", "--offline", "--workspace", space)
    ran = kvtier("lookup", "1", "--workspace", space)
    assert "warning: s3 has a fault on demand: it is offline\n" in ran.stderr
    assert "s3 holds it, but is offline" in ran.stdout


def test_where_losses_are_not_remembered_that_is_said(kvtier: RunsKvtier, tmp_path: Path) -> None:
    space = str(filled(tmp_path, [[1]], topology(nvme=4, s3=4)))
    assert "not remembered" in kvtier("lookup", "77", "--workspace", space).stderr
    assert looked_up(kvtier, space, "1")["warnings"]


def test_two_may_look_at_once_but_a_commit_needs_the_workspace_alone(kvtier: RunsKvtier, space: str) -> None:
    from kvtier_cli.workspace import open_workspace

    with open_workspace(Path(space), write=False, command="kvtier dash", lock_timeout=0):
        assert kvtier("lookup", "9", "--workspace", space).status == 0
        refused = kvtier("lookup", "9", "--commit", "--lock-timeout", "0", "--workspace", space)
    assert (refused.stdout, refused.status) == ("", 3)
    assert "in use by `kvtier dash`" in refused.stderr
