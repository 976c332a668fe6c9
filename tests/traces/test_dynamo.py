"""Dynamo's two formats of its own: agentic traces, whose requests wait for others, and request events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.order import in_arrival_order
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]
Row = dict[str, Any]

HEADER: Row = {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 16, "hash_id_scope": "local"}


def agent(name: str, time: float | None, *waits: tuple[str, float], play: str = "p", **more: Any) -> Row:
    waited = [{"request_id": other, "trigger": "completion", "delay_ms": delay} for other, delay in waits]
    row = {"request_id": name, "play_id": play, "input_length": 16, "hash_ids": [1], "not_before_ms": time}
    return {**row, "dependencies": waited, **more}


def test_a_request_arrives_after_those_it_waits_for_and_not_before_its_time(trace: MakeTrace) -> None:
    rows = [
        agent("a", 10),
        agent("b", 0, ("a", 5)),
        agent("c", 100, ("b", 5)),
        agent("d", None, ("a", 1), ("b", 1)),
        agent("e", None),
    ]
    requests = list(read_trace(trace(HEADER, *rows)))
    assert [(each.request_id, each.timestamp) for each in requests] == [
        ("a", 10),
        ("b", 15),
        ("c", 100),
        ("d", 16),
        ("e", None),
    ]
    ordered, fall = in_arrival_order(read_trace(trace(HEADER, *rows)))
    assert [each.request_id for each in ordered] == ["a", "b", "d", "e", "c"]
    assert fall == 5


def test_local_ids_are_those_of_a_play_and_global_ones_are_of_all(trace: MakeTrace) -> None:
    rows = [agent("a", 0), agent("a", 0, play="q"), agent("b", 0, ("a", 3), play="q")]
    local = list(read_trace(trace(HEADER, *rows)))
    assert [each.hash_ids for each in local] == [["p:1"], ["q:1"], ["q:1"]]
    assert local[2].timestamp == 3
    everywhere = read_trace(trace(HEADER | {"hash_id_scope": "global"}, *rows))
    assert [each.hash_ids for each in everywhere] == [[1], [1], [1]]


def test_what_a_request_waits_for_and_never_came_is_passed_over_and_told(trace: MakeTrace) -> None:
    reader = read_trace(trace(HEADER, agent("a", 4, ("later", 5)), agent("later", 0)))
    assert [each.timestamp for each in reader] == [4, 0]
    assert reader.warnings == ["1 dependency on a request that did not come before it was passed over"]


def test_a_request_that_waits_for_one_without_a_time_has_none_either(trace: MakeTrace) -> None:
    reader = read_trace(trace(HEADER, agent("a", None), agent("b", None, ("a", 5)), agent("c", 7, ("a", 5))))
    assert [each.timestamp for each in reader] == [None, None, 7]
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER | {"version": 1}, "agentic trace of version 1; only version 2 is read"),
        (HEADER | {"hash_id_scope": "x"}, "expected local or global"),
        (HEADER | {"block_size": 0}, "block size of 1 token or more"),
        ({"schema": HEADER["schema"], "version": 2}, "the header has no block_size"),
    ],
)
def test_a_header_that_cannot_be_is_refused_with_skip_bad_too(header: Row, words: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=words):
        list(read_trace(trace(header, agent("a", 0)), skip_bad=True))


def test_rows_without_the_header_are_mooncakes_or_told_what_lacks(trace: MakeTrace) -> None:
    assert [each.hash_ids for each in read_trace(trace(agent("a", 0)))] == [[1]]
    with pytest.raises(InputError, match="the header has no schema") as caught:
        list(read_trace(trace(agent("a", 0)), TraceOptions("dynamo-agentic")))
    assert caught.value.hint
    assert caught.value.hint.startswith("Expected a header")


# --- request events ---


def ended(name: str, received: float | None, *, took: float | None = None, end: float | None = None) -> Row:
    request = {"request_id": name, "request_received_ms": received, "total_time_ms": took, "output_tokens": 3}
    replay = {"trace_block_size": 16, "input_length": 20, "input_sequence_hashes": [1, 2]}
    return {"event_type": "request_end", "event_time_unix_ms": end, "request": {**request, "replay": replay}}


def test_requests_are_sorted_by_when_they_came_not_by_when_they_ended(trace: MakeTrace) -> None:
    source = trace(ended("b", 2000), {"event": ended("a", 1000)}, {"event_type": "request_start", "request": 3})
    ordered, fall = in_arrival_order(read_trace(source))
    assert [(each.request_id, each.timestamp) for each in ordered] == [("a", 1000), ("b", 2000)]
    assert fall == 2


@pytest.mark.parametrize("unknown", [None, 0])
def test_one_whose_arrival_was_not_noted_came_when_it_ended_less_its_time(
    unknown: float | None, trace: MakeTrace
) -> None:
    reader = read_trace(trace(ended("a", 1000), ended("b", unknown, took=40, end=1030), ended("c", unknown)))
    ordered, _ = in_arrival_order(reader)
    assert [(each.request_id, each.timestamp) for each in ordered] == [("b", 990), ("c", None), ("a", 1000)]
    assert reader.warnings[0].startswith("2 requests without request_received_ms")


def test_its_session_is_that_of_the_agent(trace: MakeTrace) -> None:
    event = ended("a", 1) | {"agent_context": {"session_id": "s"}, "tenant": "t"}
    for row in (event, {"event": event, "tenant": "outside"}):
        (request,) = read_trace(trace(row), TraceOptions(tags=("tenant",)))
        assert (request.session_id, request.output_length, request.tags) == ("s", 3, ("t",))


def test_events_of_other_kinds_alone_are_no_trace(trace: MakeTrace) -> None:
    source = trace({"schema": "dynamo.request.trace.v1", "event_type": "request_start", "request": {}})
    with pytest.raises(InputError, match="no request_end event"):
        list(read_trace(source))


def test_a_long_first_event_tells_by_its_schema(trace: MakeTrace) -> None:
    event = ended("a", 1)
    event["request"]["replay"]["input_sequence_hashes"] = list(range(20_000))
    row = {"timestamp": 1, "event": {"schema": "dynamo.request.trace.v1", **event}}
    assert detect_format(trace(row)).name == "dynamo-requests"


def test_a_request_that_ended_without_hashes_is_a_bad_line(trace: MakeTrace) -> None:
    source = trace(ended("a", 1), {"event_type": "request_end", "request": {"request_id": "b"}})
    with pytest.raises(InputError, match="the request has no replay"):
        list(read_trace(source))
    assert len(list(read_trace(source, skip_bad=True))) == 1
