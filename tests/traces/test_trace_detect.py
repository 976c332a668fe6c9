"""Telling traces, scripted fixtures and everything else apart by their first bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format, looks_like_fixture, read_trace
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]

ROW = {"timestamp": 0, "input_length": 513, "output_length": 2, "hash_ids": [1, 2]}


def test_a_mooncake_trace_is_detected_and_read(trace: MakeTrace) -> None:
    assert detect_format(trace(ROW)).name == "mooncake"
    assert [request.hash_ids for request in read_trace(trace(ROW, ROW))] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("first", [b"# made on a Monday", b'{"timestamp": 0,,', b"[1, 2]", b"", b"\xef\xbb\xbf"])
def test_a_trace_whose_first_line_is_bad_is_still_one(first: bytes, trace: MakeTrace) -> None:
    assert detect_format(trace(first, ROW)).name == "mooncake"


@pytest.mark.parametrize(
    ("content", "looks", "hint"),
    [
        (b'[{"hash_ids": [1]}]', "is one JSON array", "jq -c '.[]'"),
        (b'[\n  {"hash_ids": [1]}\n]', "is one JSON array", "jq -c '.[]'"),
        (b'{\n  "hash_ids": [1]\n}', "is a JSON object over many lines", "jq -c ."),
        (
            b"TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3",
            "looks like an Azure LLM inference trace",
            "ids of its blocks",
        ),
        (b"requests:\n  - hash_ids: [1]", "looks like YAML", "Formats of traces: kvtier,"),
        (
            b"hello",
            r"looks like text of no known format \(it starts with hello\)",
            "Formats of traces: kvtier,",
        ),
        (b"\x1b[2Jhello", r"it starts with \\u001b\[2Jhello", "Formats of traces: kvtier,"),
    ],
    ids=["array", "array over lines", "object over lines", "csv", "yaml", "text", "escape codes"],
)
def test_what_is_no_trace_is_named_by_its_looks(content: bytes, looks: str, hint: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=looks) as caught:
        detect_format(trace(content, name="data"))
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_a_fixture_is_no_trace(trace: MakeTrace) -> None:
    with pytest.raises(InputError, match="is a scripted fixture, not a trace"):
        detect_format(trace(b'{"kvtier": 1, "ops": []}', name="case.json"))


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b'{"kvtier": 1}', "case.json"),
        (b'\xef\xbb\xbf\n {"title": "}{", "topology": {"x": [{}]}, "ops": [', "case.json"),
        (b'{"title": "cut \\" here", "ops"   : ', "stdin"),
        (b"{kvtier: 1, ops: []}", "case"),
        (b"# a case\n---\ntitle: t\nops:\n  - op: step\n", "stdin"),
        (b'"kvtier": 1\n', "case"),
        (b"titel: a slip of the pen\n", "case.yaml"),
    ],
)
def test_a_fixture_is_known_by_its_keys_or_as_yaml_by_its_name(head: bytes, name: str) -> None:
    assert looks_like_fixture(head, name)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b'{"timestamp": 0, "hash_ids": [1], "ops": 3}', "t.json"),
        (b'{"inner": {"ops": []}, "kvtier_version": 1, "x": "ops"}', "t.json"),
        (b'{"text": "\\"ops\\": 1"}', "t.json"),
        (b'{"text": "cut while it says, ops: ', "t.json"),
        (b'{"a": 1}\n{"ops": []}', "t.json"),
        (b'{"kvtier": 1}', "t.jsonl"),
        (b"requests:\n  ops: 1\n", "t"),
        (b"", "t.json"),
    ],
)
def test_keys_deeper_inside_or_in_a_trace_make_no_fixture(head: bytes, name: str) -> None:
    assert not looks_like_fixture(head, name)
