"""Traces in another format: what both formats have comes through, what only one has is counted."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.traces.convert import Conversion
from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.ids import canonical
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.traces.write_own import OwnWriter
from kvtier_cli.traces.writer import FIELDS
from kvtier_cli.traces.writers import WRITTEN
from tests.traces.conftest import MakeTrace
from tests.traces.examples import EXAMPLES

TAGS = ("tenant", "model")
FULL = {
    "timestamp": 1500,
    "input_length": 40,
    "output_length": 5,
    "hash_ids": [1, 2, 3],
    "block_size": 16,
    "request_id": "a",
    "session_id": "s",
    "kv_transfer_params": {"kv_load_tiers": [{"medium": "cpu"}]},
    "tenant": "t1",
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ids = st.integers(0, 40) | st.integers(-(2**90), 2**90) | texts.map(canonical)
requests = st.builds(
    Request,
    index=st.just(0),
    line=st.just(0),
    input_length=st.integers(1, 2**53),
    hash_ids=st.lists(ids, min_size=1, max_size=5),
    output_length=st.none() | st.integers(0, 2**53),
    timestamp=st.none() | st.integers(0, 2**40) | st.integers(0, 2**40).map(lambda microseconds: microseconds / 1000),
    request_id=texts.filter(lambda text: text != "-1"),
    params=st.sampled_from([None, b"null", b'{"kv_load_tiers":[{"medium":"cpu"}],"x":1e5}']),
    session_id=st.none() | texts,
    tags=st.tuples(st.none() | texts, st.none() | texts),
)


def own_trace(requests: Sequence[Request], block_tokens: int) -> bytes:
    file = io.BytesIO()
    writer = OwnWriter(file, block_tokens, tag_names=TAGS)
    for request in requests:
        writer.write(request)
    return file.getvalue()


def converted(
    path: Path, to: str, *, read_as: str | None = None, tags: Sequence[str] = ()
) -> tuple[Conversion, list[Request]]:
    """The conversion of the trace at `path`, and its requests as the reader of the other format reads them."""
    with TraceSource(path) as source:
        conversion = Conversion(source, WRITTEN[to], TraceOptions(format=read_as))
        with path.with_suffix(".out").open("wb") as file:
            conversion.write(file)
    with TraceSource(path.with_suffix(".out")) as source:
        reader = read_trace(source, TraceOptions(format=to, tags=tuple(tags)))
        found = list(reader)
        assert reader.block_tokens == conversion.block_tokens
    return conversion, found


@pytest.mark.parametrize("to", ["kvtier", "mooncake", "bailian", "kvcache-simulator"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=st.lists(requests, min_size=1, max_size=5, unique_by=lambda request: canonical(request.request_id or "")))
def test_what_both_formats_have_comes_through(to: str, trace: list[Request], tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(own_trace(trace, 16))
    conversion, found = converted(path, to, tags=TAGS)
    held = WRITTEN[to].writer_class().HOLDS
    if to == "kvcache-simulator":  # without times, so in order of arrival
        arrival: float = -1
        order = []
        for request in trace:
            arrival = arrival if request.timestamp is None else request.timestamp
            order.append(arrival)
        trace = [request for _, request in sorted(zip(order, trace, strict=True), key=lambda each: each[0])]
    for request, again in zip(trace, found, strict=True):
        assert (again.hash_ids, again.input_length) == (request.hash_ids, request.input_length)
        for field in held - {"session_id"}:
            assert getattr(again, field) == getattr(request, field)
    assert groups(found) == groups(trace) or "session_id" not in held
    expected = {
        name: sum(getattr(request, field) is not None for request in trace)
        for field, name in FIELDS.items()
        if field not in held
    }
    if to in ("kvtier", "mooncake"):
        assert [request.tags for request in found] == [request.tags for request in trace]
    else:
        for at, name in enumerate(TAGS):
            expected[name] = sum((request.tags or ())[at] is not None for request in trace)
    lost = {name: count for name, count in conversion.lost.items() if name != "name of session_id"}
    assert lost == {name: count for name, count in expected.items() if count}


def groups(trace: Sequence[Request]) -> set[frozenset[str | None]]:
    """Which requests are of one session."""
    sessions: dict[str, set[str | None]] = {}
    for request in trace:
        alone = f"alone {request.request_id}"
        sessions.setdefault(alone if request.session_id is None else f"s {request.session_id}", set()).add(
            request.request_id
        )
    return {frozenset(session) for session in sessions.values()}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("to", ["kvtier", "mooncake"])
def test_every_trace_that_is_read_can_be_written(name: str, to: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(EXAMPLES[name].content)
    with TraceSource(path) as source:
        before = list(read_trace(source, TraceOptions(format=name)))
    _, found = converted(path, to, read_as=name)
    for one, other in zip(before, found, strict=True):
        assert (one.hash_ids, one.input_length, one.timestamp, one.request_id, one.session_id) == (
            *(other.hash_ids, other.input_length, other.timestamp, other.request_id, other.session_id),
        )


def test_nothing_of_a_mooncake_trace_is_lost_in_kvtiers_own_format(trace: MakeTrace) -> None:
    with trace(FULL, {**FULL, "hash_ids": ["x", 2**70], "extra": {"deep": [1]}, "priority": None}) as source:
        conversion = Conversion(source, WRITTEN["kvtier"], TraceOptions())
        file = io.BytesIO()
        conversion.write(file)
    assert conversion.lost == {}
    assert conversion.tags == ("tenant", "extra")
    assert [json.loads(line) for line in file.getvalue().splitlines()][2] == {
        "request_id": "a",
        "session_id": "s",
        "timestamp": 1500,
        "input_length": 40,
        "output_length": 5,
        "hash_ids": ["x", 2**70],
        "kv_transfer_params": {"kv_load_tiers": [{"medium": "cpu"}]},
        "tags": {"tenant": "t1", "extra": '{"deep": [1]}'},
    }


@pytest.mark.parametrize(
    ("to", "row"),
    [
        (
            "bailian",
            b'{"chat_id":"a","parent_chat_id":-1,"timestamp":1.5,"input_length":40,"output_length":5,"type":"text",'
            b'"turn":1,"hash_ids":[1,2,3]}',
        ),
        ("kvcache-simulator", b'{"block_size":16,"input_length":40,"output_length":5,"hash_ids":[1,2,3]}'),
        ("libcachesim-csv", b"time,obj_id,size\n1,1,1\n1,2,1\n1,3,1"),
    ],
)
def test_what_is_written(trace: MakeTrace, to: str, row: bytes) -> None:
    with trace(FULL) as source:
        file = io.BytesIO()
        Conversion(source, WRITTEN[to], TraceOptions(), lossy=to == "libcachesim-csv").write(file)
    assert file.getvalue() == row + b"\n"


def test_turns_and_types_of_bailian_come_through(trace: MakeTrace, tmp_path: Path) -> None:
    first = {"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 20, "output_length": 1}
    rows = [
        {**first, "type": "search", "turn": 1, "hash_ids": [5, 6]},
        {**first, "chat_id": 9, "parent_chat_id": 7, "type": "file", "turn": 2, "hash_ids": [5, 8]},
    ]
    file = io.BytesIO()
    with trace(*rows) as source:
        conversion = Conversion(source, WRITTEN["bailian"], TraceOptions())
        conversion.write(file)
    assert [json.loads(line) for line in file.getvalue().splitlines()] == rows
    assert conversion.lost == {}


@pytest.mark.parametrize(
    ("to", "row", "words"),
    [
        ("bailian", {"block_size": 64}, "t.jsonl: bailian cannot hold its blocks of 64 tokens: there a block has 16"),
        (
            "libcachesim-csv",
            {},
            "t.jsonl: libcachesim-csv cannot hold where a request begins and ends: each block is an access of its own",
        ),
        ("libcachesim-csv", {"hash_ids": [-1]}, "t.jsonl:1: libcachesim-csv cannot hold this request: not all of its"),
        ("kvcache-simulator", {"hash_ids": []}, "t.jsonl:1: kvcache-simulator cannot hold this request: it has no bl"),
        ("kvcache-simulator", {"input_length": 0}, "t.jsonl:1: kvcache-simulator cannot hold this request: its prompt"),
    ],
)
def test_a_trace_that_would_lose_its_essentials_is_refused_unless_lossy(
    trace: MakeTrace, to: str, row: dict[str, Any], words: str
) -> None:
    with trace({**FULL, **row}, {**FULL, "block_size": row.get("block_size", 16)}) as source:
        with pytest.raises(InputError) as fault:
            Conversion(source, WRITTEN[to], TraceOptions())
        assert str(fault.value).startswith(words)
        assert (fault.value.hint or "").startswith("--lossy ")
        conversion = Conversion(source, WRITTEN[to], TraceOptions(), lossy=True)
        conversion.write(io.BytesIO())
        assert conversion.lost_essentials or conversion.left_out == 1


def test_a_trace_of_which_nothing_could_be_written_is_refused_even_so(trace: MakeTrace) -> None:
    with trace({**FULL, "hash_ids": []}) as source, pytest.raises(InputError, match="can hold none of its requests"):
        Conversion(source, WRITTEN["kvcache-simulator"], TraceOptions(), lossy=True)


def test_a_format_without_times_has_the_requests_in_order_of_arrival(trace: MakeTrace) -> None:
    rows = [{**FULL, "timestamp": time, "hash_ids": [time]} for time in (5, 3, 9)]
    with trace(*rows) as source:
        file = io.BytesIO()
        conversion = Conversion(source, WRITTEN["kvcache-simulator"], TraceOptions())
        conversion.write(file)
        assert [json.loads(line)["hash_ids"] for line in file.getvalue().splitlines()] == [[3], [5], [9]]
        assert conversion.sorted_from == 2
        kept = Conversion(source, WRITTEN["mooncake"], TraceOptions())
        assert kept.sorted_from is None
