"""Arrival order: by timestamp, ties as they stand in the trace."""

from __future__ import annotations

import pytest

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.order import OutOfOrder, arrival_sorted, in_arrival_order

Timestamps = list[int | float | None]


def requests(timestamps: Timestamps) -> list[Request]:
    return [
        Request(index=at, line=at + 1, input_length=1, hash_ids=[at], timestamp=timestamp)
        for at, timestamp in enumerate(timestamps)
    ]


@pytest.mark.parametrize("timestamps", [[0, 0, 3000], [-1.5, 2, None, 2, 7], [None, None], []])
def test_a_trace_in_order_streams_as_it_is(timestamps: Timestamps) -> None:
    given = requests(timestamps)
    assert list(in_arrival_order(given)) == given


def test_the_first_request_out_of_order_is_signalled_in_its_place() -> None:
    stream = in_arrival_order(requests([5, None, 4]))
    assert [next(stream).index, next(stream).index] == [0, 1]
    with pytest.raises(OutOfOrder) as signal:
        next(stream)
    assert (signal.value.request.line, signal.value.latest) == (3, 5)


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
