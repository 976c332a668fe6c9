"""One request explained: which block is meant, what is told, and that what would have been is true."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.explain import (
    Explanation,
    explain,
    filter_skipped,
    without_filter,
)
from kvtier_cli.replay.life import BlockLife, Deed
from kvtier_cli.replay.life_words import life_rows, short_life
from kvtier_cli.replay.pass_words import evicted_rows, pass_rows, promotion_sentence, store_sentence
from kvtier_cli.replay.placements import Placements
from kvtier_cli.replay.prompt import Prompt, find_block, read_prompt
from kvtier_cli.replay.reasons import headline
from kvtier_cli.replay.trace_lookup import request_story
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.replay.trace_teller import TraceTeller
from kvtier_cli.replay.watchers import PassWatchers
from kvtier_cli.tiering.filters import FilterParse, parse_tier_filter
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.tiering.topology_shape import topology_from_builtins
from kvtier_cli.traces.source import TraceSource
from tests.conformance.test_replay_figures import RUNS, TRACES, recorded
from tests.conftest import CHECKOUT, python_environment
from tests.replay.test_trace_lookup import MakeTrace, run_of
from tests.replay.test_trace_lookup import trace as trace  # noqa: PLC0414 - a fixture
from tests.tiering.managers import NVME, S3

DENY: list[dict[str, str]] = [{"medium": "cpu"}]
LOCAL = [{"medium": "storage", "locality": "local"}]
TIERS = [
    {"name": "nvme", "medium": "storage", "locality": "local", "capacity": 300},
    {"name": "s3", "medium": "storage", "locality": "remote"},
]


def shape(capacity: int = 96, nvme: int = 300, **replay: Any) -> dict[str, Any]:
    return {"primary": {"capacity": capacity}, "tiers": [{**TIERS[0], "capacity": nvme}, TIERS[1]], "replay": replay}


def explained(
    source: TraceSource,
    topology: Topology,
    index: int,
    kv_load_tiers: object = None,
    *,
    block: int | None = None,
) -> Explanation:
    parse = None if kv_load_tiers is None else parse_tier_filter(kv_load_tiers)
    prompt = read_prompt(TraceRun([source], topology), index)
    return explain(run_with(source, topology, parse), index, prompt, parse, block=block)


def run_with(source: TraceSource, topology: Topology, parse: FilterParse | None) -> TraceRun:
    return TraceRun([source], topology, None if parse is None else parse.filter)


def small(capacity: int, *tiers: TierSpec, **replay: Any) -> Topology:
    return Topology(primary=PrimarySpec(capacity), tiers=tiers or (NVME, S3), replay=ReplaySpec(**replay))


# Which block is meant


PROMPT = Prompt((0, 1, 2, 5, 6), (40, 7, 7, "x", 2), ("40", "7", "7~2", "x", "2~3"))


@pytest.mark.parametrize(
    ("text", "index"), [("40", 0), ("7", 1), ("7~1", 1), ("7~2", 2), ("x", 3), ("2", 4), ("2~3", 4), ("0", 0), ("3", 3)]
)
def test_a_block_goes_by_its_name_then_its_id_then_its_place(text: str, index: int) -> None:
    assert find_block(PROMPT, text, "r1", "t.jsonl") == index


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("5", "Its blocks count from 0 to 4, or go by their ids."),
        ("7~3", 'Its blocks count from 0 to 4, or go by their ids. Did you mean "7~2"?'),
        ("-1", "Its blocks count from 0 to 4, or go by their ids."),
        ("", "Its blocks count from 0 to 4, or go by their ids."),
    ],
)
def test_a_block_that_the_request_does_not_have_is_refused(text: str, hint: str) -> None:
    with pytest.raises(InputError, match="r1 has no block") as caught:
        find_block(PROMPT, text, "r1", "t.jsonl")
    assert caught.value.hint == hint


def test_an_id_of_several_of_its_blocks_asks_for_the_name() -> None:
    prompt = Prompt((3, 4), (7, 7), ("7~2", "7~3"))
    with pytest.raises(InputError, match='2 blocks of r1 have the id "7"') as caught:
        find_block(prompt, "7", "r1", "t.jsonl")
    assert caught.value.hint == "Give one's name: 7~2, 7~3."


# What is told


def test_each_pass_has_its_step_and_each_lookup_its_verdicts(trace: MakeTrace) -> None:
    source = trace([1, 2], [3, 4], [1, 2, 9])
    story = explained(source, small(2), 2).story
    assert [(row.number, row.step, row.first, row.last, row.answer, row.said) for row in pass_rows(story)] == [
        (1, 2, 0, 1, "pending", "nvme hit, promotion started"),
        (1, 2, 2, 2, "miss", "nvme miss, s3 miss"),
        (2, 3, 0, 1, "hit", "cpu has it"),
        (2, 3, 2, 2, "miss", "nvme miss, s3 miss"),
    ]
    assert promotion_sentence(story) == "It started 2 promotions from nvme."


def test_what_its_cascades_evict_later_is_told_with_who_had_put_it_there(trace: MakeTrace) -> None:
    source = trace([1, 2], [3], [4])
    found = explained(source, small(2, TierSpec("nvme", capacity=2), S3), 1)
    assert [(row.tier, row.cause, row.blocks, row.unread, row.put) for row in evicted_rows(found.story)] == [
        ("cpu", "stores", 1, 1, "stored by r0"),
        ("nvme", "cascades", 1, 1, "cascaded by r0"),
    ]


def test_it_is_told_so_even_where_the_trace_ends_before(trace: MakeTrace) -> None:
    tiers = (TierSpec("nvme", capacity=2, store_latency=5), S3)
    story = explained(trace([1, 2], [3]), small(3, *tiers), 1).story
    assert [(block.block, block.tier, block.step) for block in story.evicted] == [("1", "nvme", 6)]


def test_refused_batches_are_told_apart_from_those_stored(trace: MakeTrace) -> None:
    tiers = (TierSpec("slow", store_latency=9),)
    story = explained(trace([1, 2, 3, 4]), small(3, *tiers, store_batch_blocks=2), 0).story
    assert [(len(batch.blocks), batch.refused) for batch in story.stores] == [(2, False), (2, True)]
    assert (
        store_sentence(story) == "It stored 2 blocks in step 0, in 2 batches; 1 of 2 batches of 2 blocks was refused."
    )


def test_the_block_it_stopped_at_has_a_short_life_up_to_then(trace: MakeTrace) -> None:
    found = explained(trace([1], [2], [3], [1], [1]), small(1, TierSpec("nvme", capacity=1), S3), 3, DENY)
    assert found.life is not None
    assert (found.life.block, found.life.whole, found.life.holders) == ("1", False, ("s3",))
    assert short_life(found.life) == (
        "Before that it was stored in cpu by r0 in step 0, cascaded to nvme and s3, "
        "evicted from cpu unread by r1 in step 1, evicted from nvme unread by r1 in step 2."
    )


def test_a_block_never_stored_has_none(trace: MakeTrace) -> None:
    found = explained(trace([1], [2]), small(1), 1)
    assert found.life is not None
    assert short_life(found.life) is None


def test_a_whole_life_goes_on_behind_the_request_to_the_end_of_the_trace(trace: MakeTrace) -> None:
    source = trace([1], [1], [1, 2], [1, 3], [4], [5])
    found = explained(source, small(2), 1, block=0)
    assert found.life is not None
    assert [(row.first, row.last, row.requests, row.own, row.what) for row in life_rows(found.life)] == [
        (0, 0, "r0", False, "not served: no tier had it (cold)"),
        (0, 0, "r0", False, "stored in cpu"),
        (1, 1, "r0", False, "cascaded to nvme and s3"),
        (1, 1, "r1", True, "loaded"),
        (2, 3, "r2 to r3", False, "loaded 2 times"),
        (5, 5, "r5", False, "evicted from cpu"),
    ]
    assert found.life.holders == ("nvme", "s3")


def test_a_doomed_promotion_that_is_started_in_each_pass_is_told_once(trace: MakeTrace) -> None:
    doomed = replace(NVME, fail_loads=frozenset({"1"}))
    source = trace([1], [2], [1])
    whole = explained(source, small(1, doomed, max_wait_steps=3), 2, block=0).life
    assert whole is not None
    assert [(row.first, row.last, row.what) for row in life_rows(whole)][-4:] == [
        (2, 5, "promoted from nvme 3 times, each load failed, jobs 2 to 4"),
        (5, 5, "promoted from nvme"),
        (5, 5, "not served: its load from nvme failed"),
        (6, 6, "its load from nvme failed, job 5"),
    ]
    before = explained(source, small(1, doomed, max_wait_steps=3), 2).life
    assert before is not None
    assert "promoted from nvme 3 times, each load failed, jobs 2 to 4 by this request in steps 2 to 5" in str(
        short_life(before)
    )


def test_a_life_names_who_was_refused_it_by_a_filter(trace: MakeTrace) -> None:
    source = trace([1], [2], [1], more=[{}, {}, {"id": "batch-7", "kv_load_tiers": DENY}])
    found = explained(source, small(1), 0, block=0)
    assert found.life is not None
    (filtered,) = [entry for entry in found.life.entries if entry.deed is Deed.FILTERED]
    assert (filtered.request, filtered.tier, filtered.own) == ("batch-7", "nvme", False)


@pytest.mark.parametrize("block", [None, 0])
def test_the_warnings_are_those_of_a_replay_of_the_whole_trace(trace: MakeTrace, block: int | None) -> None:
    typo = {"kv_load_tiers": [{"medum": "x"}]}
    source = trace([1], [2], [3], more=[typo, {}, typo])
    prompt = read_prompt(run_of(source), 0)
    run, replayed = run_of(source), run_of(source)
    explain(run, 0, prompt, block=block)
    replayed.run()
    assert run.warnings == replayed.warnings != []


# What would have been


def test_the_same_history_and_only_this_request_without_a_filter(trace: MakeTrace) -> None:
    source = trace([1, 2], [3, 4], [1, 2], [3, 4])
    topology = small(2)
    parse = parse_tier_filter(DENY)
    found = explained(source, topology, 3, DENY)
    assert filter_skipped(found.story)
    without = without_filter(run_with(source, topology, parse), 3)
    assert (without.served, without.by_tier) == (2, {"cpu": 0, "nvme": 2, "s3": 0})


def test_the_upper_bound_may_be_too_high_and_what_was_replayed_is_not(trace: MakeTrace) -> None:
    """Five blocks do not fit into a CPU tier of three: promoting all of them would be given up."""
    source = trace([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [9, 8, 7], [1, 2, 3, 4, 5])
    topology = small(3, store_batch_blocks=1)
    found = explained(source, topology, 4, DENY)
    without = without_filter(run_with(source, topology, parse_tier_filter(DENY)), 4)
    assert found.story.lost_to_filter > without.served


def test_a_filter_that_kept_from_asking_nothing_changes_nothing(trace: MakeTrace) -> None:
    assert not filter_skipped(explained(trace([1], [1]), small(2), 1, DENY).story)
    assert not filter_skipped(explained(trace([1], [2]), small(2), 1).story)


def forked(**task: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.replay.counterfactuals", json.dumps(task)],
        capture_output=True,
        text=True,
        env=python_environment(),
        check=False,
        cwd=CHECKOUT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SYNTHETIC = [
    ("chat", shape(), DENY),
    ("chat", shape(), LOCAL),
    ("chat", shape(40, 100), LOCAL),
    ("agent", shape(), LOCAL),
    ("agent", shape(64, 128, store_batch_blocks=8), DENY),
]


@pytest.mark.parametrize(("name", "topology", "kv_load_tiers"), SYNTHETIC)
def test_a_filtered_block_is_a_hit_where_the_filter_does_not_skip_its_tier(
    name: str, topology: dict[str, Any], kv_load_tiers: object
) -> None:
    trace = str(CHECKOUT / "fixtures" / f"{name}.jsonl")
    found = forked(trace=trace, topology=topology, kv_load_tiers=kv_load_tiers, stride=2, limit=30)
    assert found["wrong"] == []
    assert found["checked"] > 0


FILTERED_RUNS = ("local-only", "remote-only", "deny-all", "cpu-only")


def check_public(recordings: Path, trace: str, run: str, stride: int, limit: int) -> int:
    file = recordings.parent / "data" / "mooncake" / f"{trace}.jsonl"
    if not file.is_file():
        pytest.skip(f"the public trace {file.name} is not beside the recordings")
    recording = recorded(trace)["runs"][run]
    found = forked(
        trace=str(file),
        topology=recording["topology"],
        kv_load_tiers=recording["kv_load_tiers"],
        stride=stride,
        limit=limit,
    )
    assert found["wrong"] == []
    return int(found["checked"])


@pytest.mark.parametrize("trace", TRACES)
def test_so_are_some_of_the_public_traces(recordings: Path, trace: str) -> None:
    assert check_public(recordings, trace, "deny-all", 20, 25) == 25


@pytest.mark.soak
def test_so_are_a_thousand_of_them(recordings: Path) -> None:
    checked = [check_public(recordings, trace, run, 3, 500) for trace in TRACES for run in FILTERED_RUNS]
    assert sum(checked) >= 1_000


@pytest.mark.parametrize(("name", "topology", "kv_load_tiers"), SYNTHETIC[:3])
def test_what_would_have_been_served_is_what_a_fork_of_the_history_is_served(
    name: str, topology: dict[str, Any], kv_load_tiers: object
) -> None:
    trace = CHECKOUT / "fixtures" / f"{name}.jsonl"
    indices = [40, 120, 200, 284]
    forks = forked(trace=str(trace), topology=topology, kv_load_tiers=kv_load_tiers, indices=indices)
    parse, tiers = parse_tier_filter(kv_load_tiers), topology_from_builtins(topology, "t")
    with TraceSource(trace) as source:
        found = {str(index): without_filter(run_with(source, tiers, parse), index).served for index in indices}
    assert found == forks


# What it agrees with


@pytest.mark.parametrize("kv_load_tiers", [None, LOCAL, DENY])
def test_it_agrees_with_a_lookup_whose_history_ran_under_the_same_filters(
    tmp_path: Path, kv_load_tiers: list[dict[str, str]] | None
) -> None:
    topology = topology_from_builtins(shape(), "t")
    lines = (CHECKOUT / "fixtures" / "chat.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        if kv_load_tiers is not None:
            record["kv_load_tiers"] = kv_load_tiers
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with TraceSource(CHECKOUT / "fixtures" / "chat.jsonl") as plain, TraceSource(tmp_path / "t.jsonl") as own:
        for index in (0, 150, 284):
            parse = None if kv_load_tiers is None else parse_tier_filter(kv_load_tiers)
            looked_up = request_story(TraceRun([own], topology), index, parse)
            story = explained(plain, topology, index, kv_load_tiers).story
            assert (story.blocks, story.stop, story.pass_looks) == (
                looked_up.blocks,
                looked_up.stop,
                looked_up.pass_looks,
            )
            assert headline(story) == headline(looked_up)


def told_and_figures(source: TraceSource, topology: Topology, indices: Sequence[int], given: Any) -> Any:
    """The figures of a whole run in which the requests `indices` were told of."""
    parse = None if given is None else parse_tier_filter(given)
    run = run_with(source, topology, parse)
    placements, life = Placements(run.manager), BlockLife(run.manager, run.history, range(50))
    run.listen(placements, life)
    run.loop.watcher = PassWatchers([run.sums, life])
    teller = TraceTeller(run)
    at = 0
    for index in indices:
        teller.replay(index - at)
        teller.tell(parse, placements=placements, observers=[life])
        at = index + 1
    teller.replay()
    return run.figures()


@pytest.mark.parametrize(
    ("name", "topology", "kv_load_tiers"),
    [*SYNTHETIC, ("chat", shape(0, 0), None), ("agent", shape(30, 60, max_wait_steps=3), None)],
)
def test_a_replay_that_is_explained_has_the_figures_of_one_that_is_not(
    name: str, topology: dict[str, Any], kv_load_tiers: object
) -> None:
    tiers = topology_from_builtins(topology, "t")
    with TraceSource(CHECKOUT / "fixtures" / f"{name}.jsonl") as source:
        parse = None if kv_load_tiers is None else parse_tier_filter(kv_load_tiers)
        assert told_and_figures(source, tiers, (3, 4, 200), kv_load_tiers) == run_with(source, tiers, parse).run()


@pytest.mark.soak
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("run", RUNS)
def test_so_has_every_recorded_run(recordings: Path, trace: str, run: str) -> None:
    file = recordings.parent / "data" / "mooncake" / f"{trace}.jsonl"
    if not file.is_file():
        pytest.skip(f"the public trace {file.name} is not beside the recordings")
    recording = recorded(trace)["runs"][run]
    tiers, given = topology_from_builtins(recording["topology"], run), recording.get("kv_load_tiers")
    with TraceSource(file) as source:
        parse = None if given is None else parse_tier_filter(given)
        plain = run_with(source, tiers, parse).run()
        assert told_and_figures(source, tiers, (7, 1_000, 2_500), given) == plain
