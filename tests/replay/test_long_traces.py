"""Ten million references: what a made trace of them has, and the memory that replaying it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.growth import MAX_MIB, measure


@pytest.mark.soak
def test_ten_million_references_stream_through_a_replay_in_a_gibibyte(tmp_path: Path) -> None:
    found = measure("10M", 1_000_000, 1, tmp_path)
    assert found["blocks"] >= 10_000_000
    assert found["distinct"] >= 0.6
    assert found["resident"] == {"primary": 1_000_000, "nvme": 1_000_000, "s3": 1_000_000}
    assert found["peak_mib"] <= MAX_MIB


def test_memory_does_not_grow_with_the_requests_but_with_their_blocks(tmp_path: Path) -> None:
    short, long = (measure(references, 1_000, 1, tmp_path) for references in ("20k", "200k"))
    distinct = long["distinct"] * long["blocks"] - short["distinct"] * short["blocks"]
    assert (long["peak_mib"] - short["peak_mib"]) * 2**20 < 200 * distinct
