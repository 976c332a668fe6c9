"""Checkpoints: a run that is put back goes on as it did, whatever its tiers are in the middle of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.checkpoint import CheckpointKeeper, restore, take
from kvtier_cli.replay.loop import Served
from kvtier_cli.replay.patterns import pattern_warnings
from kvtier_cli.replay.recorded_requests import RecordedRequests
from kvtier_cli.replay.state import manager_state
from kvtier_cli.replay.trace_run import KeptTiers, TraceRun
from kvtier_cli.tiering.model import Medium
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import PrimarySpec, TierSpec, Topology
from kvtier_cli.traces.source import TraceSource
from tests.replay.random_runs import topologies, trace_of


@contextmanager
def run_of(path: Path, trace: str, topology: Topology, *, events: bool = False) -> Iterator[TraceRun]:
    path.write_text(trace)
    with TraceSource(path) as source:
        yield TraceRun([source], topology, events=events)


def everything(run: TraceRun) -> Any:
    """All that anybody can see of a run."""
    manager = run.manager
    return (
        run.figures(),
        manager_state(manager),
        [tier.due_in(job.job_id) for job in manager.transfers.jobs.values() for tier in named(run, job.tier)],
        [run.history.last_loss(key) for key in range(100)],
        [remembered(tier) for tier in manager.own_tiers()],
        list(manager.transfers._primary_events),
        manager.ever_admitted(),
        pattern_warnings(run.loop, run.sums, own_filters=True),
    )


def remembered(tier: SecondaryTier) -> Any:
    lookups, asked_by = tier.lookups_remembered()
    return lookups, {req_id: sorted(keys) for req_id, keys in asked_by.items()}


def named(run: TraceRun, name: str) -> Sequence[Any]:
    return [tier for tier in run.manager.own_tiers() if tier.name == name]


def played(run: TraceRun, requests: RecordedRequests, stop: int | None = None) -> list[Any]:
    return [(served, everything(run)) for served in requests.steps(stop)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@given(topology=topologies, seed=st.integers(0, 10**6), at=st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_a_run_that_is_put_back_goes_on_to_the_same_end(
    folder: Path, topology: Topology, seed: int, at: list[int]
) -> None:
    with run_of(folder / "trace.jsonl", trace_of(seed, 12), topology, events=True) as run:
        requests = RecordedRequests(run)
        checkpoints = [take(run)]
        before = [everything(run)]
        results: list[Served] = []
        for served in requests.steps():
            results.append(served)
            before.append(everything(run))
            checkpoints.append(take(run, checkpoints[-1]))
        warnings = list(run.warnings)
        for start in at:
            restore(run, checkpoints[start])
            assert everything(run) == before[start]
            again = played(run, requests)
            assert [served for served, _ in again] == results[start:]
            assert [seen for _, seen in again] == before[start + 1 :]
        assert run.warnings == warnings


@given(topology=topologies, seed=st.integers(0, 10**6), start=st.integers(0, 8))
def test_a_checkpoint_outlives_another_course_and_those_taken_on_it(
    folder: Path, topology: Topology, seed: int, start: int
) -> None:
    with run_of(folder / "trace.jsonl", trace_of(seed, 10), topology) as run:
        requests = RecordedRequests(run)
        for _ in requests.steps(start):
            pass
        fork = take(run)
        course = played(run, requests)
        late = take(run, fork)
        restore(run, fork)
        for index in reversed(range(start, 10)):  # another order of requests, so another course
            numbers = requests.numbers(index)
            run.loop.replay(numbers, requests.filter_of(index), run.loop.first_new(numbers))
            other = take(run, late)
        elsewhere = everything(run)
        restore(run, late)
        assert everything(run) == (course[-1][1] if course else everything(run))
        restore(run, other)
        assert everything(run) == elsewhere
        restore(run, fork)
        assert played(run, requests) == course


@given(topology=topologies, seed=st.integers(0, 10**6), start=st.integers(1, 11))
def test_another_run_over_the_same_table_goes_on_from_a_checkpoint_as_the_first_did(
    folder: Path, topology: Topology, seed: int, start: int
) -> None:
    with run_of(folder / "trace.jsonl", trace_of(seed, 12), topology) as run:
        requests = RecordedRequests(run)
        for _ in requests.steps(start):
            pass
        checkpoint = take(run)
        course = played(run, requests)
        other = TraceRun([], topology, table=run.loop.table)
        other.loop.mark_faulty(range(len(run.loop.table)))
        restore(other, checkpoint)
        for index, (served, seen) in enumerate(course, start):
            numbers = requests.numbers(index)
            limits = run.limits_of(requests.head(index), len(numbers))
            first_new = other.loop.first_new(numbers)
            assert other.loop.replay(numbers, requests.filter_of(index), first_new, limits) == served
            assert [other.figures(), manager_state(other.manager)] == list(seen[:2])


def test_blocks_that_are_seen_again_after_going_back_are_as_cold_as_the_first_time(folder: Path) -> None:
    """The table of blocks has them all by then; what counts is what the requests before have had."""
    topology = Topology(primary=PrimarySpec(4))
    trace = "".join(
        json.dumps({"timestamp": index, "input_length": 32, "output_length": 1, "hash_ids": ids}) + "\n"
        for index, ids in enumerate([[1, 2], [3, 4], [5, 6], [1, 2]])
    )
    with run_of(folder / "cold.jsonl", trace, topology) as run:
        requests = RecordedRequests(run)
        begin = take(run)
        played(run, requests)
        assert run.sums.absent == {"cold": 3, "evicted": 1, "refused": 0, "offline": 0}
        restore(run, begin)
        played(run, requests, 3)
        assert run.sums.absent == {"cold": 3, "evicted": 0, "refused": 0, "offline": 0}


def test_a_tier_that_was_switched_off_is_on_again(folder: Path) -> None:
    topology = Topology(tiers=(TierSpec("nvme"),))
    with run_of(folder / "off.jsonl", trace_of(1, 6), topology) as run:
        checkpoint = take(run)
        run.manager.own_tiers()[0].offline = True
        restore(run, checkpoint)
        assert not run.manager.own_tiers()[0].offline


def test_a_trace_read_again_from_its_file_goes_on_from_a_checkpoint_too(folder: Path) -> None:
    path = folder / "again.jsonl"
    topology = Topology(primary=PrimarySpec(5), tiers=(TierSpec("nvme", capacity=9, load_latency=2),))
    with run_of(path, trace_of(3, 20), topology) as run:
        replayed = run.loop.run(run.requests(), run.filter_of, run.limits_of)
        for _ in range(7):
            next(replayed)
        checkpoint = take(run)
        replayed.close()
        restore(run, checkpoint)
        rest = list(run.requests())[7:]
        course = list(run.loop.run(rest, run.filter_of, run.limits_of))
        end = everything(run)
        restore(run, checkpoint)
        assert list(run.loop.run(rest, run.filter_of, run.limits_of)) == course
        assert everything(run) == end
    with run_of(path, trace_of(3, 20), topology) as straight:
        assert straight.run() == end[0]


def test_recorded_requests_replay_as_the_trace_does(folder: Path) -> None:
    topology = Topology(primary=PrimarySpec(5), tiers=(TierSpec("nvme", Medium.STORAGE, capacity=9),))
    path = folder / "recorded.jsonl"
    with run_of(path, trace_of(4, 30), topology) as run:
        figures, warnings = run.run(), run.warnings
    with run_of(path, trace_of(4, 30), topology) as run:
        requests = RecordedRequests(run)
        assert requests.read_to() == 30
        assert run.request is None, "reading ahead replays nothing"
        names = [run.request.index for _ in requests.steps() if run.request is not None]
        assert (run.figures(), run.warnings) == (figures, warnings)
        assert names == list(range(30))


def test_a_keeper_thins_its_checkpoints_and_still_reaches_every_request(folder: Path) -> None:
    topology = Topology(primary=PrimarySpec(6), tiers=(TierSpec("nvme", capacity=20, load_latency=1),))
    with run_of(folder / "kept.jsonl", trace_of(5, 60), topology) as run:
        requests = RecordedRequests(run)
        keeper = CheckpointKeeper(run, limit=4, spacing=5)
        states = [everything(run)]
        for _ in requests.steps():
            keeper.keep()
            states.append(everything(run))
        assert len(keeper) <= 4
        assert keeper.spacing > 5
        for target in (60, 17, 18, 3, 0, 59):
            keeper.seek(target, lambda stop: [None for _ in requests.steps(stop)])
            assert everything(run) == states[target]
        keeper.forget_after(17)
        assert keeper.at_or_before(60).request <= 17


def _within_a_request(run: TraceRun) -> None:
    run.manager.on_new_request("r1")


def _with_a_block_of_no_trace(run: TraceRun) -> None:
    run.loop.replay(["7"], requests_filter())


def requests_filter() -> Any:
    from kvtier_cli.tiering.filters import ALL

    return ALL


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(_within_a_request, "not finished"), (_with_a_block_of_no_trace, "whose blocks are numbers")],
)
def test_what_cannot_be_kept_is_refused(folder: Path, spoil: Callable[[TraceRun], None], message: str) -> None:
    with run_of(folder / "none.jsonl", trace_of(1, 2), Topology(tiers=(TierSpec("nvme"),))) as run:
        spoil(run)
        with pytest.raises(ManagerError, match=message):
            take(run)


def test_runs_that_outlive_the_process_and_other_runs_are_refused(folder: Path) -> None:
    with run_of(folder / "one.jsonl", trace_of(1, 2), Topology()) as run:
        with pytest.raises(ManagerError, match="outlive"):
            take(TraceRun([], Topology(), kept=KeptTiers([])))
        with pytest.raises(ManagerError, match="another run"):
            restore(TraceRun([], Topology()), take(run))
