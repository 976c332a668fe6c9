"""JSON lines of any kind, whose fields the caller names, as vLLM's benchmark takes them; and LMCache's log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.options import TraceOptions, parse_fields
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]

ROW = {"ids": [1, "x"], "n": 20, "made": 3, "when": 1.5, "hash_ids": "no ids at all"}
FIELDS = "hash_ids=ids, input_length=n,output_length=made,timestamp=when,session_id=user"


def test_fields_have_the_names_that_the_caller_says(trace: MakeTrace) -> None:
    source = trace(ROW | {"user": 7}, ROW | {"when": None, "request_id": "r"})
    first, second = read_trace(source, TraceOptions(fields=parse_fields(FIELDS)))
    assert (first.hash_ids, first.input_length, first.output_length) == ([1, "x"], 20, 3)
    assert (first.timestamp, first.session_id, second.timestamp, second.request_id) == (1500, "7", None, "r")


def test_unit_and_block_size_are_the_callers(trace: MakeTrace) -> None:
    options = TraceOptions(fields=parse_fields(FIELDS), time_unit="ms", block_tokens=10)
    reader = read_trace(trace(ROW), options)
    assert [each.timestamp for each in reader] == [1.5]
    assert (reader.block_tokens, reader.odd_requests) == (10, 0)


def test_a_field_that_is_not_there_is_told_by_the_traces_name(trace: MakeTrace) -> None:
    with pytest.raises(InputError, match="the request has no ids") as caught:
        list(read_trace(trace({"n": 1}), TraceOptions(fields=parse_fields(FIELDS))))
    assert caught.value.hint
    assert caught.value.hint.startswith("Without the ids of its blocks")


def test_a_field_that_no_row_has_is_told_lest_a_slip_leaves_the_trace_without_times(trace: MakeTrace) -> None:
    options = TraceOptions(fields=parse_fields("hash_ids=ids,input_length=n,timestamp=wen,session_id=user"))
    reader = read_trace(trace(ROW, ROW | {"user": "u"}), options)
    assert len(list(reader)) == 2
    assert reader.warnings[0] == 'no request has a field "wen" (timestamp)'
    assert "user" not in "".join(reader.warnings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hash_id=ids", 'there is no field "hash_id"'),
        ("hash_ids", 'expected NAME=FIELD, got "hash_ids"'),
        ("hash_ids=", "expected NAME=FIELD"),
        ("hash_ids=a,", "expected NAME=FIELD"),
        ("", "expected NAME=FIELD"),
        ("hash_ids=a,hash_ids=b", "names hash_ids twice"),
        ("hash_ids=a,timestamp=a", "two fields are read as a"),
        ('hash_ids=a"b', "may not hold quotes"),
    ],
)
def test_names_that_cannot_be_are_refused(text: str, words: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=words):
        list(read_trace(trace(ROW), TraceOptions(fields=parse_fields(text))))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mooncake", "--fields does not apply"),
        ("libcachesim-csv", "no field input_length: it takes hash_ids, timestamp"),
    ],
)
def test_formats_whose_fields_have_names_take_no_others(name: str, words: str, trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=words):
        read_trace(trace(ROW), TraceOptions(name, fields=parse_fields("input_length=n")))


# --- LMCache ---

LOOKUP = {"timestamp": 1.5, "model_name": "m", "chunk_size": 256, "seq_len": 600, "chunk_hashes": ["0a", "12"]}


def test_models_share_no_chunks_and_more_than_one_is_told(trace: MakeTrace) -> None:
    bare = {key: value for key, value in LOOKUP.items() if key != "model_name"}
    reader = read_trace(trace(LOOKUP, LOOKUP | {"model_name": "n"}, LOOKUP, bare))
    assert [each.hash_ids for each in reader] == [["m:0a", "m:12"], ["n:0a", "n:12"], ["m:0a", "m:12"], ["0a", 12]]
    assert reader.warnings == ["it holds requests of 3 models, which share no blocks; 2 of 4 are of m"]


def test_only_full_chunks_have_hashes_and_that_is_not_odd(trace: MakeTrace) -> None:
    reader = read_trace(trace(LOOKUP, LOOKUP | {"seq_len": 512}, LOOKUP | {"seq_len": 768}))
    assert len(list(reader)) == 3
    assert reader.odd_requests == 1


def test_its_other_trace_is_refused_by_name(trace: MakeTrace) -> None:
    record = b"\x00\x00\x00\x14\x82\xa4type\xa6header\xa5magic\xc4\x04LMCT"
    with pytest.raises(InputError, match=r"looks like an LMCache storage trace \(.lct\)"):
        detect_format(trace(record))
