"""Which request or block of a trace is meant, and what is looked up after which history."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.trace_lookup import BlockMatch, blocks_story, find_request, request_story, resolve_blocks
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, Topology
from kvtier_cli.traces.source import TraceSource
from tests.tiering.managers import NVME, S3

MakeTrace = Callable[..., TraceSource]
DENY = [{"medium": "cpu"}]


@pytest.fixture
def trace(tmp_path: Path) -> MakeTrace:
    """A trace of requests, each given by its blocks; `more` adds to their records."""

    def make(*prompts: Sequence[int | str], more: Sequence[dict[str, object]] = ()) -> TraceSource:
        records = [
            {"input_length": 16 * len(blocks), "hash_ids": blocks, "block_size": 16, **extra}
            for blocks, extra in zip(prompts, [*more, *[{}] * len(prompts)], strict=False)
        ]
        path = tmp_path / "t.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        return TraceSource(path)

    return make


def run_of(source: TraceSource, capacity: int = 8, spec: ReplaySpec | None = None) -> TraceRun:
    return TraceRun([source], Topology(primary=PrimarySpec(capacity), tiers=(NVME, S3), replay=spec or ReplaySpec()))


def outcomes(blocks: Sequence[object]) -> str:
    return " ".join(block.outcome.value for block in blocks)  # type: ignore[attr-defined]


class TestFindRequest:
    @pytest.mark.parametrize(("text", "index"), [("0", 0), ("r2", 2), ("2", 2), ("002", 2)])
    def test_by_number_from_0(self, trace: MakeTrace, text: str, index: int) -> None:
        assert find_request(trace([1], [2], [3]), text) == index

    def test_the_trace_s_own_id_wins_over_the_number(self, trace: MakeTrace) -> None:
        source = trace([1], [2], [3], more=[{"request_id": "r2"}, {"id": 0}])
        assert (find_request(source, "r2"), find_request(source, "0"), find_request(source, "2")) == (0, 1, 2)

    def test_numbers_follow_arrival_where_the_file_is_out_of_order(self, trace: MakeTrace) -> None:
        source = trace([1], [2], more=[{"timestamp": 9, "id": "late"}, {"timestamp": 1, "id": "early"}])
        assert (find_request(source, "early"), find_request(source, "late")) == (0, 1)

    @pytest.mark.parametrize("text", ["3", "r3", "-1", "x", "1.5", "", "9" * 30, "\u0663"])
    def test_one_that_there_is_not_is_refused_with_the_range(self, trace: MakeTrace, text: str) -> None:
        with pytest.raises(InputError, match="has no request") as caught:
            find_request(trace([1], [2], [3]), text)
        assert caught.value.hint == "It has 3, r0 to r2."

    def test_the_nearest_id_is_told(self, trace: MakeTrace) -> None:
        with pytest.raises(InputError) as caught:
            find_request(trace([1], more=[{"id": "agent-7"}]), "agnt-7")
        assert str(caught.value.hint).endswith('Did you mean "agent-7"?')

    def test_an_id_of_several_requests_asks_for_the_number(self, trace: MakeTrace) -> None:
        with pytest.raises(InputError, match='2 requests have the id "a"') as caught:
            find_request(trace([1], [2], [3], more=[{"id": "a"}, {}, {"id": "a"}]), "a")
        assert caught.value.hint == "Give one's number: r0, r2."


class TestRequestStory:
    def test_the_history_is_what_arrived_before_the_request(self, trace: MakeTrace) -> None:
        prompts = ([1, 2], [1, 2, 3], [1, 2, 3])
        stories = [request_story(run_of(trace(*prompts)), index) for index in range(3)]
        assert [outcomes(story.blocks) for story in stories] == [
            "absent unreached",
            "primary primary absent",
            "primary primary primary",
        ]
        assert [story.label for story in stories] == ["r0", "r1", "r2"]
        assert stories[0].block_tokens == 16

    def test_the_filter_that_is_given_holds_for_the_request_and_not_for_its_history(self, trace: MakeTrace) -> None:
        source = trace([1], [2], [1], [2], [1])
        story = request_story(run_of(source, capacity=1), 4, parse_tier_filter(DENY))
        assert outcomes(story.blocks) == "filtered"
        run = run_of(source, capacity=1)
        request_story(run, 4, parse_tier_filter(DENY))
        assert run.manager.counters.promoted == [2, 0]

    def test_without_one_the_request_s_own_holds(self, trace: MakeTrace) -> None:
        source = trace([1], [2], [1], more=[{}, {}, {"kv_load_tiers": DENY}])
        story = request_story(run_of(source, capacity=1), 2)
        assert (outcomes(story.blocks), story.filter.raw) == ("filtered", DENY)

    def test_requests_of_the_history_go_by_their_own_ids(self, trace: MakeTrace) -> None:
        source = trace([1], [2], [1], more=[{}, {"id": "b"}, {"id": "c"}])
        topology = Topology(primary=PrimarySpec(1), tiers=())
        story = request_story(TraceRun([source], topology), 2)
        assert story.stop is not None
        assert (story.label, story.stop.by, story.stop.evicted_from) == ("c", "b", "cpu")


class TestBlocks:
    def test_blocks_are_looked_up_in_order_after_the_whole_trace(self, trace: MakeTrace) -> None:
        run = run_of(trace([1, 2, "x"]))
        run.run()
        keys, unknown, ambiguous = resolve_blocks(run, ["1", "2", "x", "9"])
        story = blocks_story(run, keys, parse_tier_filter())
        assert [block.name for block in story.blocks] == ["1", "2", "x", "9"]
        assert outcomes(story.blocks) == "primary primary primary absent"
        assert (unknown, ambiguous, story.label) == (["9"], {}, None)

    def test_a_label_of_several_blocks_lists_them(self, trace: MakeTrace) -> None:
        run = run_of(trace([1, 7], [2, 3, 7], [7]), capacity=2)
        run.run()
        _, _, ambiguous = resolve_blocks(run, ["7"])
        assert ambiguous == {
            "7": [
                BlockMatch("7~1", 1, "1", ("nvme", "s3")),
                BlockMatch("7~2", 2, "3", ()),
                BlockMatch("7~3", 0, None, ("cpu",)),
            ]
        }

    def test_the_one_that_follows_the_block_before_it_is_meant(self, trace: MakeTrace) -> None:
        run = run_of(trace([1, 7], [2, 3, 7]))
        run.run()
        keys, _, ambiguous = resolve_blocks(run, ["3", "7"])
        assert ([run.loop.table.name(int(str(key))) for key in keys], ambiguous) == (["3", "7~2"], {})

    @pytest.mark.parametrize(("text", "name"), [("7~1", "7"), ("7~2", "7~2"), ("7", "7")])
    def test_an_ordinal_names_one(self, trace: MakeTrace, text: str, name: str) -> None:
        run = run_of(trace([1, 7], [2, 3, 7]))
        run.run()
        (key,), unknown, _ = resolve_blocks(run, [text])
        assert (run.loop.table.name(int(str(key))), unknown) == (name, [])

    @pytest.mark.parametrize("text", ["7~3", "7~0", "~1", "07", "7.0", " 7", "-7", "9" * 5000, ""])
    def test_what_no_request_had_is_a_block_never_stored(self, trace: MakeTrace, text: str) -> None:
        run = run_of(trace([1, 7], [2, 7]))
        run.run()
        keys, unknown, _ = resolve_blocks(run, [text])
        story = blocks_story(run, keys, parse_tier_filter())
        assert (unknown, story.blocks[0].outcome) == ([text], Outcome.ABSENT)

    def test_where_ids_are_taken_as_they_are_a_label_is_one_block(self, trace: MakeTrace) -> None:
        run = run_of(trace([1, 7], [2, 7]), spec=ReplaySpec(identity="id"))
        run.run()
        assert resolve_blocks(run, ["7"])[2] == {}
