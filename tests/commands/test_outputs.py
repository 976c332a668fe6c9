"""A file that a command writes is there whole or not at all, and what was there before stays until then."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvtier_cli.commands.outputs import output_file
from kvtier_cli.errors import EnvironmentFault, InputError


def write(path: Path, text: str) -> None:
    with output_file(str(path)) as file:
        file.write(text.encode())


def fail_halfway(path: Path, fault: BaseException) -> None:
    with output_file(str(path)) as file:
        file.write(b"half")
        raise fault


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Fault(Exception):
    """Something that goes wrong while a file is written."""


@pytest.mark.parametrize("before", [None, "before"])
def test_the_file_is_there_when_all_is_written_and_not_before(tmp_path: Path, before: str | None) -> None:
    out = tmp_path / "out"
    if before is not None:
        out.write_text(before)
    with output_file(str(out)) as file:
        file.write(b"half")
        file.flush()
        assert (out.read_text() if out.exists() else None) == before
        file.write(b" and half")
    assert (out.read_text(), listing(tmp_path)) == ("half and half", ["out"])


@pytest.mark.parametrize("fault", [Fault, KeyboardInterrupt])
@pytest.mark.parametrize("before", [None, "before"])
def test_what_goes_wrong_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, before: str | None, fault: type[BaseException]
) -> None:
    out = tmp_path / "out"
    if before is not None:
        out.write_text(before)
    with pytest.raises(fault):
        fail_halfway(out, fault())
    assert listing(tmp_path) == ([] if before is None else ["out"])
    assert before is None or out.read_text() == before


@pytest.fixture
def umask() -> Iterator[int]:
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_a_new_file_has_the_permissions_that_files_of_this_user_have(tmp_path: Path, umask: int) -> None:
    write(tmp_path / "out", "new")
    assert mode(tmp_path / "out") == 0o666 & ~umask
    assert os.umask(umask) == umask, "and the user's mask is as it was"


@pytest.mark.parametrize("permissions", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, permissions: int) -> None:
    out = tmp_path / "out"
    out.touch(permissions)
    out.chmod(permissions)
    write(out, "new")
    assert (out.read_text(), mode(out)) == ("new", permissions)


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_stays_one_and_the_file_it_points_to_is_written(tmp_path: Path, dangling: bool) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    if not dangling:
        file.write_text("before")
    write(link, "new")
    assert (link.is_symlink(), file.read_text(), listing(tmp_path)) == (True, "new", ["file", "link"])


def test_a_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe, "through")
    reader.join(timeout=20)
    assert heard == [b"through"]
    assert (stat.S_ISFIFO(pipe.stat().st_mode), listing(tmp_path)) == (True, ["pipe"])


def test_a_reader_that_stops_is_no_fault_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError):
        fail_halfway(tmp_path / "out", BrokenPipeError())


def test_a_dash_is_stdout_behind_what_was_printed_before(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print("first")
    with output_file("-") as file:
        file.write(b"then\xff")
    print("last")
    assert capfdbinary.readouterr().out == b"first\nthen\xfflast\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder: is a folder; expected a file to write"),
        (".", ".: is a folder; expected a file to write"),
        ("", ".: is a folder; expected a file to write"),
        ("nowhere/out", "nowhere/out: lies in no folder that there is"),
        ("file/out", "file/out: lies in no folder that there is"),
    ],
)
def test_what_cannot_be_a_file_is_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as raised, output_file(name):
        pytest.fail("it was opened")
    assert str(raised.value) == said
    assert listing(tmp_path) == ["file", "folder"]


def test_what_the_system_refuses_is_a_fault_of_the_environment(tmp_path: Path) -> None:
    name = "n" * 300
    with pytest.raises(EnvironmentFault, match=r"n: cannot be written: file name too long$"):
        write(tmp_path / name, "new")
    assert listing(tmp_path) == []


def test_a_disk_that_is_full_is_told_with_the_files_name(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"out: cannot be written: no space left on device$"):
        fail_halfway(tmp_path / "out", OSError(errno.ENOSPC, "No space left on device"))
    assert listing(tmp_path) == []
