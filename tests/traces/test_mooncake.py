"""What is read from a Mooncake trace, and what is said of one that is bad."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.mooncake import MooncakeReader
from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]
PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "mooncake"
GOOD: dict[str, object] = {"timestamp": 27, "input_length": 600, "output_length": 5, "hash_ids": [7, 8]}


def row(**changes: object) -> dict[str, object]:
    return {**GOOD, **changes}


def fault(source: TraceSource, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        list(MooncakeReader(source, **options))
    return caught.value


# --- what is read ---


def test_a_request_is_read_with_its_place_and_its_own_words(trace: MakeTrace) -> None:
    source = trace(b"", row(request_id="chat-9", id=4, session="ignored"), GOOD)
    assert list(MooncakeReader(source)) == [
        Request(0, 2, 600, [7, 8], output_length=5, timestamp=27, request_id="chat-9"),
        Request(1, 3, 600, [7, 8], output_length=5, timestamp=27),
    ]


@pytest.mark.parametrize(
    ("keys", "known_as"),
    [({"id": 4}, "4"), ({"request_id": "a", "id": "b"}, "a"), ({"request_id": None, "id": "b"}, "b"), ({}, None)],
)
def test_a_request_is_known_by_its_request_id_or_else_its_id(
    keys: dict[str, object], known_as: str | None, trace: MakeTrace
) -> None:
    assert [request.request_id for request in MooncakeReader(trace(row(**keys)))] == [known_as]


def test_times_and_output_lengths_may_be_left_out_and_times_be_fractions(trace: MakeTrace) -> None:
    source = trace({"input_length": 1, "hash_ids": [1]}, row(timestamp=0.5), row(timestamp=None, output_length=None))
    found = [(request.timestamp, request.output_length) for request in MooncakeReader(source)]
    assert found == [(None, None), (0.5, 5), (None, None)]


@pytest.mark.parametrize(
    ("keys", "params"),
    [
        ({}, None),
        ({"kv_transfer_params": None}, b"null"),
        ({"kv_transfer_params": {"kv_load_tiers": []}}, b'{"kv_load_tiers": []}'),
        ({"kv_load_tiers": [{"medum": "cpu"}]}, b'{"kv_load_tiers":[{"medum": "cpu"}]}'),
        ({"kv_load_tiers": None}, b'{"kv_load_tiers":null}'),
        ({"kv_transfer_params": None, "kv_load_tiers": []}, b'{"kv_load_tiers":[]}'),
    ],
)
def test_a_requests_own_filter_is_kept_undecoded_in_one_shape(
    keys: dict[str, object], params: bytes | None, trace: MakeTrace
) -> None:
    assert [request.params for request in MooncakeReader(trace(row(**keys)))] == [params]


def test_a_filter_given_twice_is_refused(trace: MakeTrace) -> None:
    found = fault(trace(row(kv_load_tiers=[], kv_transfer_params={})))
    assert (found.path, found.line) == ("$.kv_load_tiers", 1)
    assert "expected one of the two" in found.message


def test_repeated_ids_and_an_empty_list_are_kept_as_they_are(trace: MakeTrace) -> None:
    source = trace(row(hash_ids=[3, 3, 3]), row(hash_ids=[], input_length=0))
    assert [request.hash_ids for request in MooncakeReader(source)] == [[3, 3, 3], []]


@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n \n"], ids=["newline", "no newline", "blank lines"])
@pytest.mark.parametrize("eol", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_the_ends_of_lines_and_files_do_not_matter(start: bytes, eol: bytes, end: bytes, trace: MakeTrace) -> None:
    line = json.dumps(GOOD).encode()
    reader = MooncakeReader(trace(start + line + eol + eol + line, end=end))
    assert [request.line for request in reader] == [1, 3]
    assert (reader.requests, reader.blocks, reader.warnings) == (2, 4, [])


def test_a_reader_can_be_used_again_and_counts_anew(trace: MakeTrace) -> None:
    reader = MooncakeReader(trace(GOOD, b"x"), skip_bad=True)
    assert list(reader) == list(reader)
    assert (reader.requests, reader.bad_lines, reader.lines) == (1, 1, 2)


@pytest.mark.parametrize(
    ("name", "requests", "blocks"),
    [("conversation_trace.jsonl", 12_031, 288_500), ("synthetic_trace.jsonl", 3_993, 121_877)],
)
def test_the_published_traces_have_the_published_counts(name: str, requests: int, blocks: int) -> None:
    if not (PUBLISHED / name).exists():
        pytest.skip(f"{name} is not beside the checkout")
    reader = MooncakeReader(TraceSource(PUBLISHED / name))
    assert sum(len(request.hash_ids) for request in reader) == blocks
    assert (reader.requests, reader.blocks, reader.lines, reader.warnings) == (requests, blocks, requests, [])


# --- ids ---


def ids_read(trace: MakeTrace, *lists: list[int | str]) -> list[list[int | str]]:
    lines = [row(hash_ids=ids) for ids in lists]
    return [request.hash_ids for request in MooncakeReader(trace(*lines))]


def canonical(each: int | str) -> int | str:
    """By hand: text that is exactly how JSON writes an int is that int."""
    if isinstance(each, str) and each.isascii() and each.removeprefix("-").isdigit() and str(int(each)) == each:
        return int(each)
    return each


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.integers() | st.integers(-(2**80), 2**80) | st.text() | st.integers().map(str)))
def test_any_id_survives_exactly(ids: list[int | str], trace: MakeTrace) -> None:
    assert ids_read(trace, ids) == [[canonical(each) for each in ids]]


def test_ids_beyond_64_bits_and_below_zero_are_neither_cut_nor_rounded(trace: MakeTrace) -> None:
    ids: list[int | str] = [2**53 + 1, 2**64 - 1, 2**64, -1, -(2**63) - 1, 10**4299]
    assert ids_read(trace, ids) == [ids]


def test_a_number_and_the_text_that_spells_it_are_one_id_and_look_alikes_are_not(trace: MakeTrace) -> None:
    texts: list[int | str] = ["1", "-5", "0", str(2**70), "1" * 4300]
    others: list[int | str] = ["01", "-0", "+1", "1.0", "1e3", " 1", "1_0", "", "١", "9" * 4301, "-" + "9" * 4300]
    assert ids_read(trace, [1, 2], texts, [3], others) == [
        [1, 2],
        [1, -5, 0, 2**70, int("1" * 4300)],
        [3],
        others,
    ]


# --- block size ---


def test_blocks_have_512_tokens_unless_told(trace: MakeTrace) -> None:
    assert MooncakeReader(trace(GOOD)).block_tokens == 512
    assert MooncakeReader(trace(GOOD), block_tokens=16).block_tokens == 16


def test_a_size_that_the_trace_states_wins_and_holds_from_the_first_request_on(trace: MakeTrace) -> None:
    reader = MooncakeReader(trace(row(block_size=300), GOOD, row(block_size=300)), block_tokens=16)
    next(iter(reader))
    assert reader.block_tokens == 300
    list(reader)
    assert (reader.block_tokens, reader.warnings) == (300, [])


@pytest.mark.parametrize("first", [{"block_size": 64}, {}], ids=["stated", "default"])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_mixed_block_sizes_are_refused_even_among_bad_lines(
    first: dict[str, object], skip_bad: bool, trace: MakeTrace
) -> None:
    found = fault(trace(row(**first), row(block_size=16)), skip_bad=skip_bad)
    assert (found.line, found.path) == (2, "$.block_size")
    assert found.message == f"blocks of 16 tokens, but of {first.get('block_size', 512)} before; " + (
        "expected one size in a trace"
    )


def test_requests_whose_ids_do_not_fit_their_length_are_counted_not_refused(trace: MakeTrace) -> None:
    fits = [row(input_length=512, hash_ids=[1]), row(input_length=513, hash_ids=[1, 2])]
    odd = [row(input_length=512, hash_ids=[1, 2]), row(input_length=1025, hash_ids=[1]), row(hash_ids=[])]
    reader = MooncakeReader(trace(*fits, *odd))
    assert len(list(reader)) == 5
    assert reader.odd_requests == 3
    assert reader.warnings == [
        "3 of 5 requests list more or fewer blocks than their input_length fills at 512 tokens a block; "
        "the first: line 3, 2 ids for 512 tokens"
    ]


# --- faults ---

WHOLE = b'{"input_length":600,"hash_ids":[7,8]'


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (b'{"output_length":2748 6}', 23, 'expected "," or "}", found "6" (after "output_length":2748)'),
        (WHOLE + b"} x", 39, 'expected the end of the line, found "x" (after 8]})'),
        (WHOLE + b"}{}", 38, 'expected the end of the line, found "{" (after 8]})'),
        (WHOLE + b",a:1}", 38, 'expected a key in double quotes, found "a"'),
        (WHOLE + b',"a" 1}', 42, 'expected ":", found "1" (after "a")'),
        (WHOLE + b',"a":[1 2]}', 45, 'expected "," or "]", found "2" (after 1)'),
        (WHOLE + b',"a":NaN}', 42, 'NaN is no JSON number (after "a":)'),
        (WHOLE + b',"a":-Infinity}', 42, '-Infinity is no JSON number (after "a":)'),
        (WHOLE + b',"a":trve}', 42, 'unexpected "trve" (after "a":)'),
        (WHOLE + b',"a":"\\q"}', 43, 'invalid escaped character, found "\\" (after "a":")'),
        (WHOLE + b',"a":"\\ud800"}', 43, 'invalid utf-16 surrogate pair, found "\\" (after "a":")'),
        (WHOLE + b',"\xc3\xa9\xc3\xa9":1 2}', 45, 'expected "," or "}", found "2" (after "éé":1)'),
        (WHOLE + b"\x1b[31m}", 37, 'expected "," or "}", found "\\u001b" (after 8])'),
        (WHOLE, 37, "the line ends before the request does (after 8])"),
        (WHOLE + b"\r", 37, "the line ends before the request does (after 8])"),
    ],
)
def test_a_line_that_is_not_json_says_at_which_column_and_why(
    line: bytes, column: int, words: str, trace: MakeTrace
) -> None:
    found = fault(trace(GOOD, line, GOOD))
    assert str(found) == f"t.jsonl:2:{column}: not JSON: {words}"


@pytest.mark.parametrize(
    "keys", [b'"hash_ids":["\xc3\xa9\xff"]', b'"ignored":"\xc3\xa9\xff"', b'"kv_load_tiers":"\xc3\xa9\xff"']
)
def test_text_that_is_not_utf8_says_at_which_column_even_where_it_is_ignored(keys: bytes, trace: MakeTrace) -> None:
    found = fault(trace(b'{"input_length":1,"hash_ids":[1],' + keys + b"}"))
    assert str(found) == f"t.jsonl:1:{33 + keys.index(0xFF)}: not UTF-8: unexpected byte 0xff"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[1,2]", "expected a JSON object (a request), got array"),
        (b"17", "expected a JSON object (a request), got int"),
        (row(hash_ids=[1, 2.0]), "$.hash_ids[1]: expected int or str, got float"),
        (row(hash_ids=["a", True]), "$.hash_ids[1]: expected int or str, got bool"),
        (row(hash_ids=[1, None]), "$.hash_ids[1]: expected int or str, got null"),
        (row(hash_ids=[[1]]), "$.hash_ids[0]: expected int or str, got array"),
        (row(hash_ids=None), "$.hash_ids: expected array, got null"),
        (WHOLE + b',"hash_ids":[1e3]}', "$.hash_ids[0]: expected int or str, got float"),
        (WHOLE + b',"hash_ids":[' + b"9" * 5000 + b"]}", "$.hash_ids[0]: expected a number of at most 4,299 digits"),
        (row(input_length=-5), "$.input_length: expected a length of 0 to 2^53 tokens, got -5"),
        (row(output_length=-1), "$.output_length: expected a length of 0 to 2^53 tokens, got -1"),
        (row(input_length=2**53 + 1), "$.input_length: expected a length of 0 to 2^53 tokens"),
        (row(input_length=1.0), "$.input_length: expected int, got float"),
        (row(input_length="600"), "$.input_length: expected int, got str"),
        (row(timestamp="noon"), "$.timestamp: expected int, float or null, got str"),
        (WHOLE + b',"timestamp":1e999}', "$.timestamp: expected a number up to 1.8e308"),
        (row(timestamp=2**64), "$.timestamp: expected milliseconds, at most 2^63"),
        (row(block_size=0), "$.block_size: expected a block size of 1 token or more"),
        (row(id=[]), "$.id: expected int, str or null, got array"),
        (WHOLE + b',"x":' + b"[" * 100_000, "brackets are nested too deeply; a request needs three levels"),
        ({"hash_ids": [1]}, "the request has no input_length"),
        ({"input_length": 5}, "the request has no hash_ids"),
    ],
)
def test_a_value_that_no_request_has_is_refused_with_its_line_and_path(
    line: bytes | dict[str, object], words: str, trace: MakeTrace
) -> None:
    assert str(fault(trace(GOOD, line, GOOD))) == f"t.jsonl:2: {words}"


def test_a_trace_without_block_ids_says_what_it_lacks(trace: MakeTrace) -> None:
    found = fault(trace({"input_length": 5, "output_length": 2}))
    assert found.message == "the request has no hash_ids"
    assert found.hint is not None
    assert "Without the ids of its blocks" in found.hint


@pytest.mark.parametrize("cut", [1, 10, 18, 30, len(WHOLE)])
def test_a_last_line_that_was_cut_off_is_called_that(cut: int, trace: MakeTrace) -> None:
    found = fault(trace(GOOD, WHOLE[:cut], end=b""))
    assert str(found) == "t.jsonl:2: the last line is cut off: it is not a whole request, and no newline follows"
    assert found.hint == (
        "If the trace is still being written, wait for its writer. "
        "1 request was read before it. Continue past bad lines with --skip-bad."
    )


@pytest.mark.parametrize(
    ("before", "hint"),
    [
        (0, "Continue past bad lines with --skip-bad."),
        (1, "1 request was read before it. Continue past bad lines with --skip-bad."),
        (1186, "1,186 requests were read before it. Continue past bad lines with --skip-bad."),
    ],
)
def test_a_fault_says_how_far_the_reading_came(before: int, hint: str, trace: MakeTrace) -> None:
    source = trace(*[GOOD] * before, b"{]")
    reader = MooncakeReader(source)
    with pytest.raises(InputError) as caught:
        list(reader)
    assert (caught.value.hint, reader.requests) == (hint, before)


def test_a_line_over_the_limit_is_refused_and_can_be_skipped(trace: MakeTrace) -> None:
    source = trace(GOOD, row(padding="x" * 2000), GOOD)
    assert str(fault(source, max_line_bytes=1000)) == "t.jsonl:2: the line is longer than 1,000 bytes"
    reader = MooncakeReader(source, max_line_bytes=1000, skip_bad=True)
    assert [request.line for request in reader] == [1, 3]


def test_skipped_lines_are_counted_and_the_first_three_kept(trace: MakeTrace) -> None:
    reader = MooncakeReader(trace(b"x", GOOD, b"[]", row(input_length=-1), b"{", GOOD), skip_bad=True)
    assert [(request.index, request.line) for request in reader] == [(0, 2), (1, 6)]
    assert reader.bad_lines == 4
    assert [example.line for example in reader.bad_examples] == [1, 3, 4]
    assert reader.warnings == ['4 bad lines skipped; the first: t.jsonl:1:1: not JSON: unexpected "x"']


@pytest.mark.parametrize(
    ("lines", "skip_bad", "words"),
    [((b"", b" \t"), False, "holds no request, only blank lines"), ((b"x", b"", b"y"), True, "no request in 3 lines")],
)
def test_a_trace_without_any_request_is_an_error(
    lines: tuple[bytes, ...], skip_bad: bool, words: str, trace: MakeTrace
) -> None:
    assert words in str(fault(trace(*lines), skip_bad=skip_bad))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 90), junk=st.binary(max_size=4).filter(lambda junk: b"\0" not in junk), drop=st.integers(0, 3))
def test_a_mangled_line_is_a_request_or_a_fault_with_its_line(
    at: int, junk: bytes, drop: int, trace: MakeTrace
) -> None:
    good = json.dumps(row(id="a\u00e9", kv_load_tiers=[{"medium": "cpu"}], timestamp=1.5)).encode()
    mangled = good[:at] + junk + good[at + drop :]
    reader = MooncakeReader(trace(GOOD, mangled, GOOD), skip_bad=True)
    kept = [request.line for request in reader]
    assert (kept[0], kept[-1]) == (1, 3 + mangled.count(b"\n"))
    for example in reader.bad_examples:
        assert example.line is not None
        assert 2 <= example.line <= 2 + mangled.count(b"\n")
        if example.column is not None:
            assert 1 <= example.column <= len(mangled) + 1
