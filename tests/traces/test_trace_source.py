"""Where a trace may come from, and what is turned away before a line is read."""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.traces.lines import BoundedLines
from kvtier_cli.traces.source import TraceSource

TEXT = b'{"input_length": 1, "hash_ids": [1]}\n'


class _Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_a_file_can_be_read_twice_and_by_two_readers_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(TEXT)
    source = TraceSource(tmp_path / "t.jsonl")
    first, second = source.open(), source.open()
    assert first.read(5) == TEXT[:5]
    assert second.read() == TEXT
    assert first.read() == TEXT[5:]
    assert (source.size, source.name) == (len(TEXT), str(tmp_path / "t.jsonl"))


def test_stdin_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(TEXT))
    source = TraceSource("-")
    assert (source.open().read(), source.open().read()) == (TEXT, TEXT)
    assert (source.size, source.name, source.path) == (len(TEXT), "stdin", None)


def test_a_pipe_can_be_read_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = TEXT * 20_000  # more than a pipe holds at a time
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    source = TraceSource(pipe)
    writer.join()
    assert (source.open().read(), source.open().read()) == (content, content)
    assert source.size == len(content)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_claims_to_be_empty_is_read_to_see() -> None:
    assert TraceSource("/proc/self/status").open().read(5) == b"Name:"


def test_what_a_writer_adds_after_the_opening_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "growing.jsonl"
    path.write_bytes(TEXT)
    source = TraceSource(path)
    with path.open("ab") as writer:
        writer.write(b'{"input_le')
    assert source.open().read() == TEXT


def test_a_file_deleted_after_the_opening_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(TEXT)
    source = TraceSource(path)
    path.unlink()
    assert source.open().read() == TEXT


def test_a_file_that_gets_shorter_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(TEXT * 3)
    source = TraceSource(path)
    os.truncate(path, len(TEXT))
    with pytest.raises(InputError, match="got shorter while it was read"):
        list(BoundedLines(source))


def test_a_stream_keeps_its_source_open_and_fails_loudly_once_that_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(TEXT)
    assert TraceSource(path).open().read() == TEXT
    with TraceSource(path) as source:
        stream = source.open()
    with pytest.raises(ValueError, match="closed"):
        stream.read()


def test_a_missing_file_is_named_with_the_nearest_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conversation_trace.jsonl").write_bytes(TEXT)
    with pytest.raises(InputError) as caught:
        TraceSource("conversation_trace.json")
    assert str(caught.value) == "conversation_trace.json: no such file"
    assert caught.value.hint == "Did you mean conversation_trace.jsonl?"


def test_a_missing_file_in_a_missing_folder_has_no_near_name() -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        TraceSource("/no/such/folder/t.jsonl")
    assert caught.value.hint is None


def test_a_directory_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory; expected a file"):
        TraceSource(tmp_path)


def test_a_file_one_may_not_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)  # file modes do not bind a test run by root
    with pytest.raises(InputError, match=r"^t\.jsonl: may not be read: permission denied$"):
        TraceSource("t.jsonl")


def test_a_disk_that_fails_while_reading_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(TEXT)
    source = TraceSource(path)

    def fail(fd: int, count: int, offset: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(InputError, match="cannot be read: input/output error"):
        list(BoundedLines(source))


def test_a_name_that_no_file_can_have_is_an_error_of_the_input() -> None:
    with pytest.raises(InputError, match="no file can have this name"):
        TraceSource("a\0b")


@pytest.mark.parametrize("path", ["-", "empty"])
def test_an_empty_input_says_so(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    monkeypatch.setattr(sys, "stdin", _Stdin(b""))
    with pytest.raises(InputError, match="is empty"):
        TraceSource(path)


def test_a_process_without_stdin_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="stdin: is closed"):
        TraceSource("-")


@pytest.mark.parametrize(
    ("magic", "kind", "command"),
    [
        (b"PK\x03\x04", "zip", "unzip -p"),
        (b"BZh9", "bzip2", "bzip2 -dc"),
        (b"\xfd7zXZ\x00", "xz", "xz -dc"),
        (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    ],
)
def test_compression_that_is_not_read_is_named_with_a_way_around(
    magic: bytes, kind: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(magic + bytes(20))
    with pytest.raises(InputError, match=rf"is compressed \({kind}\); of") as caught:
        TraceSource(path)
    assert caught.value.hint is not None
    assert command in caught.value.hint


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_binary_device_ends() -> None:
    with pytest.raises(InputError, match="is a device that gives binary data"):
        TraceSource("/dev/zero")


def test_no_room_for_the_copy_of_stdin_is_a_fault_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(TEXT))
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(EnvironmentFault, match="stdin cannot be copied to a temporary file"):
        TraceSource("-")
