"""When the machine stands in the way of a workspace: exit status 3, plain words, nothing half-written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.checks import check_workspace
from kvtier_cli.workspace.found import make_workspace
from tests.conftest import Ran, RunsKvtier, python_environment
from tests.workspace.spaces import files_of, filled, topology, trace

NOBODY = 65534


def restricted(before: str, *args: str) -> Ran:
    """`kvtier` in a process that runs `before` when it has loaded what it needs."""
    lines = [
        "import encodings.utf_8_sig, importlib.metadata, os, resource, sys, urllib.parse, zlib, _strptime",
        "import kvtier_cli.commands.installation, kvtier_cli.render.doctor_view, email.message",
        "import kvtier_cli.commands.lazy, kvtier_cli.commands.load, kvtier_cli.commands.replay",
        "import kvtier_cli.commands.tiers, kvtier_cli.commands.blocks, kvtier_cli.commands.doctor",
        "import kvtier_cli.render.replay_view, kvtier_cli.render.tiers_view, kvtier_cli.render.blocks_view",
        "import kvtier_cli.tiering.stores.raw_disk, kvtier_cli.tiering.stores.disk, kvtier_cli.tiering.topology_file",
        "import kvtier_cli.tiering.stores.disk_check, kvtier_cli.workspace.stored_blocks, kvtier_cli.render.progress",
        "import kvtier_cli.traces.detect, kvtier_cli.traces.source, kvtier_cli.workspace.checks, tomllib, difflib",
        "import kvtier_cli.tiering.topology_checks, kvtier_cli.units, kvtier_cli.tiering.json_text",
        "from kvtier_cli.main import main",
        "importlib.metadata.version('typer')",
        before,
        "sys.exit(main(sys.argv[1:]))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *args],
        capture_output=True,
        text=True,
        env=python_environment(),
        timeout=120,
        check=False,
    )
    return Ran(done.stdout, done.stderr, done.returncode)


def assert_sound(space: Path) -> None:
    assert [check for check in check_workspace(space, repair=False, lock_timeout=1) if not check.ok] == []


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True, capture_output=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True, timeout=60)


def test_a_load_that_fills_the_disk_keeps_what_it_had(kvtier: RunsKvtier, small_disk: Path, tmp_path: Path) -> None:
    space = small_disk / "space"
    make_workspace(space, topology(primary=8))
    file = trace(tmp_path / "t.jsonl", [range(at, at + 8) for at in range(0, 16_000, 8)])
    ran = kvtier("load", str(file), "--workspace", str(space))
    assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
    first, second = ran.stderr.splitlines()
    assert first.startswith("error: the store ")
    assert first.endswith(" is on a full disk")
    assert "Make room" in second
    assert_sound(space)
    with open_workspace(space) as opened:
        assert all(tier.size() for tier in opened.tiers)
        for tier in opened.tiers:
            assert tier.store.read(list(tier.blocks())) == {}


def test_a_state_that_does_not_fit_leaves_the_one_before(kvtier: RunsKvtier, small_disk: Path) -> None:
    space = small_disk / "space"
    make_workspace(space, topology())
    before = files_of(space)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(2**21))
    ran = kvtier("tiers", "set", "s3", "--offline", "--workspace", str(space))
    assert ran == Ran(
        "",
        f"error: the workspace {space} cannot be written: the disk is full\n       Make room, then run it again.\n",
        ExitStatus.ENVIRONMENT,
    )
    assert files_of(space) == before


# No right to write


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A workspace that anybody may read and nobody may write, where others than its owner can get to."""
    with tempfile.TemporaryDirectory(prefix="kvtier-tests-") as name:
        folder = Path(name)
        space = filled(folder, [[0, 1, 2], [3]], topology())
        inside = [folder, *folder.rglob("*")]
        for path in inside:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield space
        for path in inside:
            path.chmod(0o755)


GIVE_UP_RIGHTS = f"os.geteuid() or os.setuid({NOBODY})"


@pytest.mark.parametrize("command", [["tiers"], ["blocks"]])
def test_a_workspace_that_one_may_not_write_can_be_read(read_only: Path, command: list[str]) -> None:
    ran = restricted(GIVE_UP_RIGHTS, *command, "--workspace", str(read_only))
    assert (ran.stderr, ran.status) == ("", 0)
    assert "nvme" in ran.stdout


@pytest.mark.parametrize(
    "command", [["load", "t.jsonl"], ["tiers", "set", "s3", "--offline"], ["doctor", "--repair"]], ids=" ".join
)
def test_and_what_would_write_it_is_refused(read_only: Path, command: list[str]) -> None:
    command = [str(read_only.parent / "trace.jsonl") if word == "t.jsonl" else word for word in command]
    ran = restricted(GIVE_UP_RIGHTS, *command, "--workspace", str(read_only))
    assert ran == Ran(
        "",
        f"error: the workspace {read_only} cannot be written: permission denied\n       Check who owns the folder.\n",
        ExitStatus.ENVIRONMENT,
    )


def test_a_workspace_that_one_may_not_even_read(read_only: Path) -> None:
    read_only.chmod(0)
    ran = restricted(GIVE_UP_RIGHTS, "tiers", "--workspace", str(read_only))
    assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
    assert f"error: the workspace {read_only} cannot be read: permission denied" in ran.stderr


def test_one_is_not_made_where_one_may_not_write(read_only: Path) -> None:
    ran = restricted(GIVE_UP_RIGHTS, "init", "--workspace", str(read_only.parent / "new"))
    assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
    assert f"error: the workspace {read_only.parent / 'new'} cannot be made: permission denied" in ran.stderr


# Others


def test_a_store_that_another_program_has_locked(kvtier: RunsKvtier, tmp_path: Path) -> None:
    space = filled(tmp_path, [[0, 1, 2]])
    file = trace(tmp_path / "more.jsonl", [[5, 6]])
    with closing(sqlite3.connect(space / "tiers" / "s3" / "cache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = kvtier("load", str(file), "--workspace", str(space), "--lock-timeout", "100ms")
    assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
    assert f"error: the store {space / 'tiers' / 's3'} is locked by another process" in ran.stderr
    assert_sound(space)
    assert kvtier("load", str(file), "--workspace", str(space)).status == 0


@pytest.mark.parametrize(
    ("command", "handles"), [*((["load"], handles) for handles in (0, 2, 4, 5, 7)), (["tiers"], 0), (["tiers"], 2)]
)
def test_without_file_handles_the_reason_is_said(tmp_path: Path, command: list[str], handles: int) -> None:
    """With so many more than the process has anyway, whatever it needs the next one for."""
    space = filled(tmp_path, [[0, 1, 2]])
    before = files_of(space)
    file = trace(tmp_path / "more.jsonl", [[5, 6]])
    limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, (3 + {handles}, 3 + {handles}))"
    args = [*command, *([str(file)] if command == ["load"] else []), "--workspace", str(space)]
    ran = restricted(limit, *args)
    if ran.status == 0:
        assert handles > 2, "it needs some"
        return
    assert ran.stdout == ""
    assert ran.status == ExitStatus.ENVIRONMENT, ran.stderr
    assert "too many" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert_sound(space)
    if command == ["tiers"]:
        assert files_of(space) == before
