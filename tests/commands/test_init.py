"""`kvtier init`, as its users see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.tiering.topology_file import read_topology_text
from tests.conftest import Ran, RunsKvtier
from tests.workspace.in_process import run_here


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


def test_without_options_it_makes_one_here_with_the_built_in_tiers(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = kvtier("init", cwd=tmp_path)
    assert ran == Ran(
        "made .kvtier with the tiers of built-in topology\n",
        "note: its tiers are in .kvtier/kvtier.toml; fill them with kvtier load FILE\n",
        0,
    )
    assert read_topology_text((tmp_path / ".kvtier" / "kvtier.toml").read_text(), BUILT_IN.name) == BUILT_IN
    again = kvtier("init", cwd=tmp_path)
    assert (again.stdout, again.status) == ("", 2)
    assert again.stderr.startswith("error: there is a workspace in .kvtier already\n")


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_folder_and_the_topology_can_be_named(kvtier: RunsKvtier, tmp_path: Path, by_variable: bool) -> None:
    place = str(tmp_path / "a" / "b")
    one = '{"tiers": [{"name": "only", "medium": "storage", "offline": true}]}'
    args = [] if by_variable else ["--workspace", place, "--topology", one]
    env = {"KVTIER_WORKSPACE": place, "KVTIER_TOPOLOGY": one} if by_variable else {}
    ran = kvtier("init", "--json", *args, env=env)
    found = json.loads(ran.stdout)
    assert (ran.stderr, ran.status) == ("", 0)
    assert (found["schema"], found["workspace"], found["tiers"]) == ("kvtier.init/1", place, ["only"])
    assert kvtier("tiers", *args[:2], env=env).status == 0


def test_a_topology_that_is_wrong_makes_nothing(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = kvtier("init", "--topology", '{"tiers": [{"name": "cpu"}]}', cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert list(tmp_path.iterdir()) == []
