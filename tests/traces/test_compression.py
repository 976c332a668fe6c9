"""Traces packed with gzip or zstd: in several parts, damaged, swollen, and without the package that unpacks them."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.mooncake import MooncakeReader
from kvtier_cli.traces.source import TraceSource

Opened = Callable[[bytes], TraceSource]

LINE = json.dumps({"timestamp": 1, "input_length": 600, "hash_ids": [1, 2]}).encode() + b"\n"
SKIPPABLE = b"\x5a\x2a\x4d\x18\x04\x00\x00\x00abcd"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.chdir(tmp_path)

    def make(content: bytes) -> TraceSource:
        Path("t.jsonl").write_bytes(content)
        return TraceSource("t.jsonl")

    return make


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(LINE) + gzip.compress(LINE),
        gzip.compress(LINE * 2) + bytes(512),
        zstandard.compress(LINE) + zstandard.compress(LINE),
        SKIPPABLE + zstandard.compress(LINE) + SKIPPABLE + zstandard.compress(LINE) + SKIPPABLE,
        zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(LINE * 2),
    ],
    ids=["two gzip members", "gzip padded", "two zstd frames", "frames to skip", "zstd with a checksum"],
)
def test_all_parts_are_read(content: bytes, opened: Opened) -> None:
    assert len(list(read_trace(opened(content)))) == 2


def test_the_name_alone_makes_nothing_packed(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(LINE)
    assert len(list(read_trace(TraceSource(tmp_path / "t.jsonl.gz")))) == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_the_lines_before_a_cut_are_read_and_counted(pack: Callable[[bytes], bytes], opened: Opened) -> None:
    lines = [json.dumps({"timestamp": at, "input_length": 1, "hash_ids": [at**5]}).encode() for at in range(30_000)]
    packed = pack(b"\n".join(lines))
    reader = read_trace(opened(packed[: len(packed) - 100]))
    with pytest.raises(InputError, match="data are cut off") as caught:
        list(reader)
    assert reader.requests > 20_000
    assert caught.value.hint == (
        "If the trace is still being written or copied, wait for that to end. "
        f"{reader.requests:,} requests were read before it."
    )


def _damaged(packed: bytes) -> bytes:
    return packed[:-6] + bytes([packed[-6] ^ 0xFF]) + packed[-5:]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_damaged(gzip.compress(LINE * 20)), "its gzip data are damaged: "),
        (gzip.compress(LINE) + b"junk", "its gzip data are damaged: not a gzipped file"),
        (b"\x1f\x8b\x07" + bytes(20), "its gzip data are damaged: unknown compression method"),
        (zstandard.compress(LINE * 20) + b"junk", "its zstd data are damaged: "),
        (_damaged(zstandard.ZstdCompressor(write_checksum=True).compress(LINE)), "its zstd data are damaged: "),
    ],
    ids=["gzip", "after gzip", "gzip header", "after zstd", "zstd"],
)
def test_damage_is_told_by_what_is_wrong(content: bytes, words: str, opened: Opened) -> None:
    with pytest.raises(InputError) as caught:
        list(read_trace(opened(content)))
    assert str(caught.value).startswith(f"t.jsonl: {words}")


def test_nothing_packed_is_an_empty_trace(opened: Opened) -> None:
    with pytest.raises(InputError, match="is empty"):
        read_trace(opened(gzip.compress(b"")))


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_file_that_swells_takes_no_more_memory_than_a_line_may(kind: str, opened: Opened) -> None:
    packer = zlib.compressobj(9, wbits=31) if kind == "gzip" else zstandard.ZstdCompressor().compressobj()
    packed = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(128)), packer.flush()])
    assert len(packed) < 200_000
    source = opened(gzip.compress(LINE) + packed if kind == "gzip" else zstandard.compress(LINE) + packed)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"t.jsonl:2: the line is longer than 1 MiB"):
            list(MooncakeReader(source, max_line_bytes=1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_zstd_without_its_package_says_what_to_install(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(EnvironmentFault, match="needs the package zstandard") as caught:
        read_trace(opened(zstandard.compress(LINE)))
    assert caught.value.hint == "Install it: pip install 'kvtier[formats]'"
    assert len(list(read_trace(opened(gzip.compress(LINE))))) == 1
