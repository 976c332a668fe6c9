"""Where a trace may come from, and what is turned away before a line is read."""

from __future__ import annotations

import errno
import gzip
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
    ("content", "kind", "command"),
    [
        (gzip.compress(TEXT), "gzip", "gzip -dc"),
        (gzip.compress(TEXT)[:12], "gzip", "gzip -dc"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd", "zstd -dc"),
        (b"PK\x03\x04" + bytes(20), "zip", "unzip -p"),
    ],
    ids=["gzip", "cut gzip", "zstd", "zip"],
)
def test_a_compressed_trace_is_told_by_its_bytes_not_its_name(
    content: bytes, kind: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"is compressed \({kind}\)") as caught:
        TraceSource(path)
    assert caught.value.hint is not None
    assert command in caught.value.hint


def test_binary_junk_is_turned_away(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00")
    with pytest.raises(InputError, match="is binary data, not text"):
        TraceSource(path)


def test_utf16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(TEXT.decode(), encoding="utf-16")
    with pytest.raises(InputError, match="is UTF-16 text; expected UTF-8"):
        TraceSource(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_binary_device_ends() -> None:
    with pytest.raises(InputError, match="is binary data, not text"):
        TraceSource("/dev/zero")


def test_no_room_for_the_copy_of_stdin_is_a_fault_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(TEXT))
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    with pytest.raises(EnvironmentFault, match="stdin cannot be copied to a temporary file"):
        TraceSource("-")
