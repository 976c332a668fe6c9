"""The shipped traces are what their generator makes, and traces as they are found in the field."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.source import TraceSource
from tests.conftest import CHECKOUT

FIXTURES = CHECKOUT / "fixtures"
TRACES = ("agent.jsonl", "chat.jsonl")


def test_the_generator_makes_the_same_bytes_again(tmp_path: Path) -> None:
    runpy.run_path(str(FIXTURES / "generate.py"))["write"](tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == list(TRACES)
    for name in TRACES:
        assert (tmp_path / name).read_bytes() == (FIXTURES / name).read_bytes(), "run fixtures/generate.py"


@pytest.mark.parametrize("name", TRACES)
def test_a_shipped_trace_reads_without_a_warning_in_order_of_arrival(name: str) -> None:
    reader = read_trace(TraceSource(FIXTURES / name))
    requests = list(reader)
    assert reader.warnings == []
    assert 200 <= len(requests) <= 400
    times = [request.timestamp or 0 for request in requests]
    assert times == sorted(times)


@pytest.mark.parametrize("name", TRACES)
def test_every_block_of_a_shipped_trace_has_one_place(name: str) -> None:
    behind: dict[int | str, int | str | None] = {}
    for request in read_trace(TraceSource(FIXTURES / name)):
        before: int | str | None = None
        for block in request.hash_ids:
            assert behind.setdefault(block, before) == before
            before = block


def test_agents_have_ids_of_their_own_that_count_the_calls_of_a_task() -> None:
    ids = [request.request_id or "" for request in read_trace(TraceSource(FIXTURES / "agent.jsonl"))]
    assert len(set(ids)) == len(ids)
    calls: dict[str, int] = {}
    for task, call in (each.split(".") for each in ids):
        assert int(call) == calls.get(task, -1) + 1
        calls[task] = int(call)
