"""Traces of caches in general, which libCacheSim reads: an access is a request of one block."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], TraceSource]:
    """A file of these bytes, opened."""
    monkeypatch.chdir(tmp_path)

    def make(content: bytes) -> TraceSource:
        (tmp_path / "t").write_bytes(content)
        return TraceSource("t")

    return make


def access(time: int, block: int, after: int = -1) -> bytes:
    return struct.pack("<IQIq", time, block, 1, after)


@pytest.mark.parametrize("never", [-2, -1, 2**63 - 1])
def test_an_access_that_none_follows_says_so_in_three_ways(never: int, binary: Callable[[bytes], TraceSource]) -> None:
    source = binary(access(1, 7, 2) + access(2, 7, never))
    assert detect_format(source).name == "oracle-general"
    assert [(each.hash_ids, each.timestamp) for each in read_trace(source)] == [([7], 1000), ([7], 2000)]


def test_a_record_that_is_cut_off_or_cannot_be_is_bad(binary: Callable[[bytes], TraceSource]) -> None:
    good = access(1, 7) * 3000  # more than is looked at to tell the format
    for tail, words in [
        (access(2, 8)[:20], r"the last record is cut off: 20 bytes of 24 \(record 3,001\)"),
        (access(2, 8, 5), r"its next access, 5, is not after it \(record 3,001\)"),
    ]:
        source = binary(good + tail)
        with pytest.raises(InputError, match=words) as caught:
            list(read_trace(source))
        assert caught.value.hint == "3,000 requests were read before it. Continue past bad records with --skip-bad."
        reader = read_trace(source, skip_bad=True)
        assert len(list(reader)) == 3000
        assert reader.bad_lines == 1


def test_the_topology_or_the_caller_says_how_many_tokens_a_block_stands_for(
    binary: Callable[[bytes], TraceSource],
) -> None:
    source = binary(access(1, 7))
    assert [each.input_length for each in read_trace(source, block_tokens=32)] == [32]
    assert [each.input_length for each in read_trace(source, TraceOptions(block_tokens=8), block_tokens=32)] == [8]


# --- CSV ---

Found = list[tuple[list[int | str], float | None]]


def accesses(source: TraceSource, options: TraceOptions) -> Found:
    return [(each.hash_ids, each.timestamp) for each in read_trace(source, options)]


@pytest.mark.parametrize(
    ("lines", "fields", "found"),
    [
        (["1,5,9", "2,a b"], (), [([5], 1000), (["a b"], 2000)]),
        (["size,Obj_ID,Time", '1,"a,b",3', "1,6,4.5,x"], (), [(["a,b"], 3000), ([6], 4500)]),
        (["obj_id", "5"], (), [([5], None)]),
        (["ts,lbn", "1,7"], (("hash_ids", "lbn"),), [([7], 1000)]),
        (["a,b", "7,1"], (("hash_ids", "a"), ("timestamp", "b")), [([7], 1000)]),
    ],
)
def test_columns_are_known_by_their_names_or_places(
    lines: list[str], fields: tuple[tuple[str, str], ...], found: Found, trace: MakeTrace
) -> None:
    source = trace(*[line.encode() for line in lines])
    assert accesses(source, TraceOptions("libcachesim-csv", fields=fields)) == found


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b"a,b", b"1,2"], "its header names no column of objects"),
        ([b"time,obj_id", b"1"], "expected 2 columns or more, found 1"),
        ([b"time,obj_id", b"1,"], "the access names no object"),
        ([b"time,obj_id", b"noon,1"], "expected a time, got noon"),
        ([b"time,obj_id", b"nan,1"], "expected a time, got nan"),
        ([b"time,obj_id", b"1e300,1"], "expected milliseconds, at most"),
        ([b"time,obj_id", b'1,"5'], "no line of CSV"),
        ([b"time,obj_id", b"1,\xff"], "not UTF-8"),
        ([b"time,obj_id"], "holds no request"),
    ],
)
def test_lines_that_are_none_are_told(lines: list[bytes], words: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=words):
        accesses(trace(*lines), TraceOptions("libcachesim-csv"))
    if len(lines) > 1 and words.startswith("expected"):
        reader = read_trace(trace(*lines, b"1,2"), skip_bad=True)
        assert len(list(reader)) == 1
