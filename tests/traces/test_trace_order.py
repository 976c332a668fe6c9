"""Arrival order: by timestamp, ties as they stand in the trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.mooncake import MooncakeReader
from kvtier_cli.traces.order import arrival_sorted, in_arrival_order
from kvtier_cli.traces.source import TraceSource

Timestamps = list[int | float | None]


def requests(timestamps: Timestamps) -> list[Request]:
    return [
        Request(index=at, line=at + 1, input_length=1, hash_ids=[at], timestamp=timestamp)
        for at, timestamp in enumerate(timestamps)
    ]


def trace(folder: Path, lines: list[str]) -> MooncakeReader:
    file = folder / "trace.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return MooncakeReader(TraceSource(str(file)), skip_bad=True)


def row(timestamp: object) -> str:
    return json.dumps({"timestamp": timestamp, "input_length": 1, "hash_ids": [1]})


@pytest.mark.parametrize("timestamps", [[0, 0, 3000], [-1.5, 2, None, 2, 7], [None, None]])
def test_a_trace_in_order_streams_as_it_is(tmp_path: Path, timestamps: Timestamps) -> None:
    reader = trace(tmp_path, [row(timestamp) for timestamp in timestamps])
    ordered, fall = in_arrival_order(reader)
    assert ordered is reader
    assert fall is None


def test_a_trace_out_of_order_is_sorted_and_its_first_fall_is_named(tmp_path: Path) -> None:
    ordered, fall = in_arrival_order(trace(tmp_path, [row(5), row(None), row(4), row(6)]))
    assert [request.line for request in ordered] == [3, 1, 2, 4]
    assert fall == 3


def test_a_bad_line_says_nothing_about_the_order(tmp_path: Path) -> None:
    ordered, fall = in_arrival_order(trace(tmp_path, [row(5), "junk", '{"timestamp": "late"}', row(5)]))
    assert [request.line for request in ordered] == [1, 4]
    assert fall is None


def test_sorting_keeps_ties_as_they_stand_and_counts_anew() -> None:
    ordered = arrival_sorted(requests([3, 1, 3, 1]))
    assert [request.line for request in ordered] == [2, 4, 1, 3]
    assert [request.index for request in ordered] == [0, 1, 2, 3]


def test_a_request_without_a_timestamp_arrives_with_the_one_before_it() -> None:
    ordered = arrival_sorted(requests([None, 9, None, 2, None]))
    assert [request.line for request in ordered] == [1, 4, 5, 2, 3]


def test_timestamps_beyond_the_precision_of_floats_keep_their_order() -> None:
    ordered = arrival_sorted(requests([2**53 + 1, 2**53]))
    assert [request.line for request in ordered] == [2, 1]
