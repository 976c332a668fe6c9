"""A request's story from a log is the one that a replay tells of it, but for what a log does not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_log import DecisionLog
from kvtier_cli.replay.logged_story import logged_story, logged_topology
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import deciding_line, headline, row_reason
from kvtier_cli.replay.story_model import Cell, RequestStory, StopStory, StoryBlock
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.replay.trace_teller import TraceTeller
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, Topology
from kvtier_cli.tiering.topology_write import topology_as_json
from kvtier_cli.traces.source import TraceSource
from tests.replay.logs import kept_log, write_trace
from tests.tiering.managers import NVME, S3

LOCAL = {"kv_load_tiers": [{"locality": "local"}]}
ODD = Topology(
    primary=PrimarySpec(3), tiers=(replace(S3, capacity=7, fail_loads=frozenset({"bad"})), replace(NVME, capacity=2))
)
CROWDED = Topology(
    primary=PrimarySpec(24),
    tiers=(replace(NVME, capacity=60, lookup_retry=1), replace(S3, capacity=200, load_latency=3)),
    replay=ReplaySpec(max_wait_steps=3),
)
OFFLINE = Topology(primary=PrimarySpec(40), tiers=(replace(NVME, offline=True), S3))


def odd_trace(folder: Path) -> Path:
    """Requests of which some are filtered, some fail to load, and some have nothing at all."""
    prompts: list[tuple[list[int | str], dict[str, object]]] = [
        *(([1, 2, 3], {"request_id": "first"}), ([4, 2], {}), ([7, 8], {}), ([1, 2, 3], LOCAL)),
        *((["bad"], {}), ([5, 6, 7], {}), (["bad", 8], {}), ([1, 2, 3], LOCAL), ([], {}), ([9], {}), ([1, 2], {})),
    ]
    lines = [json.dumps({"input_length": 512 * len(ids), "hash_ids": ids, **more}) for ids, more in prompts]
    path = folder / "odd.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def beginning_of(name: str, folder: Path, lines: int) -> Path:
    path = folder / name
    with shipped_fixture(name).open() as trace:
        path.write_text("".join(islice(trace, lines)))
    return path


def logged(trace: Path, topology: Topology, folder: Path) -> DecisionLog:
    return kept_log(trace, topology, folder / "l.kvlog", {"topology": {"name": "t", **topology_as_json(topology)}})


def from_log(log: DecisionLog) -> Iterator[RequestStory]:
    topology = logged_topology(log)
    return (logged_story(log, topology, log.request(number)) for number in range(log.requests))


def from_replay(trace: Path, topology: Topology, requests: int) -> Iterator[RequestStory]:
    with TraceSource(trace) as source:
        teller = TraceTeller(TraceRun([source], topology))
        for _ in range(requests):
            yield teller.tell()


def as_logged(story: RequestStory) -> RequestStory:
    """A replay's story without what a log does not know."""

    def block(each: StoryBlock) -> StoryBlock:
        verdicts = tuple(verdict.value for verdict in each.verdicts)
        known = verdicts if set(verdicts) - {"not_reached"} else ()
        return replace(each, result=None, looks=None, steps=None, verdicts=known, cells=())

    def stop(each: StopStory) -> StopStory:
        slots = None if each.outcome is Outcome.DENIED else ()
        waiting_for = None if each.outcome is Outcome.GAVE_UP else ()
        return replace(each, slots=slots, answer=None, waiting_for=waiting_for, failure=None, tries=None)

    return replace(
        story,
        filter=story.filter.filter.as_json(),
        blocks=tuple(map(block, story.blocks)),
        stop=None if story.stop is None else stop(story.stop),
        pass_looks=(),
        stores=(),
        evicted=(),
    )


def is_beyond_a_log(block: StoryBlock) -> bool:
    """Whether an earlier pass met the block in the primary, or without a slot, before another one became the stop."""
    return block.cells[0] in (Cell.READY, Cell.PENDING) or Cell.NO_SLOT in block.cells


@pytest.mark.parametrize(
    ("name", "topology", "outcomes"),
    [
        ("odd.jsonl", ODD, {Outcome.FILTERED, Outcome.FAILED, Outcome.ABSENT}),
        ("chat.jsonl", CROWDED, {Outcome.PROMOTED, Outcome.GAVE_UP, Outcome.DENIED, Outcome.UNREACHED}),
        ("agent.jsonl", OFFLINE, {Outcome.PRIMARY, Outcome.ABSENT}),
    ],
)
def test_a_log_tells_a_request_s_story_as_a_replay_does(
    name: str, topology: Topology, outcomes: set[Outcome], tmp_path: Path
) -> None:
    trace = odd_trace(tmp_path) if name == "odd.jsonl" else beginning_of(name, tmp_path, 200)
    log = logged(trace, topology, tmp_path)
    met = set()
    for told, lived in zip(from_log(log), from_replay(trace, topology, log.requests), strict=True):
        assert as_logged(told) == as_logged(lived)
        assert headline(told) == headline(lived)
        met |= {block.outcome for block in told.blocks}
        for one, other in zip(told.blocks, lived.blocks, strict=True):
            assert one.cells == other.cells or (one.index >= told.served and is_beyond_a_log(other))
    assert outcomes <= met


def test_what_a_log_does_not_know_is_left_out_of_the_words(tmp_path: Path) -> None:
    found: dict[Outcome, RequestStory] = {}
    log = logged(beginning_of("chat.jsonl", tmp_path, 200), CROWDED, tmp_path)
    for story in from_log(log):
        if story.stop is not None:
            found.setdefault(story.stop.outcome, story)
    denied, given_up = found[Outcome.DENIED], found[Outcome.GAVE_UP]
    assert denied.stop is not None
    assert str(deciding_line(denied)).endswith("; the CPU tier could give no slot.")
    assert row_reason(denied, denied.blocks[denied.stop.at]).endswith(" hit, but no slot")
    assert "it could not be loaded in pass 4" in str(deciding_line(given_up))
    promoted = next(b for story in from_log(log) for b in story.blocks if b.outcome is Outcome.PROMOTED)
    assert row_reason(denied, promoted) == f"from {promoted.tier}"


def test_a_block_that_was_given_up_in_the_primary_is_told_without_verdicts(tmp_path: Path) -> None:
    log = logged(beginning_of("chat.jsonl", tmp_path, 200), CROWDED, tmp_path)
    lines = [
        deciding_line(story)
        for story in from_log(log)
        if story.stop is not None and story.blocks[story.stop.at].cells[0] in (Cell.BLANK, Cell.HOLDS)
    ]
    assert lines
    assert all(": it could not be loaded in pass" in str(line) for line in lines)


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        ({"tiers": [{"name": "x"}]}, "is damaged: its topology has other tiers than its rows"),
        ({"tiers": 7}, "expected a list"),
    ],
)
def test_a_topology_that_cannot_be_is_an_error(topology: dict[str, object], said: str, tmp_path: Path) -> None:
    log = kept_log(write_trace(tmp_path / "t.jsonl", [1]), ODD, tmp_path / "l.kvlog", {"topology": topology})
    with pytest.raises(InputError, match=said) as caught:
        logged_topology(log)
    assert caught.value.file == str(tmp_path / "l.kvlog")


@pytest.mark.parametrize("effective", ["storage", [{"medium": "tape"}], [7], None])
def test_a_filter_that_cannot_be_is_an_error(effective: object, tmp_path: Path) -> None:
    about = {"topology": topology_as_json(ODD), "filter": {"effective": effective}}
    log = kept_log(write_trace(tmp_path / "t.jsonl", [1]), ODD, tmp_path / "l.kvlog", about)
    with pytest.raises(InputError, match="is damaged: it has a filter that cannot be"):
        next(from_log(log))
