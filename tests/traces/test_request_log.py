"""Logs of OpenAI-style requests: each one's id and its kv_transfer_params, wherever a log has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.request_log import RequestLog, read_request_log
from kvtier_cli.traces.source import TraceSource

OWN = {"kv_load_tiers": [{"medium": "storage"}], "max_load_tokens": 512}


def read(folder: Path, *lines: dict[str, Any] | str | bytes, **how: Any) -> RequestLog:
    path = folder / "log.jsonl"
    texts = [each if isinstance(each, str | bytes) else json.dumps(each) for each in lines]
    path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + b"\n" for text in texts))
    with TraceSource(path) as source:
        return read_request_log(source, **how)


def found(log: RequestLog) -> dict[str, Any]:
    return {name: None if params is None else json.loads(params) for name, params in log.params.items()}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param({"id": "a", "kv_transfer_params": OWN}, id="beside the id"),
        pytest.param({"request_id": "a", "extra_body": {"kv_transfer_params": OWN}}, id="as a client gives it"),
        pytest.param(
            {"custom_id": "a", "method": "POST", "body": {"model": "m", "kv_transfer_params": OWN}}, id="a batch"
        ),
        pytest.param({"id": "a", "request": {"extra_body": {"kv_transfer_params": OWN}}}, id="a client's in a request"),
        pytest.param({"id": "a", "body": json.dumps({"kv_transfer_params": OWN})}, id="a body that is text"),
        pytest.param({"request_body": {"request_id": "a", "kv_transfer_params": OWN}}, id="the id in the body"),
        pytest.param(
            {"request_id": "a", "sampling_params": {"extra_args": {"kv_transfer_params": OWN}}}, id="vLLM's own place"
        ),
    ],
)
def test_parameters_are_found_where_logs_have_them(tmp_path: Path, line: dict[str, Any]) -> None:
    assert found(read(tmp_path, line)) == {"a": OWN}


@pytest.mark.parametrize(
    "line",
    [
        {"id": "a", "kv_transfer_params": None},
        {"id": "a", "body": {"messages": [{"content": '"kv_transfer_params"'}]}},
        {"id": "a", "body": "GET / HTTP/1.1"},
        {"id": "a", "body": "{ no json"},
        {"id": "a", "kv_load_tiers": []},
    ],
)
def test_a_request_that_carries_none_is_known_to_carry_none(tmp_path: Path, line: dict[str, Any]) -> None:
    assert found(read(tmp_path, line)) == {"a": None}


def test_the_body_itself_comes_before_what_a_client_adds_to_it(tmp_path: Path) -> None:
    line = {"id": "a", "kv_transfer_params": OWN, "extra_body": {"kv_transfer_params": {}}}
    assert found(read(tmp_path, line)) == {"a": OWN}


def test_an_id_may_be_a_number(tmp_path: Path) -> None:
    assert found(read(tmp_path, {"id": 2**70, "kv_transfer_params": {}})) == {str(2**70): {}}


def test_of_lines_with_one_id_the_last_holds_and_that_is_told(tmp_path: Path) -> None:
    log = read(tmp_path, {"id": "a", "kv_transfer_params": OWN}, "", {"id": "a"}, {"id": "b"})
    assert found(log) == {"a": None, "b": None}
    assert [text.partition(": ")[2] for text in log.warnings] == [
        "1 line repeats an id of lines before; of each id the last holds"
    ]


BAD = [
    pytest.param('{"id": "a"', "not JSON", id="cut off"),
    pytest.param("[1]", "expected a JSON object", id="a list"),
    pytest.param('{"kv_transfer_params": {}}', "the request has no id", id="no id"),
    pytest.param('{"id": ["a"]}', "expected int", id="an id that is none"),
    pytest.param(b'{"id": "a", "x": "\xff"}', "not UTF-8", id="no UTF-8"),
    pytest.param('{"id": "a", "kv_transfer_params": %s}' % ("9" * 5_000), "more than 4,300 digits", id="digits"),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_a_line_that_is_no_request_is_told_with_its_place(tmp_path: Path, line: str | bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        read(tmp_path, {"id": "x"}, line)
    assert raised.value.line == 2
    log = read(tmp_path, {"id": "x"}, line, skip_bad=True)
    assert (list(log.params), log.bad_lines) == (["x"], 1)
    assert "1 bad line skipped" in log.warnings[0]


def test_a_log_without_a_request_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no request"):
        read(tmp_path, "", "  ")


def test_a_line_that_is_too_long_is_bad(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="longer than 50 bytes"):
        read(tmp_path, {"id": "a", "body": "x" * 99}, max_line_bytes=50)
