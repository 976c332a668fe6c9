"""What is wrong with a `.kvlog` is one clear error: nothing in it is believed, and no damage becomes a decision."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_log import DecisionLog, open_log
from kvtier_cli.tiering.topology import PrimarySpec, Topology
from kvtier_cli.traces.logs import is_kvlog
from tests.replay.logs import as_rows, kept_log, log_bytes, write_trace
from tests.tiering.managers import NVME

TOPOLOGY = Topology(primary=PrimarySpec(2), tiers=(NVME,))
_PREFIX = struct.Struct("<8sIII")


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    """A small log, whole."""
    trace = write_trace(tmp_path / "t.jsonl", ["a", "b"], ["c"], ["x", "b"], ["a", "b"], request_id="same")
    return log_bytes(trace, TOPOLOGY)


def opened(folder: Path, data: bytes) -> DecisionLog:
    path = folder / "l.kvlog"
    path.write_bytes(data)
    return open_log(str(path))


def everything(log: DecisionLog) -> list[Any]:
    return [msgspec.to_builtins(log.header), as_rows(log), list(log.find_blocks("b"))]


def refusal(folder: Path, data: bytes) -> str:
    """What is said when `data` is read whole."""
    with pytest.raises(InputError) as error:
        everything(opened(folder, data))
    assert str(error.value).startswith(f"{folder / 'l.kvlog'}: ")
    return str(error.value).partition(": ")[2]


def with_header(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The same log with another header, whose checksum is right."""
    magic, version, length, _ = _PREFIX.unpack_from(data)
    start = -(-(_PREFIX.size + length) // 64) * 64
    header = msgspec.json.decode(data[_PREFIX.size : _PREFIX.size + length])
    change(header)
    text = msgspec.json.encode(header)
    head = _PREFIX.pack(magic, version, len(text), zlib.crc32(text)) + text
    return head + bytes(-len(head) % 64) + data[start:]


def with_column(data: bytes, name: str, at: int, value: int) -> bytes:
    """The same log with one other entry in a column, whose checksum is right."""
    length = _PREFIX.unpack_from(data)[2]
    start = -(-(_PREFIX.size + length) // 64) * 64
    header = msgspec.json.decode(data[_PREFIX.size : _PREFIX.size + length])
    column = next(each for each in header["columns"] if each["name"] == name)
    form = {"|u1": "<B", "<i2": "<h", "<i4": "<i", "<i8": "<q", "<u4": "<I"}[column["type"]]
    size = struct.calcsize(form)
    first = start + column["offset"]
    changed = bytearray(data)
    struct.pack_into(form, changed, first + (at % column["count"]) * size, value)
    crc = zlib.crc32(changed[first : first + column["count"] * size])

    def change(header: dict[str, Any]) -> None:
        next(each for each in header["columns"] if each["name"] == name)["crc32"] = crc

    return with_header(bytes(changed), change)


def test_a_whole_one_is_read(data: bytes, tmp_path: Path) -> None:
    log = opened(tmp_path, data)
    assert [row["block"] for row in as_rows(log)] == ["a", "b", "c", "x", "b~2", "a", "b"]
    assert is_kvlog(str(tmp_path / "l.kvlog"))


def test_one_that_is_cut_anywhere_is_refused(data: bytes, tmp_path: Path) -> None:
    for length in (*range(40), *range(40, len(data), 61), len(data) - 1):
        said = refusal(tmp_path, data[:length])
        assert said in (f"is cut short after {length:,} bytes", "is no decision log"), length


def test_one_altered_anywhere_is_refused_or_says_the_same(data: bytes, tmp_path: Path) -> None:
    whole = everything(opened(tmp_path, data))
    refused = 0
    places = range(0, len(data), 7)  # no column is that short
    for at in places:
        altered = bytearray(data)
        altered[at] ^= 0x41
        try:
            assert everything(opened(tmp_path, bytes(altered))) == whole, at  # between two columns
        except InputError:
            refused += 1
    assert refused > len(places) / 2


def test_bytes_behind_its_end_are_damage(data: bytes, tmp_path: Path) -> None:
    assert refusal(tmp_path, data + b"more") == "is damaged: 4 bytes behind its end"


@pytest.mark.parametrize("foreign", [b"", b"{}", b"\x89PNG\r\n\x1a\n" + bytes(99), b"request,index\n" * 9])
def test_another_file_is_none(foreign: bytes, tmp_path: Path) -> None:
    assert refusal(tmp_path, foreign) == "is no decision log"
    assert not is_kvlog(str(tmp_path / "l.kvlog"))


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in {"": "is no decision log", "pipe": "is no decision log", "none": "no such file"}.items():
        with pytest.raises(InputError, match=f": {said}$"):
            open_log(str(tmp_path / name))
        assert not is_kvlog(str(tmp_path / name))


def test_one_of_a_newer_format_says_so(data: bytes, tmp_path: Path) -> None:
    newer = data[:8] + struct.pack("<I", 2) + data[12:]
    assert refusal(tmp_path, newer) == "is a decision log of format 2; this kvtier reads format 1"


def test_a_header_without_end_is_not_read(data: bytes, tmp_path: Path) -> None:
    long = data[:12] + struct.pack("<I", 2**32 - 1) + data[16:]
    assert refusal(tmp_path, long) == "is damaged: a header of 4,294,967,295 bytes"


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        *(("key", 1, value) for value in (-1, 5)),
        ("outcome", 0, 9),
        *(("tier", 0, value) for value in (-2, 2)),
        ("said", 0, 77),
        *(("start", at, value) for at, value in ((0, 1), (1, 9), (2, -1), (-1, 6), (-1, 8))),
        ("reason", 0, 5),
        *(("by", 0, value) for value in (-2, 4)),
        ("left", 0, 2),
        ("filter", 0, 1),
        *(("label_end", at, value) for at, value in ((0, -1), (0, 4), (-1, 99))),
        *(("id_end", at, value) for at, value in ((0, -1), (-1, 2**62))),
        ("again_key", 0, 5),
    ],
)
def test_an_entry_that_cannot_be_is_damage_even_if_its_checksum_is_right(
    data: bytes, name: str, at: int, value: int, tmp_path: Path
) -> None:
    assert (
        refusal(tmp_path, with_column(data, name, at, value)) == f"is damaged: column {name} has entries that cannot be"
    )


def set_column(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["columns"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (set_column(offset=-64), "column key lies outside of it"),
        (set_column(offset=2**70), "column key lies outside of it"),
        (set_column(offset=2**62), "column key lies outside of it"),
        (set_column(count=-1), "column key lies outside of it"),
        (set_column(count=2**62), "column key lies outside of it"),
        (set_column(type="|O"), "column key has an unknown type"),
        (set_column(type="<i8"), "no column key as expected"),
        (set_column(name="outcome"), "its columns are not told apart"),
        (set_column(name="other"), "column key has not 0 entries"),
        (set_column(count=1), "column outcome has not 1 entries"),
        (lambda header: header.update(size=-64), None),
        (lambda header: header.update(tiers=[]), "its verdicts are not one a tier"),
        (lambda header: header.update(verdicts=[[9]]), "its verdicts are not one a tier"),
        (lambda header: header.update(verdicts=[[]]), "its verdicts are not one a tier"),
        (
            lambda header: header.update(outcome_words=["good"]),
            'it has the word "good", which this kvtier does not know',
        ),
        (lambda header: header.pop("figures"), "its header is not as expected"),
        (lambda header: header.update(figures=[]), "its header is not as expected"),
    ],
)
def test_a_header_that_contradicts_the_file_is_damage(
    data: bytes, change: Callable[[dict[str, Any]], object], said: str | None, tmp_path: Path
) -> None:
    found = refusal(tmp_path, with_header(data, change))
    assert found.startswith("is cut short" if said is None else f"is damaged: {said}")


def test_a_header_nested_without_end_is_damage(data: bytes, tmp_path: Path) -> None:
    deep = b'{"figures":' + b"[" * 100_000
    head = _PREFIX.pack(data[:8], 1, len(deep), zlib.crc32(deep)) + deep
    assert refusal(tmp_path, head).startswith("is damaged: its header is not as expected")


def test_words_that_came_later_leave_what_was_written_before(data: bytes, tmp_path: Path) -> None:
    whole = as_rows(opened(tmp_path, data))

    def change(header: dict[str, Any]) -> None:
        words, verdicts = header["outcome_words"], header["verdict_words"]
        assert (words[3], verdicts[1:3]) == ("absent", ["skipped", "miss"])
        words[3], words[5] = words[5], words[3]
        verdicts[1], verdicts[2] = verdicts[2], verdicts[1]

    changed = as_rows(opened(tmp_path, with_header(data, change)))
    swapped = {"absent": "failed", "miss": "skipped"}
    assert changed == [
        {**row, "outcome": swapped.get(row["outcome"], row["outcome"]), "reason": None}
        | {"verdict_nvme": swapped.get(row["verdict_nvme"], row["verdict_nvme"])}
        for row in whole
    ]


def test_opening_reads_no_column_and_damage_shows_when_one_is_used(data: bytes, tmp_path: Path) -> None:
    log = opened(tmp_path, data[:-64] + bytes(64))  # the last column: labels that repeat
    assert log.rows(0).keys.tolist() == [0, 1]
    with pytest.raises(InputError, match="column again_number was altered"):
        log.block_names(log.rows(2).keys)


def test_a_log_of_the_chat_is_told_the_same_however_often_it_is_written(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.jsonl", *([1, 2, number] for number in range(50)))
    assert log_bytes(trace, TOPOLOGY) == log_bytes(trace, TOPOLOGY)
    assert kept_log(trace, TOPOLOGY, tmp_path / "l.kvlog").blocks == 150
