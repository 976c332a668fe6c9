"""kvtier's own traces: whatever a request has survives being written and read."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import canonical
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.own import OwnReader
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.traces.write_own import OwnWriter

MakeTrace = Callable[..., TraceSource]

HEADER = {"kvtier": "trace", "version": 1, "block_tokens": 16}
ROW = {"input_length": 16, "hash_ids": [1]}

texts = st.text(st.characters(exclude_categories=["Cs"]))
requests = st.builds(
    Request,
    index=st.just(0),
    line=st.just(2),
    input_length=st.integers(0, 2**53),
    hash_ids=st.lists(st.integers() | st.integers(-(2**90), 2**90) | texts.map(canonical)),
    output_length=st.none() | st.integers(0, 2**53),
    timestamp=st.none() | st.integers(-(2**63), 2**63) | st.floats(-(2.0**63), 2.0**63, allow_nan=False),
    request_id=st.none() | texts,
    params=st.sampled_from([None, b"null", b'{"kv_load_tiers": [{"medium":"cpu"}], "x":\n1e5}']),
    session_id=st.none() | texts,
    tags=st.tuples(st.none() | texts, st.none() | texts),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=requests)
def test_what_is_written_is_read_again(request: Request, tmp_path: Path) -> None:
    path = tmp_path / "t"
    with path.open("wb") as file:
        OwnWriter(file, 64, tag_names=("tenant", "model"), source="a test").write(request)
    with TraceSource(path) as source:
        reader = OwnReader(source, TraceOptions(tags=("tenant", "model")))
        found = next(iter(reader))
        assert reader.block_tokens == 64
    if request.params is not None:
        assert found.params is not None
        assert found.params.translate(None, b" \n") == request.params.translate(None, b" \n")
        found.params = request.params
    assert found == request


def test_what_a_request_does_not_have_is_not_written() -> None:
    file = io.BytesIO()
    OwnWriter(file, 16).write(Request(0, 1, 20, [1, "a"]))
    assert file.getvalue().splitlines() == [
        b'{"kvtier":"trace","version":1,"block_tokens":16}',
        b'{"input_length":20,"hash_ids":[1,"a"]}',
    ]


def test_tags_come_from_the_tags_of_a_row_or_else_its_fields(trace: MakeTrace) -> None:
    rows = [{**ROW, "tags": {"tenant": "a", "n": 5}, "session_id": "s"}, {**ROW, "session_id": "s"}]
    reader = OwnReader(trace(HEADER, *rows), TraceOptions(tags=("tenant", "n", "session_id")))
    assert [request.tags for request in reader] == [("a", "5", "s"), (None, None, "s")]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({**HEADER, "version": 2}, "t.jsonl:1: is a kvtier trace of version 2; this kvtier reads version 1"),
        ({**HEADER, "kvtier": "log"}, 't.jsonl:1: $.kvtier: expected "trace"'),
        ({**HEADER, "block_tokens": 0}, "t.jsonl:1: $.block_tokens: expected a block size of 1 token or more"),
        ({**HEADER, "block_tokens": "16"}, "t.jsonl:1: $.block_tokens: expected int, got str"),
        ({"kvtier": "trace", "version": 1}, "t.jsonl:1: the header has no block_tokens"),
        ({**HEADER, "block_token": 1}, 't.jsonl:1: a header has no field "block_token"'),
        (ROW, "t.jsonl:1: the header has no kvtier"),
        (b"[1]", "t.jsonl:1: expected a JSON object (a header), got array"),
        (b'{"x":' + b"[" * 100_000, "t.jsonl:1: brackets are nested too deeply"),
    ],
)
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_header_that_is_none_is_always_an_error(
    header: bytes | dict[str, object], words: str, skip_bad: bool, trace: MakeTrace
) -> None:
    with pytest.raises(InputError) as caught:
        list(OwnReader(trace(header, ROW), skip_bad=skip_bad))
    assert str(caught.value).startswith(words)


def test_a_field_that_is_misspelt_is_told_the_nearest(trace: MakeTrace) -> None:
    with pytest.raises(InputError) as caught:
        list(OwnReader(trace(HEADER, {**ROW, "kv_transfer_param": {}})))
    assert str(caught.value) == 't.jsonl:2: a request has no field "kv_transfer_param"'
    assert caught.value.hint is not None
    assert caught.value.hint.startswith('Did you mean "kv_transfer_params"?')


def test_a_header_alone_is_no_trace(trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=r"holds no request$"):
        list(OwnReader(trace(HEADER)))
