"""A request saved as a fixture replays by itself to the outcomes that it had in its trace."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_ops
from kvtier_cli.replay.outcomes import Outcome, find_stop
from kvtier_cli.replay.slice import Origin, Slice, save_request, save_slice
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import FilterParse, parse_tier_filter
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.token_caps import TokenCaps
from kvtier_cli.tiering.topology import BUILT_IN, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.tiering.topology_file import load_topology
from kvtier_cli.traces.source import TraceSource
from tests.conftest import CHECKOUT, RECORDINGS
from tests.replay.random_runs import topologies, trace_of

SHARED_TRACES = RECORDINGS.parent / "data" / "mooncake"


def replayed(saved: Slice) -> dict[str, Any]:
    """The outcome of the fixture's request, when the fixture is replayed by itself; all its expectations are met."""
    fixture = fixture_from_text(saved.text, "slice.yaml")
    results = list(run_ops(fixture))
    assert [mismatch for result in results for mismatch in result.mismatches] == []
    assert results[-1].expectations
    return results[-1].outcome


def holds(saved: Slice) -> bool:
    """Whether the fixture alone gives every block the outcome and the tier that it had in the trace."""
    outcome = replayed(saved)
    blocks = saved.story.blocks
    return outcome["outcomes"] == [block.outcome.value for block in blocks] and outcome["tiers"] == [
        block.tier for block in blocks
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slices")


@contextmanager
def run_over(path: Path, topology: Topology) -> Iterator[TraceRun]:
    with TraceSource(path) as source:
        yield TraceRun([source], topology)


@given(topology=topologies, seed=st.integers(0, 10**6), index=st.integers(0, 11))
def test_whatever_the_tiers_are_in_the_middle_of(folder: Path, topology: Topology, seed: int, index: int) -> None:
    path = folder / "any.jsonl"
    path.write_text(trace_of(seed, 12))
    with run_over(path, topology) as run:
        assert holds(save_request(run, index, trace="any.jsonl"))


class Server:
    """A run whose history a test scripts: requests, resets."""

    def __init__(self, topology: Topology) -> None:
        self.run = TraceRun([], topology)

    def _keys(self, blocks: str) -> list[int]:
        return self.run.loop.table.keys(blocks.split())

    def replay(self, *prompts: str) -> None:
        for prompt in prompts:
            self.run.loop.replay(self._keys(prompt), parse_tier_filter().filter)

    def save(self, blocks: str, parse: FilterParse | None = None, caps: TokenCaps | None = None) -> Slice:
        origin = Origin("scripted", self.run.loop.requests)
        keys = self._keys(blocks)
        limits = None if caps is None else caps.limits(len(keys), self.run.loop.block_tokens)
        filter_ = parse or parse_tier_filter()
        return save_slice(self.run, keys, filter_, label="saved", origin=origin, limits=limits)


def server(capacity: int, *tiers: TierSpec, **spec: Any) -> Server:
    return Server(Topology(primary=PrimarySpec(capacity), tiers=tiers, replay=ReplaySpec(**spec)))


def denied_by_cascades() -> Slice:
    here = server(3, TierSpec("nvme"), TierSpec("slow", store_latency=9), max_wait_steps=2)
    here.replay("a b", "c d", *(["q"] * 10), "x y z")
    return here.save("a b")


def failed() -> Slice:
    here = server(3, TierSpec("nvme", fail_loads=frozenset({"b"})), max_wait_steps=3)
    here.run.loop.mark_faulty(range(0))
    for prompt in ("a b c", "x y z"):
        for key in here._keys(prompt):
            here.run.loop.mark_faulty([key])
        here.replay(prompt)
    return here.save("a b c")


def failed_by_chance() -> Slice:
    here = server(3, TierSpec("nvme", fail_rate=0.6, seed=7), max_wait_steps=1)
    for attempt in range(30):
        here.replay(f"a{attempt} b{attempt}", "x y z")
        if {f"a{attempt}", f"b{attempt}"} <= {
            here.run.loop.table.name(key) for key in here.run.manager.own_tiers()[0].blocks()
        }:
            saved = here.save(f"a{attempt} b{attempt}")
            if saved.story.stop is not None and saved.story.stop.outcome is Outcome.FAILED:
                return saved
    raise AssertionError("no load failed")


def held() -> Slice:
    here = server(3, TierSpec("nvme"))
    here.replay("a b c")
    here.run.manager.reset_cache()
    return here.save("a b c")


def held_behind_what_was_stored_since() -> Slice:
    here = server(3, TierSpec("nvme"))
    here.replay("a b c")
    here.run.manager.reset_cache()
    here.replay("a")
    return here.save("a b c")


def gave_up_on_a_prefix_longer_than_the_cpu_tier() -> Slice:
    here = server(3, TierSpec("nvme"), store_batch_blocks=1)
    here.replay("a b c d e", "x y z")
    return here.save("a b c d e")


def gave_up_on_retries() -> Slice:
    here = server(3, TierSpec("nvme", lookup_retry=9), max_wait_steps=4)
    here.replay("a b", "x y z")
    return here.save("a b")


def gave_up_on_a_slow_load() -> Slice:
    here = server(3, TierSpec("nvme", load_latency=9), max_wait_steps=2)
    here.replay("a b", "x y z")
    here.replay("a b")  # gives up, and what it promotes is still on its way
    return here.save("a b")


def evicted_by_another() -> Slice:
    here = server(2)
    here.replay("a b", "x y")
    return here.save("a b")


def refused_to_another() -> Slice:
    here = server(2)
    here.replay("a b c")
    return here.save("a b c")


def offline() -> Slice:
    here = server(2, TierSpec("nvme"))
    here.replay("a b", "x y")
    here.run.manager.own_tiers()[0].offline = True
    return here.save("a b")


def filtered() -> Slice:
    here = server(2, TierSpec("nvme", Medium.STORAGE, Locality.LOCAL, capacity=2), TierSpec("s3", Medium.STORAGE))
    here.replay("a b", "x y", "z w")
    return here.save("a b", parse_tier_filter([{"medium": "cpu"}]))


def capped() -> Slice:
    here = server(9, TierSpec("nvme"))
    here.replay("a b c d")
    return here.save("a b c d", caps=TokenCaps(2 * 512, 0))


SCRIPTED: list[tuple[Callable[[], Slice], str]] = [
    (denied_by_cascades, "denied"),
    (failed, "failed"),
    (failed_by_chance, "failed"),
    (held, "held"),
    (held_behind_what_was_stored_since, "held"),
    (gave_up_on_a_prefix_longer_than_the_cpu_tier, "gave_up"),
    (gave_up_on_retries, "gave_up"),
    (gave_up_on_a_slow_load, "gave_up"),
    (evicted_by_another, "absent evicted by r1"),
    (refused_to_another, "absent refused by r0"),
    (offline, "absent offline by None"),
    (filtered, "filtered"),
    (capped, "unreached"),
]


@pytest.mark.parametrize(("history", "expected"), SCRIPTED, ids=[history.__name__ for history, _ in SCRIPTED])
def test_every_way_to_miss_can_be_saved(history: Callable[[], Slice], expected: str) -> None:
    saved = history()
    assert holds(saved)
    why = replayed(saved)["why"]
    outcome = next(block.outcome for block in saved.story.blocks if block.outcome.value not in ("primary", "promoted"))
    assert expected in (outcome.value, f"{outcome.value} {why['reason']} by {why['by']}")


class Noted:
    """Notes which requests of a run have blocks of which outcome."""

    def __init__(self, run: TraceRun) -> None:
        self._run = run
        self.requests: dict[str, list[int]] = {outcome.value: [] for outcome in Outcome}
        run.loop.watcher = self
        run.run()

    def last_pass(self, req_id: int, keys: Sequence[Any], loaded: int, gave_up: bool, first_new: int) -> None:
        run = self._run
        request = run.manager.requests[req_id]
        run.sums.last_pass(req_id, keys, loaded, gave_up, first_new)
        stop = find_stop(run.manager, request, keys, loaded, gave_up, run.history)
        promoted = sum(key in request.promoted for key in keys[:loaded])
        found = [] if stop is None else [stop.outcome.value] + ["unreached"] * (len(keys) > loaded + 1)
        found += ["promoted"] * bool(promoted) + ["primary"] * (loaded > promoted)
        for outcome in found:
            self.requests[outcome].append(req_id)


def check_samples(trace: Path, topology: Topology, filters: object, each: int, outcomes: Sequence[str]) -> None:
    """Save `each` random requests that have blocks of each of these outcomes, in one replay, and replay each alone."""
    parse = parse_tier_filter(filters)
    with TraceSource(trace) as source:
        having = Noted(TraceRun([source], topology, parse.filter)).requests
    draw = random.Random(1)
    chosen = {name: draw.sample(having[name], min(each, len(having[name]))) for name in outcomes}
    assert all(chosen.values()), {name: len(found) for name, found in having.items()}
    wanted = {index for indexes in chosen.values() for index in indexes}
    with TraceSource(trace) as source:
        run = TraceRun([source], topology, parse.filter)
        for index, request in enumerate(run.requests()):
            if index not in wanted:
                next(run.loop.run([request], run.filter_of))
                continue
            saved = save_slice(run, run.loop.keys(request), parse, label=f"r{index}", origin=Origin("trace", index))
            assert holds(saved), index
            assert saved.blocks_kept <= len(request.hash_ids) * (1 + len(topology.tiers)) or saved.blocks_kept < 1000


MISSES = ("primary", "promoted", "filtered", "absent", "unreached")


@pytest.mark.parametrize("policy", ["lru", "arc"])
@pytest.mark.parametrize("trace", ["chat.jsonl", "agent.jsonl"])
def test_requests_of_a_trace_under_a_filter(trace: str, policy: str) -> None:
    topology = load_topology(str(CHECKOUT / "fixtures" / "demo.toml"))
    topology = replace(topology, primary=replace(topology.primary, policy=policy))
    check_samples(CHECKOUT / "fixtures" / trace, topology, [{"locality": "local"}], 3, MISSES)


@pytest.mark.soak
@pytest.mark.parametrize("trace", ["conversation_trace.jsonl", "synthetic_trace.jsonl"])
def test_a_hundred_requests_of_each_outcome_of_the_public_traces(trace: str) -> None:
    if not SHARED_TRACES.is_dir():
        pytest.skip(f"no public traces in {SHARED_TRACES}")
    check_samples(SHARED_TRACES / trace, BUILT_IN, [{"locality": "local"}], 100, MISSES)
