"""Every row that the recorder keeps says what the request's story says of that block, whatever the tiers are like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.decision_columns import OUTCOMES, REASONS, VERDICTS, Part, holder_columns, unpack_holders
from kvtier_cli.replay.decision_recorder import DecisionRecorder
from kvtier_cli.replay.decision_verdicts import VerdictsFromPromotions, VerdictsHeard, can_derive, deciding_verdicts
from kvtier_cli.replay.outcomes import AbsentReason
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import FilterParse, parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import Verdict
from kvtier_cli.tiering.token_caps import BlockLimits, TokenCaps
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.model import Request
from tests.tiering.managers import NVME, S3
from tests.tiering.strategies import BLOCKS, block_lists, load_tiers, tier_lists

Trace = Sequence[tuple[list[str], FilterParse] | tuple[list[str], FilterParse, TokenCaps]]

topologies = st.builds(
    lambda capacity, policy, tiers, replay: Topology(primary=PrimarySpec(capacity, policy), tiers=tiers, replay=replay),
    st.integers(0, 8),
    st.sampled_from(("lru", "arc")),
    tier_lists(),
    st.builds(
        ReplaySpec,
        max_wait_steps=st.sampled_from((0, 1, 2, 4)),
        store_batch_blocks=st.sampled_from((0, 0, 1, 3)),
        identity=st.sampled_from(("chain", "chain", "chain", "id")),
    ),
)
caps = st.none() | st.integers(0, 9).map(lambda blocks: 512 * blocks)
prompts = block_lists().map(lambda numbers: [BLOCKS[number % len(BLOCKS)] for number in numbers])
traces = st.lists(
    st.tuples(
        prompts,
        load_tiers().map(lambda given: parse_tier_filter(given.get("kv_load_tiers"))),
        st.just(TokenCaps()) | st.builds(TokenCaps, caps, caps),
    ),
    max_size=14,
)


def requests_of(trace: Trace) -> Iterator[Request]:
    for number, (ids, *_) in enumerate(trace):
        yield Request(number, number + 1, 512 * len(ids), list(ids), params=b"{}")


def limits_of(trace: Trace, request: Request) -> BlockLimits:
    _, _, *caps = trace[request.index]
    return (caps[0] if caps else TokenCaps()).limits(len(request.hash_ids), 512)


def parts_of(topology: Topology, trace: Trace) -> tuple[DecisionRecorder, list[Part]]:
    """What a recorder hands over of that trace, each request under its own filter."""
    run = TraceRun([], topology)
    parts: list[Part] = []
    recorder = DecisionRecorder(run, parts.append)
    for _ in run.loop.run(
        requests_of(trace),
        lambda request: trace[request.index][1].filter,
        lambda request, _: limits_of(trace, request),
    ):
        pass
    recorder.close()
    return recorder, parts


def rows_of(topology: Topology, trace: Trace) -> list[list[Any]]:
    """The same in words, request by request: each block's outcome, tier, verdicts and holders; then what is said of the
    request: passes, whether it gave up, why its absent block is nowhere, by whom and left where."""
    recorder, parts = parts_of(topology, trace)
    names = recorder.tiers
    table = [tuple(VERDICTS[code] for code in codes) for codes in recorder.verdict_table()]
    found = []
    for part in parts:
        columns = part.columns
        held = unpack_holders([columns[name] for name in holder_columns(len(names))], len(names))
        for number in range(part.requests):
            rows = range(columns["start"][number], columns["start"][number + 1])
            blocks = [
                (
                    OUTCOMES[columns["outcome"][row]],
                    None if columns["tier"][row] < 0 else names[columns["tier"][row]],
                    table[columns["said"][row]],
                    tuple(name for name, holds in zip(names, held[row], strict=True) if holds),
                )
                for row in rows
            ]
            reason, by, left = (int(columns[name][number]) for name in ("reason", "by", "left"))
            told = (
                int(columns["passes"][number]),
                bool(columns["gave_up"][number]),
                None if reason == 0 else REASONS[reason - 1],
                None if by < 0 else f"r{by}",
                None if left < 0 else names[left],
            )
            found.append([blocks, told])
    return found


def stories_of(topology: Topology, trace: Trace) -> list[RequestStory]:
    run = TraceRun([], topology)
    return [
        tell_story(
            run.loop,
            run.loop.keys(request),
            trace[request.index][1],
            run.history,
            label="r",
            limits=limits_of(trace, request),
        )
        for request in requests_of(trace)
    ]


def told(story: RequestStory) -> list[Any]:
    """A story as `rows_of` has it."""
    nothing = (Verdict.NOT_REACHED,) * (len(story.tiers) - 1)
    blocks = [(block.outcome, block.tier, block.verdicts or nothing, block.holders) for block in story.blocks]
    stop = story.stop
    why = (None, None, None) if stop is None else (stop.reason, stop.by, stop.evicted_from)
    return [blocks, (story.passes, story.gave_up, *why)]


@given(topologies, traces)
def test_rows_are_what_the_stories_say(topology: Topology, trace: Trace) -> None:
    assert rows_of(topology, trace) == [told(story) for story in stories_of(topology, trace)]


@given(topologies, traces)
def test_verdicts_derived_from_promotions_are_those_of_the_lookups(topology: Topology, trace: Trace) -> None:
    quick = replace(
        topology,
        tiers=tuple(replace(tier, lookup_retry=0) for tier in topology.tiers),
        replay=replace(topology.replay, identity="chain"),
    )
    assert can_derive(TieringManager(quick), quick.replay)
    assert rows_of(quick, trace) == [told(story) for story in stories_of(quick, trace)]


@pytest.mark.parametrize(
    ("tier", "spec", "way"),
    [
        (NVME, ReplaySpec(), VerdictsFromPromotions),
        (replace(NVME, offline=True, load_latency=3), ReplaySpec(), VerdictsFromPromotions),
        (replace(NVME, lookup_retry=1), ReplaySpec(), VerdictsHeard),
        (NVME, ReplaySpec(identity="id"), VerdictsHeard),
    ],
)
def test_single_lookups_are_heard_only_where_they_tell_more(tier: TierSpec, spec: ReplaySpec, way: type) -> None:
    assert type(deciding_verdicts(TieringManager(Topology(tiers=(S3, tier))), spec)) is way


def test_a_part_holds_whole_requests_and_says_where_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvtier_cli.replay.decision_recorder.PART_ROWS", 3)
    everything = parse_tier_filter()
    trace = [(["a", "b"], everything), ([], everything), (["a", "b", "c"], everything), (["a"], everything)]
    _, parts = parts_of(Topology(tiers=(NVME,)), trace)
    assert [(part.first, part.requests, part.rows) for part in parts] == [(0, 3, 5), (3, 1, 1)]
    assert [part.columns["start"].tolist() for part in parts] == [[0, 2, 2, 5], [0, 1]]
    assert np.concatenate([part.columns["key"] for part in parts]).tolist() == [0, 1, 0, 1, 2, 0]


def test_many_tiers_have_as_many_bits_as_they_need() -> None:
    tiers = tuple(TierSpec(f"t{number}") for number in range(20))
    everything = parse_tier_filter()
    (_, _, (blocks, _)) = rows_of(
        Topology(tiers=tiers), [(["a"], everything), (["b"], everything), (["a"], everything)]
    )
    assert blocks[0][3] == ("cpu", *(tier.name for tier in tiers))


def test_an_evicted_block_names_who_evicted_it() -> None:
    everything = parse_tier_filter()
    small = Topology(primary=PrimarySpec(1))
    (_, _, (_, why)) = rows_of(small, [(["a"], everything), (["b"], everything), (["a"], everything)])
    assert why[2:] == (AbsentReason.EVICTED, "r1", "cpu")
