"""Which format a trace is taken for, and what is said of those that are not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces import detect
from kvtier_cli.traces.detect import detect_format, looks_like_fixture, read_trace
from kvtier_cli.traces.formats import FORMATS, TraceFormat, find_format
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.sniff import Match
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]

ROW = {"timestamp": 2, "input_length": 600, "hash_ids": [1, 2]}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (ROW, "mooncake"),
        ({"created_time": 0.0, "input_tokens": 600, "hash_ids": [1, 2]}, "mooncake"),
        ({**ROW, "block_size": 64}, "mooncake"),
        ({"block_size": 64, "hash_ids": [1], "input_length": 64}, "mooncake"),
        ({**ROW, "block_tokens": [512, 88]}, "kvcache-simulator"),
        ({**ROW, "chat_id": 1, "parent_chat_id": -1}, "bailian"),
        ({**ROW, "chat_id": 1}, "mooncake"),
        ({"kvtier": "trace", "version": 1, "block_tokens": 16}, "kvtier"),
        ({"schema": "dynamo.request.trace.v1", "event_type": "request_payload"}, "dynamo-requests"),
        ({"event": {"event_type": "request_end", "request": {}}}, "dynamo-requests"),
        ({"id": "c", "requests": [], "hash_id_scope": "local"}, "weka"),
        ({"ts": 1, "events": [{"type": "AllBlocksCleared"}]}, "kv-events"),
    ],
)
def test_the_keys_of_its_lines_tell_the_format(row: dict[str, object], name: str, trace: MakeTrace) -> None:
    assert detect_format(trace(row, name="x.csv")).name == name


def test_a_bad_line_in_front_does_not_hide_the_format(trace: MakeTrace) -> None:
    row = {**ROW, "chat_id": 1, "parent_chat_id": -1}
    assert detect_format(trace(b"{", row)).name == "bailian"


def test_a_first_line_longer_than_what_is_looked_at_still_tells_by_its_keys(trace: MakeTrace) -> None:
    row = {"chat_id": 1, "parent_chat_id": -1, "input_length": 600, "hash_ids": list(range(100_000))}
    assert detect_format(trace(row)).name == "bailian"


def test_a_trace_that_could_be_of_two_formats_is_for_the_caller_to_decide(
    trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TraceFormat("other", "mooncake:MooncakeReader", "as likely", lambda _: Match.LIKELY)
    monkeypatch.setattr(detect, "FORMATS", {**FORMATS, "other": other})
    with pytest.raises(InputError, match="could be mooncake or other") as caught:
        detect_format(trace(ROW))
    assert caught.value.hint == "Say which with --format mooncake."


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5.0,GPT-4,4,1,5,API log", "BurstGPT"),
        (b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10", "an Azure LLM"),
        (b'{"timestamp": 19, "requests": [{"prompt": "hello", "prompt_length": 1}]}', "an AIBrix workload"),
        (b'{"prompt": "hello", "output_tokens": 5}', "a set of prompts"),
        (b'{"messages": [{"role": "user", "content": "x"}], "output_length": 4}', "a set of prompts"),
        (b'{"prefix_tokens": 4, "newly_append_tokens": 5}', "a TraceLab trace"),
        (b'{"num_turns": 1, "input_prompt_length": 8}', "an Applied Compute agentic trace"),
    ],
)
def test_a_trace_without_ids_is_refused_by_its_name_with_the_reason(
    content: bytes, looks: str, trace: MakeTrace
) -> None:
    with pytest.raises(InputError, match=f"looks like (a |an )?{looks}.*no ids of") as caught:
        detect_format(trace(content))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1, "b": 2}', r"JSON lines of no known format \(its keys: a, b\)"),
        (b"a,b\n1,2", r"CSV of no known format \(it starts with a,b\)"),
        (b"\x00\x01\x02", "binary data of no known format"),
        ("{}".encode("utf-16"), "UTF-16 text; expected UTF-8"),
    ],
)
def test_what_is_of_no_format_is_told_what_there_is(content: bytes, words: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=words):
        detect_format(trace(content))


def test_json_lines_of_no_format_are_told_how_to_name_their_fields(trace: MakeTrace) -> None:
    with pytest.raises(InputError) as caught:
        detect_format(trace({"ids": [1], "n": 1}))
    assert caught.value.hint
    assert "--fields hash_ids=FIELD" in caught.value.hint


def test_a_format_that_is_named_is_not_looked_for(trace: MakeTrace) -> None:
    source = trace({**ROW, "chat_id": 1, "parent_chat_id": -1})
    reader = read_trace(source, TraceOptions("mooncake"))
    assert [(request.timestamp, request.request_id) for request in reader] == [(2, None)]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("bailan", "there is no format", 'Did you mean "bailian"?'),
        ("xyz", "there is no format", "Formats of traces: kvtier, mooncake,"),
        ("azure", "cannot be replayed: it has no ids of blocks", "Use a trace that lists"),
    ],
)
def test_a_name_that_is_no_format_is_told_the_nearest(name: str, message: str, hint: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        find_format(name)
    assert caught.value.hint
    assert hint in caught.value.hint


def test_a_trace_of_our_own_is_no_fixture_whatever_it_is_called() -> None:
    assert not looks_like_fixture(b'{"version": 1, "kvtier": "trace", "block_tokens": 16}\n', "t.json")
    assert looks_like_fixture(b'{"kvtier": 1}\n', "t.json")


# --- options ---


@pytest.mark.parametrize(
    ("options", "topology_says", "size"),
    [
        (TraceOptions(), None, 512),
        (TraceOptions(), 32, 32),
        (TraceOptions(block_tokens=64), 32, 64),
        (TraceOptions("bailian"), 32, 16),
        (TraceOptions("bailian", 64), 32, 64),
    ],
)
def test_the_size_of_a_block_is_the_callers_then_the_formats_then_the_topologys(
    options: TraceOptions, topology_says: int | None, size: int, trace: MakeTrace
) -> None:
    source = trace({**ROW, "chat_id": 1})
    assert read_trace(source, options, block_tokens=topology_says).block_tokens == size


def test_a_size_that_the_trace_states_wins_over_the_callers_and_says_so(trace: MakeTrace) -> None:
    reader = read_trace(trace({**ROW, "block_size": 300}), TraceOptions(block_tokens=512))
    assert len(list(reader)) == 1
    assert reader.block_tokens == 300
    assert reader.warnings == ["the trace states blocks of 300 tokens, so --block-tokens 512 does not apply"]


@pytest.mark.parametrize(("unit", "time"), [("s", 2000), ("ms", 2), ("us", 0.002)])
def test_times_are_in_the_callers_unit_where_the_format_leaves_it(unit: str, time: float, trace: MakeTrace) -> None:
    reader = read_trace(trace(ROW), TraceOptions(time_unit=unit))  # type: ignore[arg-type]
    assert [request.timestamp for request in reader] == [time]


def test_another_unit_than_the_formats_is_refused(trace: MakeTrace) -> None:
    source = trace({**ROW, "chat_id": 1, "parent_chat_id": -1})
    with pytest.raises(InputError, match="counts its times in s: --time-unit does not apply"):
        read_trace(source, TraceOptions(time_unit="ms"))
    assert read_trace(source, TraceOptions(time_unit="s")).block_tokens == 16


@pytest.mark.parametrize("options", [{"block_tokens": 0}, {"block_tokens": -1}, {"time_unit": "m"}])
def test_options_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        TraceOptions(**options)  # type: ignore[arg-type]


# --- tags ---


def test_fields_that_are_asked_for_come_with_each_request_as_text(trace: MakeTrace) -> None:
    rows = [{**ROW, "tenant": "a\u00e9", "n": 10**30, "x": {"y": [1]}}, {**ROW, "tenant": None, "n": 1.50}]
    reader = read_trace(trace(*rows), TraceOptions(tags=("tenant", "n", "x", "tenant")))
    assert [request.tags for request in reader] == [("a\u00e9", str(10**30), '{"y": [1]}'), (None, "1.5", None)]


def test_a_field_of_an_object_in_a_record_is_asked_for_with_a_dot(trace: MakeTrace) -> None:
    rows = [
        {**ROW, "meta": {"tenant": "a", "of": {"plan": 1}}},
        {**ROW, "meta": 5, "meta.tenant": "own"},
        {**ROW, "meta": {"tenant": None}, "meta.of.plan": "x"},
        ROW,
    ]
    reader = read_trace(trace(*rows), TraceOptions(tags=("meta.tenant", "meta.of.plan", ".meta", "meta.")))
    assert [request.tags and request.tags[:2] for request in reader] == [
        ("a", "1"),
        ("own", None),
        (None, "x"),
        (None, None),
    ]


def test_no_tags_are_read_unless_asked_for(trace: MakeTrace) -> None:
    assert [request.tags for request in read_trace(trace({**ROW, "tenant": "a"}))] == [None]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb"])
def test_a_name_that_no_field_can_be_asked_for_by_is_refused(name: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match="no field can be asked for"):
        list(read_trace(trace(ROW), TraceOptions(tags=("a", name))))
