"""A trace from its file through the replay: sources, their block size and order, filters, and what is warned about."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay import own_params, trace_run
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import ALL, TierFilter, parse_tier_filter
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec, PrimarySpec, Topology
from kvtier_cli.traces.source import TraceSource
from tests.tiering.managers import NVME

MakeTrace = Callable[..., TraceSource]
SMALL = Topology(primary=PrimarySpec(2), tiers=(NVME,))
STORAGE = [{"medium": "storage"}]
CPU = [{"medium": "cpu"}]


def asks(*ids: int | str, **more: Any) -> dict[str, Any]:
    """A request for these blocks of 512 tokens."""
    return {"input_length": 512 * len(ids), "hash_ids": list(ids), **more}


def filters(raw: object) -> dict[str, Any]:
    """What a request carries to be under this filter."""
    return {"kv_transfer_params": {"kv_load_tiers": raw}}


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTrace:
    """Writes requests, or lines as they are, into a file and opens it."""
    monkeypatch.chdir(tmp_path)

    def make(*requests: dict[str, Any] | str, name: str = "t.jsonl") -> TraceSource:
        lines = [each if isinstance(each, str) else json.dumps(each) for each in requests]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return TraceSource(name)

    return make


def served(run: TraceRun) -> list[int]:
    """How many blocks each request was served."""
    return [each.loaded for each in run.steps()]


# Sources


def test_traces_that_are_joined_are_one_run(trace: MakeTrace) -> None:
    first = trace(asks(1, 2), name="a.jsonl")
    second = trace(asks(1, 2, 3), asks(9), name="b.jsonl")
    run = TraceRun([first, second], BUILT_IN)
    assert served(run) == [0, 2, 0]
    assert run.figures()["requests"] == 3


def test_a_trace_on_its_own_starts_from_nothing(trace: MakeTrace) -> None:
    source = trace(asks(1, 2))
    assert served(TraceRun([source], BUILT_IN)) == served(TraceRun([source], BUILT_IN)) == [0]


def test_traces_of_different_block_sizes_cannot_be_joined(trace: MakeTrace) -> None:
    sources = [trace(asks(1), name="a.jsonl"), trace(asks(1, block_size=16), name="b.jsonl")]
    with pytest.raises(InputError, match=r"^b\.jsonl: blocks of 16 tokens cannot join blocks of 512$"):
        TraceRun(sources, BUILT_IN).run()


def test_each_joined_trace_is_in_the_order_of_its_own_clock(trace: MakeTrace) -> None:
    sources = [trace(asks(1, timestamp=900), name="a.jsonl"), trace(asks(1, 2, timestamp=0), name="b.jsonl")]
    run = TraceRun(sources, BUILT_IN)
    assert served(run) == [0, 1]
    assert run.warnings == []


@pytest.mark.parametrize(
    ("stated", "topology_says", "tokens"), [(None, None, 512), (None, 16, 16), (64, None, 64), (64, 16, 64)]
)
def test_the_size_of_a_block_is_the_traces_else_the_topologys_else_512_tokens(
    trace: MakeTrace, stated: int | None, topology_says: int | None, tokens: int
) -> None:
    request = {"input_length": tokens, "hash_ids": [1], **({"block_size": stated} if stated else {})}
    run = TraceRun([trace(request)], replace(BUILT_IN, block=BlockSpec(topology_says)))
    for _ in run.steps():
        assert run.loop.block_tokens == tokens
    assert run.warnings == []


def test_a_topology_that_may_have_counted_blocks_of_another_size_is_said(trace: MakeTrace) -> None:
    sources = [trace(asks(1, block_size=512), name=name) for name in ("a.jsonl", "b.jsonl")]
    run = TraceRun(sources, replace(BUILT_IN, block=BlockSpec(16, 1024)))
    run.run()
    assert run.warnings == [
        "a.jsonl: its blocks have 512 tokens, not the 16 that the topology says: "
        "capacities given there as sizes count blocks of 16 tokens"
    ]


def test_progress_is_told_in_bytes_of_the_file(trace: MakeTrace) -> None:
    source = trace(*[asks(1)] * 50)
    told: list[int] = []
    TraceRun([source], BUILT_IN, on_bytes=told.append).run()
    assert sum(told) == source.size


def test_the_seconds_of_reading_are_those_of_sorting_and_of_each_request(
    trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(trace_run, "perf_counter", lambda: next(ticks))  # a second each time somebody looks
    timed = TraceRun([trace(asks(1, timestamp=5), asks(1, timestamp=1))], BUILT_IN, timed=True)
    timed.run()
    assert timed.read_seconds == 1 + 2 + 1  # the last finds the end of the trace


# Filters


def test_each_request_is_under_its_own_filter(trace: MakeTrace) -> None:
    source = trace(
        *(asks(1), asks(2), asks(3)),  # 1 is in nvme alone then
        asks(1, **filters(CPU)),
        asks(1, **filters(STORAGE)),
    )
    run = TraceRun([source], SMALL)
    assert served(run) == [0, 0, 0, 0, 1]
    assert run.figures()["outcomes"]["filtered"] == 1
    assert run.figures()["skipped_by_tier"] == {"nvme": 1}


@pytest.mark.parametrize(
    ("given_filter", "expected"), [(ALL, [0, 0, 0, 1, 1]), (parse_tier_filter([]).filter, [0, 0, 0, 0, 1])]
)
def test_a_filter_for_all_beats_those_of_the_requests(
    trace: MakeTrace, given_filter: TierFilter, expected: list[int]
) -> None:
    source = trace(asks(1), asks(2), asks(3), asks(1, **filters(CPU)), asks(1, **filters(["nonsense"])))
    run = TraceRun([source], SMALL, given_filter)
    assert served(run) == expected
    assert run.warnings == [], "what is not applied is not warned about"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "ALL"),
        ({"kv_transfer_params": None}, "ALL"),
        ({"kv_transfer_params": {}}, "ALL"),
        ({"kv_transfer_params": {"do_remote_prefill": True}}, "ALL"),
        ({"kv_transfer_params": [STORAGE]}, "ALL"),
        ({"kv_transfer_params": {"kv_load_tiers": None}}, "ALL"),
        ({"kv_transfer_params": {"kv_load_tiers": []}}, []),
        ({"kv_load_tiers": STORAGE}, [{"medium": "STORAGE", "locality": None}]),
    ],
)
def test_a_requests_own_filter_is_read_as_vllm_reads_it(
    trace: MakeTrace, more: dict[str, Any], expected: object
) -> None:
    run = TraceRun([trace(asks(1, **more))], BUILT_IN)
    (request,) = run.requests()
    assert run.filter_of(request).as_json() == expected


def test_the_filters_that_requests_carried_are_kept_once_each(trace: MakeTrace) -> None:
    run = TraceRun([trace(asks(1, **filters(CPU)), asks(1), asks(2, **filters([])), asks(3, **filters(CPU)))], BUILT_IN)
    run.run()
    assert [filter_.short() for filter_, _ in run.own_filters()] == ["cpu", "deny"]


def test_parameters_that_are_new_in_each_request_are_not_all_remembered(
    trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_params, "_KEPT", 3)
    requests = [asks(1, kv_transfer_params={"session": n, "kv_load_tiers": ["?"]}) for n in range(9)]
    run = TraceRun([trace(*requests)], BUILT_IN)
    run.run()
    assert len(run.own_filters()) == 3
    assert run.warnings == [
        "vLLM would log 9 warnings about the requests' filters",
        "the filters of 9 requests fail open: they admit all",
    ]


def test_parameters_that_cannot_be_read_are_told_with_their_line(trace: MakeTrace) -> None:
    long = f'{{"input_length":512,"hash_ids":[1],"kv_transfer_params":{{"n":{"9" * 5_000}}}}}'
    run = TraceRun([trace(asks(1), long)], BUILT_IN)
    with pytest.raises(InputError) as raised:
        run.run()
    assert str(raised.value) == "t.jsonl:2: $.kv_transfer_params: holds a number of more than 4,300 digits"


# What the reader of a result should know


def test_a_trace_in_order_with_good_filters_has_no_warnings(trace: MakeTrace) -> None:
    run = TraceRun([trace(asks(1, timestamp=0, **filters(STORAGE)), asks(2, timestamp=0))], BUILT_IN)
    run.run()
    assert run.warnings == []


def test_timestamps_out_of_order_are_sorted_and_said(trace: MakeTrace) -> None:
    source = trace(asks(1, 2, timestamp=7), asks(1, timestamp=9), asks(1, 2, 3, timestamp=8), asks(5, timestamp=9))
    run = TraceRun([source], BUILT_IN)
    assert [len(each.keys) for each in run.steps()] == [2, 3, 1, 1]
    assert run.warnings == ["t.jsonl: its timestamps are out of order from line 3 on; the requests were sorted"]


def test_bad_lines_are_left_out_and_said_when_asked_for(trace: MakeTrace) -> None:
    source = trace(asks(1), "5", asks(1, 2), "{")
    run = TraceRun([source], BUILT_IN, skip_bad=True)
    assert served(run) == [0, 1]
    assert run.warnings == [
        "t.jsonl: 2 bad lines skipped; the first: t.jsonl:2: expected a JSON object (a request), got int"
    ]
    with pytest.raises(InputError, match=r"^t\.jsonl:2: "):
        TraceRun([source], BUILT_IN).run()


def test_filters_that_fail_open_are_said_and_what_vllm_would_log(trace: MakeTrace) -> None:
    one = TraceRun([trace(asks(1, **filters([{"medum": "storage"}])), asks(2))], BUILT_IN)
    one.run()
    assert one.warnings == ["the filters of 1 request fail open: they admit all"]
    logged = TraceRun([trace(asks(1, **filters([{"medium": "nvme"}, {"medium": "storage"}])))], BUILT_IN)
    logged.run()
    assert logged.warnings == ["vLLM would log 1 warning about the requests' filters"]


def test_every_warning_names_its_trace(trace: MakeTrace) -> None:
    sources = [
        trace(asks(1), asks(1, 2, input_length=5), name="a.jsonl"),
        trace(asks(1, timestamp=2), asks(1, timestamp=1), name="b.jsonl"),
    ]
    run = TraceRun(sources, BUILT_IN)
    run.run()
    odd, unsorted = run.warnings
    assert odd.startswith("a.jsonl: 1 of 2 requests list more or fewer blocks than their input_length fills")
    assert unsorted.startswith("b.jsonl: its timestamps are out of order")


# Who listens


def test_observers_listen_beside_the_runs_own_history(trace: MakeTrace) -> None:
    class Stores(Observer):
        def __init__(self) -> None:
            self.stored: list[int] = []

        def on_stored(self, req_id: Any, keys: Any, evicted: Any) -> None:
            self.stored.append(len(keys))

    source = trace(asks(1, 2), asks(3, 4), asks(1, 2))
    alone, heard = TraceRun([source], replace(SMALL, tiers=())), TraceRun([source], replace(SMALL, tiers=()))
    stores = Stores()
    heard.listen(stores)
    assert heard.run() == alone.run()
    assert stores.stored == [2, 2, 2]
    assert heard.figures()["absent_by_reason"]["evicted"] == 1


def test_the_request_under_replay_tells_when_it_arrived(trace: MakeTrace) -> None:
    run = TraceRun([trace(asks(1, timestamp=1500), asks(2), asks(3, timestamp=2000.5))], BUILT_IN)
    assert run.arrival_seconds() is None
    assert [run.arrival_seconds() for _ in run.steps()] == [1.5, None, 2.0005]
