"""Stories of whole traces: they agree with the figures of a replay, and telling them changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory, Outcome, OutcomeSums
from kvtier_cli.replay.reasons import deciding_line, headline, row_reason
from kvtier_cli.replay.state import manager_state
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import Cell, RequestStory
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, Topology
from tests.tiering.strategies import BLOCKS, block_lists, load_tiers, tier_lists

topologies = st.builds(
    lambda capacity, policy, tiers, replay: Topology(primary=PrimarySpec(capacity, policy), tiers=tiers, replay=replay),
    st.integers(0, 8),
    st.sampled_from(("lru", "arc")),
    tier_lists(),
    st.builds(
        ReplaySpec,
        max_wait_steps=st.sampled_from((0, 1, 4)),
        store_batch_blocks=st.sampled_from((0, 0, 1, 3)),
    ),
)
prompts = block_lists().map(lambda numbers: [BLOCKS[number % len(BLOCKS)] for number in numbers])
traces = st.lists(st.tuples(prompts, load_tiers().map(lambda given: given.get("kv_load_tiers"))), max_size=14)


def run_of(topology: Topology) -> tuple[ReplayLoop, OutcomeSums, BlockHistory]:
    history = BlockHistory()
    manager = TieringManager(topology, observer=history)
    sums = OutcomeSums(manager, history)
    return ReplayLoop(manager, topology.replay, 16, sums), sums, history


def tell_all(
    topology: Topology, trace: Sequence[tuple[list[str], Any]]
) -> tuple[ReplayLoop, OutcomeSums, list[RequestStory]]:
    loop, sums, history = run_of(topology)
    stories = [tell_story(loop, prompt, parse_tier_filter(raw), history, label="r") for prompt, raw in trace]
    return loop, sums, stories


@given(topologies, traces)
def test_the_outcomes_of_all_stories_are_those_of_the_replay(topology: Topology, trace: Any) -> None:
    loop, sums, stories = tell_all(topology, trace)
    counted = dict.fromkeys(Outcome, 0)
    for story in stories:
        assert sum(story.counts().values()) == len(story.blocks)
        for outcome, number in story.counts().items():
            counted[outcome] += number
    loaded = loop.manager.counters.blocks_loaded
    assert counted[Outcome.PRIMARY] + counted[Outcome.PROMOTED] == loaded == sum(story.served for story in stories)
    for outcome in Outcome:
        if outcome not in (Outcome.PRIMARY, Outcome.PROMOTED):
            assert counted[outcome] == sums.counts[outcome.value], outcome

    names = [tier.name for tier in topology.tiers]
    blocks = [block for story in stories for block in story.blocks]

    def by_tier(outcome: Outcome) -> list[int]:
        return [sum(block.tier == name for block in blocks if block.outcome is outcome) for name in names]

    assert by_tier(Outcome.PROMOTED) == loop.loaded_promoted
    assert by_tier(Outcome.FILTERED) == sums.filtered
    assert by_tier(Outcome.DENIED) == sums.denied
    assert by_tier(Outcome.UNREACHED) == sums.unreached_held
    stops = [story.stop for story in stories if story.stop is not None]
    for reason, number in sums.absent.items():
        assert sum(stop.reason is not None and stop.reason.value == reason for stop in stops) == number
    assert sum(story.lost_to_filter for story in stories) == sums.lost_to_filter
    assert sum(story.passes - 1 for story in stories) == loop.wait_steps


@given(topologies, traces)
def test_telling_changes_no_decision(topology: Topology, trace: Any) -> None:
    told, _, _ = tell_all(topology, trace)
    replayed, _, _ = run_of(topology)
    for prompt, raw in trace:
        replayed.replay(prompt, parse_tier_filter(raw).filter)
    assert manager_state(told.manager) == manager_state(replayed.manager)
    assert [getattr(told.manager.counters, name) for name in told.manager.counters.__slots__] == [
        getattr(replayed.manager.counters, name) for name in replayed.manager.counters.__slots__
    ]


@given(topologies, traces)
def test_a_story_contradicts_itself_nowhere(topology: Topology, trace: Any) -> None:
    for story in tell_all(topology, trace)[2]:
        names = [block.name for block in story.blocks]  # of repeated ones any may be promoted, for all of them
        skipped = {tier.name for tier in story.tiers if not tier.admitted}
        for block in story.blocks:
            assert row_reason(story, block)
            for tier, cell in zip(story.tiers, block.cells, strict=True):
                if cell in (Cell.SKIPPED, Cell.SKIPPED_HOLDS):
                    assert tier.name in skipped
                if cell in (Cell.HOLDS, Cell.SKIPPED_HOLDS):
                    assert tier.name in block.holders
                if cell is Cell.SKIPPED:
                    assert tier.name not in block.holders
                if cell is Cell.HOLDS:
                    assert (block.outcome, block.looks) == (Outcome.UNREACHED, 0)
            if block.outcome is Outcome.PROMOTED and names.count(block.name) == 1:
                position = [tier.name for tier in story.tiers].index(block.tier or "")
                assert block.cells[position] is Cell.PROMOTED
                assert block.tier not in skipped
            if block.outcome is Outcome.PRIMARY:
                assert "cpu" in block.holders
        assert headline(story)
        assert (deciding_line(story) is None) == (story.stop is None)
        if story.stop is not None and story.stop.outcome is Outcome.DENIED:
            assert sum(use.blocks for use in story.stop.slots) == story.primary_capacity
