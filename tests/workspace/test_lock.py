"""One writer or many readers, and who it is that one has to wait for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.found import make_workspace
from kvtier_cli.workspace.lock import Holder, WorkspaceLock, forget_the_dead, holders, timeout_of
from tests.conftest import python_environment
from tests.workspace.spaces import topology

HOLD = """
import sys, time
from pathlib import Path
from kvtier_cli.workspace.lock import WorkspaceLock
lock = WorkspaceLock(Path(sys.argv[1]), write=True, command="kvtier load")
print("mine", flush=True)
time.sleep(60)
"""


@pytest.fixture
def space(tmp_path: Path) -> Path:
    make_workspace(tmp_path / "space", topology())
    return tmp_path / "space"


@pytest.mark.parametrize("write", [True, False])
def test_nobody_gets_in_beside_a_writer_and_is_told_who_that_is(space: Path, write: bool) -> None:
    with (
        open_workspace(space, write=True, command="kvtier load"),
        pytest.raises(EnvironmentFault) as raised,
    ):
        open_workspace(space, write=write, lock_timeout=0)
    said = str(raised.value)
    assert said.startswith(f"the workspace {space} is in use by `kvtier load` (pid {os.getpid()}, since ")
    assert "--workspace" in str(raised.value.hint)


def test_readers_share_it_and_a_writer_waits_for_them(space: Path) -> None:
    with open_workspace(space, command="kvtier dash"), open_workspace(space, command="kvtier lookup"):
        with pytest.raises(EnvironmentFault, match=r"is in use by `kvtier dash` .* and 1 more"):
            open_workspace(space, write=True, lock_timeout=0)
        assert [holder.command for holder in holders(space)] == ["kvtier dash", "kvtier lookup"]
    assert holders(space) == []
    open_workspace(space, write=True).close()


def test_who_waits_gets_in_when_the_other_has_ended(space: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("60", "0.3"), str(space)], stdout=subprocess.PIPE, env=python_environment()
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        open_workspace(space, write=True, lock_timeout=60).close()


def test_who_was_killed_has_nothing_any_more(space: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(space)], stdout=subprocess.PIPE, env=python_environment()
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert [holder.pid for holder in holders(space)] == [other.pid]
        other.send_signal(signal.SIGKILL)
    assert holders(space) == []
    open_workspace(space, write=True, lock_timeout=0).close()
    assert forget_the_dead(space) == 1
    assert list((space / "holders").iterdir()) == []


def test_a_lock_that_fails_leaves_no_name_behind(space: Path) -> None:
    with WorkspaceLock(space, write=True, command="one").held():
        with pytest.raises(EnvironmentFault):
            WorkspaceLock(space, write=True, command="two", timeout=0)
        assert [holder.command for holder in holders(space)] == ["one"]


def test_a_name_that_somebody_made_up_is_nobody_s(space: Path) -> None:
    (space / "holders").mkdir(exist_ok=True)
    (space / "holders" / "1-1").write_text("1 0 kvtier \x1b[31mdash")
    (space / "holders" / "link").symlink_to("/etc/passwd")
    assert holders(space) == []
    with open_workspace(space, write=True):
        assert len(holders(space)) == 1


def test_the_holder_s_beginning_has_its_day_when_that_is_another_one() -> None:
    assert Holder("kvtier dash", 4121, 0).words().startswith("`kvtier dash` (pid 4121, since 19")


def test_the_lock_is_no_link_that_leads_elsewhere(space: Path, tmp_path: Path) -> None:
    (space / "lock").unlink()
    (space / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        open_workspace(space, write=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_timeout_is_a_time(space: Path) -> None:
    assert (timeout_of("0"), timeout_of("500ms"), timeout_of("2s")) == (0, 0.5, 2)
    with pytest.raises(InputError, match=r"^--lock-timeout: "):
        timeout_of("soon")
