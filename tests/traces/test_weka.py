"""Weka's conversations: documents and lines, ids and times that are a conversation's own, requests of subagents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.order import in_arrival_order
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.traces.weka import WekaReader

MakeTrace = Callable[..., TraceSource]
Row = dict[str, Any]


def turn(time: float, *ids: int, **more: Any) -> Row:
    return {"t": time, "type": "s", "in": 64 * len(ids), "out": 2, "hash_ids": ids, **more}


def talk(name: str, *requests: Row, **more: Any) -> Row:
    return {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": requests, **more}


def agent(time: float, *requests: Row) -> Row:
    return {"t": time, "type": "subagent", "agent_id": "x", "requests": requests}


TALK = talk("c", turn(0, 1, 2), agent(2, turn(2.5, 1, 9), agent(3, turn(3, 1))), turn(2.25, 1, 2, 3))


def test_requests_of_subagents_are_the_conversations_by_its_clock_and_ids(trace: MakeTrace) -> None:
    reader = read_trace(trace(TALK))
    assert [(each.request_id, each.hash_ids, each.timestamp) for each in reader] == [
        ("c/0", ["c:1", "c:2"], 0),
        ("c/1/0", ["c:1", "c:9"], 2500),
        ("c/1/1/0", ["c:1"], 3000),
        ("c/2", ["c:1", "c:2", "c:3"], 2250),
    ]
    assert {each.session_id for each in reader} == {"c"}
    assert reader.warnings == []
    ordered, _ = in_arrival_order(read_trace(trace(TALK)))
    assert [each.request_id for each in ordered] == ["c/0", "c/2", "c/1/0", "c/1/1/0"]


def test_conversations_share_no_blocks_and_begin_at_once(trace: MakeTrace) -> None:
    reader = read_trace(trace(TALK, talk("d", turn(1, 1))))
    ordered, fall = in_arrival_order(reader)
    assert [each.hash_ids[0] for each in ordered] == ["c:1", "d:1", "c:1", "c:1", "c:1"]
    assert fall == 1
    assert "2 conversations count from the start of each" in reader.warnings[0]


def test_global_ids_are_taken_as_they_are(trace: MakeTrace) -> None:
    rows = [talk(name, turn(0, 1), hash_id_scope="global") for name in ("a", "b")]
    assert [each.hash_ids for each in read_trace(trace(*rows))] == [[1], [1]]


@pytest.mark.parametrize("indent", [None, 0, 2], ids=["one line", "no indent", "indented"])
@pytest.mark.parametrize("is_array", [False, True], ids=["object", "array"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n \n"], ids=["plain", "bom", "blank lines"])
def test_a_document_is_read_however_it_is_written(
    indent: int | None, is_array: bool, start: bytes, trace: MakeTrace
) -> None:
    talks = [TALK, talk("d", turn(1, 1))] if is_array else [TALK]
    source = trace(start + json.dumps(talks if is_array else TALK, indent=indent).encode(), name="t.json")
    assert detect_format(source).name == "weka"
    lines = [(each.request_id, each.hash_ids, each.timestamp) for each in read_trace(trace(*talks))]
    assert [(each.request_id, each.hash_ids, each.timestamp) for each in read_trace(source)] == lines


def test_a_bad_conversation_in_a_document_is_told_with_its_line_and_path(trace: MakeTrace) -> None:
    bad = talk("d", turn(1, 1), turn(2, 1) | {"in": -1})
    content = b"[\n" + b",\n".join(json.dumps(each).encode() for each in (TALK, bad, talk("e", turn(0, 4)))) + b"\n]"
    source = trace(content, name="t.json")
    with pytest.raises(InputError) as caught:
        list(read_trace(source))
    assert (caught.value.line, caught.value.path) == (3, "$.requests[1].in")
    reader = read_trace(source, skip_bad=True)
    assert [each.line for each in reader] == [2, 2, 2, 2, 4]
    assert (reader.bad_lines, reader.requests) == (1, 5)


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b'[\n{"id": 1, "requests": []\n', "the document is cut off", None),
        (b'[\n{"id": 1, "requests": [}]\n]', "no JSON: expecting value", 2),
        (b'[\n{"id": 1, "requests": [NaN]}\n]', "no JSON that can be read", None),
        (b'[\n{"id": "\xff", "requests": []}\n]', "not UTF-8", 2),
        (b'[{"x": ' + b"[" * 100_000, "no JSON", None),
    ],
)
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_document_that_is_no_json_is_no_trace(
    content: bytes, message: str, line: int | None, skip_bad: bool, trace: MakeTrace
) -> None:
    with pytest.raises(TraceFault, match=message) as caught:
        list(read_trace(trace(content), TraceOptions("weka"), skip_bad=skip_bad))
    assert caught.value.line == line


def test_a_document_is_held_in_memory_so_it_has_the_limit_of_a_line(trace: MakeTrace) -> None:
    reader = WekaReader(trace(json.dumps([TALK], indent=1).encode()), max_line_bytes=200)
    with pytest.raises(TraceFault, match="the document is longer than 200 bytes") as caught:
        list(reader)
    assert caught.value.hint == "Write its conversations a line each: jq -c '.[]' FILE | kvtier … -"


def test_tags_are_the_requests_own_or_else_the_conversations(trace: MakeTrace) -> None:
    row = talk("c", turn(0, 1, model="a"), agent(1, turn(1, 1)), model="b")
    assert [each.tags for each in read_trace(trace(row), TraceOptions(tags=("model",)))] == [("a",), ("b",)]


@pytest.mark.parametrize("missing", ["in", "hash_ids"])
def test_a_request_without_a_length_or_ids_is_told_where_it_stands(missing: str, trace: MakeTrace) -> None:
    inner = turn(0, 1)
    del inner[missing]
    with pytest.raises(InputError, match=f"the request has no {missing}") as caught:
        list(read_trace(trace(talk("c", agent(0, turn(0, 1), inner)))))
    assert caught.value.path == "$.requests[0].requests[1]"
