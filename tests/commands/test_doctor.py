"""`kvtier doctor`, as its users see it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from kvtier_cli.commands.installation import PACKAGES, check_package
from kvtier_cli.errors import ExitStatus
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.checks import check_workspace
from tests.conftest import CHECKOUT, RunsKvtier
from tests.tiering.disk_tampering import execute
from tests.workspace.in_process import run_here
from tests.workspace.spaces import filled


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


def test_a_sound_workspace_is_well(kvtier: RunsKvtier, tmp_path: Path) -> None:
    filled(tmp_path, [[0, 1, 2]])
    ran = kvtier("doctor", "--workspace", "space", cwd=tmp_path)
    assert (ran.stderr, ran.status) == ("", 0)
    assert ran.stdout.startswith("all is well; workspace space\n")
    assert "  ok     store nvme    3 blocks, all as they were written\n" in ran.stdout
    found = json.loads(kvtier("doctor", "--workspace", "space", "--json", cwd=tmp_path).stdout)
    assert (found["schema"], found["ok"], found["workspace"]) == ("kvtier.doctor/1", True, "space")
    assert {"kvtier", "python", "sqlite", "diskcache", "state", "topology", "store s3"} <= {
        check["name"] for check in found["checks"]
    }


def test_without_a_workspace_the_installation_is_checked(kvtier: RunsKvtier, tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    ran = kvtier("doctor", cwd=tmp_path, env=env)
    assert (ran.stdout.splitlines()[0], ran.stderr, ran.status) == ("all is well; no workspace was found", "", 0)
    assert kvtier("doctor", "--workspace", "gone", cwd=tmp_path).status == ExitStatus.INPUT


def test_damage_is_told_and_mended(kvtier: RunsKvtier, tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    execute(space / "tiers" / "s3", "UPDATE Cache SET value = zeroblob(84) WHERE key LIKE '1:%'")
    ran = kvtier("doctor", cwd=tmp_path, env={"KVTIER_WORKSPACE": "space"})
    assert (ran.stderr, ran.status) == ("", ExitStatus.NO)
    assert "found something wrong; workspace space" in ran.stdout
    assert "  wrong  store s3" in ran.stdout
    assert "kvtier doctor --repair mends" in ran.stdout
    found = json.loads(kvtier("doctor", "--json", "--workspace", str(space)).stdout)
    [check] = [check for check in found["checks"] if not check["ok"]]
    assert check["name"] == "store s3"
    assert check["found"].startswith("1:")
    mended = kvtier("doctor", "--repair", "--workspace", str(space))
    assert (mended.status, "mended" in mended.stdout) == (0, True)
    assert kvtier("doctor", "--workspace", str(space)).status == 0


def test_what_it_shows_of_a_damaged_store_is_inert_and_fits(kvtier: RunsKvtier, tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    execute(
        space / "tiers" / "s3",
        "UPDATE Cache SET value = 'x', key = ? WHERE key LIKE '1:%'",
        "\x1b[31m[red]" + "x" * 300,
    )
    ran = kvtier("doctor", cwd=tmp_path, env={"KVTIER_WORKSPACE": "space", "COLUMNS": "60"})
    assert ran.status == ExitStatus.NO
    assert "\x1b" not in ran.stdout
    assert "\\x1b[31m[red]" in ran.stdout


def test_a_workspace_in_use_is_not_checked(kvtier: RunsKvtier, tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    with open_workspace(space, command="kvtier dash"):
        assert kvtier("doctor", "--workspace", str(space)).status == 0, "it may be read by several"
        ran = kvtier("doctor", "--repair", "--lock-timeout", "0", "--workspace", str(space))
    assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
    assert "in use by `kvtier dash`" in ran.stderr


def test_those_who_read_it_are_named_and_those_who_were_killed_forgotten(tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    with open_workspace(space, command="kvtier load"):
        [name] = (space / "holders").iterdir()
        (space / "holders" / "4121-9").write_bytes(name.read_bytes())
        [lock] = [check for check in check_workspace(space, repair=False, lock_timeout=1) if check.name == "lock"]
        assert (lock.found, lock.repair) == ("nobody else has it", ""), "this process does not count"
        [lock] = [check for check in check_workspace(space, repair=True, lock_timeout=1) if check.name == "lock"]
        assert lock.repair == "forgot 1 that were killed"


def test_the_packages_it_looks_for_are_those_that_kvtier_declares() -> None:
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert list(PACKAGES) == declared


@pytest.mark.parametrize(
    ("requirement", "ok", "found"),
    [
        ("pytest>=9", True, None),
        ("pytest>=9.0,<10", True, None),
        ("pytest<9", False, ", expected <9"),
        ("pytest>=1000", False, ", expected >=1000"),
        ("no-such-package-of-ours>=1", False, "is not installed"),
    ],
)
def test_versions_are_compared_as_numbers(requirement: str, ok: bool, found: str | None) -> None:
    check = check_package(requirement)
    assert check.ok is ok
    if found is not None:
        assert check.found.endswith(found)
        assert check.repair == f"pip install '{requirement}'"
