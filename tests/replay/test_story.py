"""One request's story: each terminal outcome comes with what decided it, in words that say what happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.reasons import deciding_line, headline, row_reason
from kvtier_cli.replay.slots import SlotUse, SlotUser
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import Cell, RequestStory
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.model import LookupResult
from kvtier_cli.tiering.topology import ReplaySpec, TierSpec
from tests.replay.stories import server
from tests.tiering.managers import NVME, PEER, S3, fill, order, pending_store, tier_of

LOCAL = [{"medium": "storage", "locality": "local"}]


def outcomes(story: RequestStory) -> str:
    return " ".join(block.outcome.value for block in story.blocks)


def cells(story: RequestStory, tier: str) -> str:
    position = [each.name for each in story.tiers].index(tier)
    return " ".join(block.cells[position].value for block in story.blocks)


def reasons(story: RequestStory) -> list[str]:
    return [row_reason(story, block) for block in story.blocks]


def test_blocks_in_the_cpu_tier_are_primary_and_no_tier_is_reached() -> None:
    at = server(4, NVME)
    at.replay("b1 b2")
    story = at.story("b1 b2")
    assert (outcomes(story), story.stop, story.served, story.passes) == ("primary primary", None, 2, 1)
    assert (cells(story, "cpu"), cells(story, "nvme")) == ("ready ready", "not_reached not_reached")
    assert reasons(story) == ["ready in cpu", "ready in cpu"]
    assert (headline(story), deciding_line(story)) == ("All 2 blocks served: 2 primary.", None)


@pytest.mark.parametrize(("latency", "steps"), [(0, "1 step"), (1, "1 step"), (3, "3 steps")])
def test_a_promoted_block_missed_in_the_cpu_tier_first_and_took_the_steps_of_its_load(latency: int, steps: str) -> None:
    story = server(4, replace(NVME, load_latency=latency), S3, seeds={"nvme": "b1", "s3": "b1"}).story("b1")
    block = story.blocks[0]
    assert (block.outcome, block.tier, block.result) == (Outcome.PROMOTED, "nvme", LookupResult.HIT_PENDING)
    assert block.cells == (Cell.MISS, Cell.PROMOTED, Cell.BLANK)
    assert block.holders == ("cpu", "nvme", "s3")
    assert reasons(story) == [f"from nvme, {steps}"]
    assert headline(story) == "The one block was served: 1 promoted from nvme."


def test_a_block_on_its_way_for_another_request_is_primary_after_the_wait() -> None:
    at = server(4, NVME, seeds={"nvme": "b1"})
    at.manager.on_new_request("other")
    at.manager.lookup("other", "b1")
    story = at.story("b1")
    assert (outcomes(story), cells(story, "cpu"), story.passes) == ("primary", "ready", 2)
    assert reasons(story) == ["ready in cpu after 1 step"]


class TestFiltered:
    def test_a_skipped_tier_holds_the_block_and_those_behind_it(self) -> None:
        at = server(4, NVME, S3, PEER, seeds={"nvme": "b1 b5", "s3": "b2 b3 b4 b6"})
        story = at.story("b1 b2 b3 b4 b5 b6", LOCAL)
        assert outcomes(story) == "promoted filtered unreached unreached unreached unreached"
        assert story.stop is not None
        assert (story.stop.tier, story.stop.held_behind, story.lost_to_filter) == ("s3", 2, 3)
        assert cells(story, "s3") == "not_reached skipped_holds holds holds not_reached holds"
        assert cells(story, "nvme") == "promoted miss not_reached not_reached holds not_reached"
        assert headline(story) == (
            "The filter skipped s3 at block 1, and s3 holds it. "
            "1 of 6 blocks served: 1 promoted from nvme. 3 lost to the filter (upper bound)."
        )
        assert deciding_line(story) == (
            "block 1 (b2) is filtered: cpu miss, nvme miss, s3 skipped, its locality REMOTE matches no entry, "
            "peer miss; s3 holds this block and the 2 after it."
        )
        assert reasons(story)[1:] == [
            "s3 holds it; its locality REMOTE matches no entry",
            "behind block 1 (s3 holds it)",
            "behind block 1 (s3 holds it)",
            "behind block 1 (nvme holds it)",
            "behind block 1 (s3 holds it)",
        ]

    def test_what_one_tier_after_the_other_holds_counts_as_lost_but_is_not_said_of_the_first(self) -> None:
        story = server(4, NVME, S3, seeds={"nvme": "b1 b2", "s3": "b3"}).story("b1 b2 b3", [])
        assert story.stop is not None
        assert (story.stop.tier, story.stop.held_behind, story.lost_to_filter) == ("nvme", 1, 3)
        assert str(deciding_line(story)).endswith("nvme holds this block and the one after it.")

    def test_a_skipped_tier_may_hold_a_block_that_another_serves(self) -> None:
        story = server(4, S3, NVME, seeds={"nvme": "b1 b2", "s3": "b1"}).story("b1 b2", LOCAL)
        assert (outcomes(story), cells(story, "s3")) == ("promoted promoted", "skipped_holds skipped")
        assert (story.stop, story.lost_to_filter) == (None, 0)

    def test_each_tier_says_why_it_is_admitted_or_skipped(self) -> None:
        story = server(4, NVME, S3, PEER).story("b1", LOCAL)
        assert [(tier.name, tier.admitted, tier.why) for tier in story.tiers] == [
            ("cpu", True, "always asked, no filter applies to it"),
            ("nvme", True, "by entry 0"),
            ("s3", False, "its locality REMOTE matches no entry"),
            ("peer", True, "declares nothing, so only [] stops it"),
        ]


class TestAbsent:
    def test_cold(self) -> None:
        story = server(4, NVME, S3).story("b1 b2", LOCAL)
        assert story.stop is not None
        assert (outcomes(story), story.stop.reason) == ("absent unreached", AbsentReason.COLD)
        assert (cells(story, "nvme"), cells(story, "s3")) == ("miss not_reached", "skipped not_reached")
        assert headline(story) == "No tier has block 0: it was never stored before. 0 of 2 blocks served."
        assert reasons(story) == ["never stored before", "behind block 0 (not stored)"]

    def test_evicted_by_whom_and_from_where_it_was_last(self) -> None:
        at = server(2, replace(NVME, capacity=2))
        at.replay("b1 b2")
        at.replay("b3 b4")
        story = at.story("b1")
        assert headline(story).startswith("No tier has block 0: it was evicted from nvme by r1.")
        assert reasons(story) == ["evicted from nvme by r1"]

    @pytest.mark.parametrize(("label", "noun"), [("mine", "this request"), (None, "this lookup")])
    def test_evicted_by_the_request_itself(self, label: str | None, noun: str) -> None:
        at = server(1, replace(NVME, capacity=1), seeds={"nvme": "b2"}, spec=ReplaySpec(max_wait_steps=2))
        fill(at.manager, "before", "b1")
        tier_of(at.manager, "nvme").restore(["b2"])
        story = at.story("b2 b1", label=label)
        assert (outcomes(story), reasons(story)[1]) == ("promoted absent", f"evicted from cpu by {noun}")

    def test_its_store_was_refused(self) -> None:
        at = server(1, NVME)
        at.replay("b1 b2")
        story = at.story("b1")
        assert reasons(story) == ["its store by r0 was refused, the CPU tier could not free enough slots at once"]

    def test_the_tier_that_holds_it_is_offline(self) -> None:
        story = server(4, replace(NVME, offline=True), S3, seeds={"nvme": "b1"}).story("b1")
        assert story.stop is not None
        assert (story.stop.reason, story.stop.tier) == (AbsentReason.OFFLINE, "nvme")
        assert headline(story).startswith("nvme holds block 0, but is offline.")


class TestDenied:
    def test_what_takes_the_slots_is_told_as_it_was_at_that_moment(self) -> None:
        slow = 50
        t0, t1 = TierSpec("t0", store_latency=slow), TierSpec("t1", store_latency=slow)
        at = server(4, t0, t1, seeds={"t0": "b9"})
        at.replay("b1 b2 b3")
        at.manager.on_new_request("writer")
        pending_store(at.manager, "writer", "w1")
        story = at.story("b9 b8")
        assert story.stop is not None
        assert (outcomes(story), cells(story, "t0"), cells(story, "t1")) == (
            "denied unreached",
            "no_slot not_reached",
            "not_reached not_reached",
        )
        assert story.stop.slots == (
            SlotUse(SlotUser.CASCADE, ("t0", "t1"), False, 3),
            SlotUse(SlotUser.STORE, (), False, 1),
        )
        assert deciding_line(story) == (
            "block 0 (b9) is denied: cpu miss, t0 hit; the CPU tier could give no slot: "
            "3 pinned by cascades to t0 and t1, 1 write pending."
        )
        assert headline(story).startswith("t0 has block 0, but the CPU tier could give it no slot.")

    def test_loads_and_promotions_of_others_take_slots_too(self) -> None:
        at = server(3, replace(NVME, load_latency=9), seeds={"nvme": "b7 b8 b9"})
        fill(at.manager, "r0", "b1")
        at.manager.on_new_request("reader")
        at.manager.prepare_load("reader", ["b1"])
        at.manager.lookup_prefix("reader", ["b7", "b8"])
        story = at.story("b9")
        assert reasons(story) == ["nvme hit, but no slot: 2 on the way from nvme, 1 pinned by loads"]

    def test_a_cpu_tier_without_slots_denies_everything(self) -> None:
        assert reasons(server(0, NVME, seeds={"nvme": "b1"}).story("b1")) == ["nvme hit, but no slot: it has none"]


class TestFailed:
    def test_a_load_that_fails_again_and_again(self) -> None:
        at = server(4, replace(NVME, fail_loads=frozenset({"b2"})), seeds={"nvme": "b1 b2"})
        story = at.story("b1 b2")
        assert (outcomes(story), cells(story, "nvme")) == ("promoted failed", "promoted load_failed")
        assert deciding_line(story) == (
            "block 1 (b2) failed to load: cpu miss, nvme hit, load failed; its load from nvme failed 17 times."
        )
        assert headline(story).startswith("Loading block 1 from nvme failed.")

    def test_a_block_that_left_its_tier_meanwhile(self) -> None:
        at = server(4, replace(NVME, capacity=1, load_latency=2, store_latency=3), seeds={"nvme": "b1"})
        fill(at.manager, "r0", "b7")  # its cascade takes the tier's only slot while b1 is on its way
        story = at.story("b1")
        assert (outcomes(story), cells(story, "nvme")) == ("failed", "load_failed")
        assert reasons(story) == ["its load from nvme failed: the tier no longer holds it"]


def test_held_after_a_reset_no_tier_is_asked() -> None:
    at = server(4, NVME, seeds={"nvme": "b1"})
    at.manager.reset_cache()
    story = at.story("b1 b2")
    assert (outcomes(story), cells(story, "cpu"), cells(story, "nvme")) == (
        "held unreached",
        "miss not_reached",
        "not_reached not_reached",
    )
    assert deciding_line(story) == ("block 0 (b1) is held: cpu miss; promotions are held since the CPU tier was reset.")


class TestGaveUp:
    def test_a_tier_that_never_stops_to_say_retry(self) -> None:
        at = server(4, replace(NVME, lookup_retry=99), S3, seeds={"nvme": "b1"})
        story = at.story("b1 b2")
        assert (outcomes(story), story.gave_up, story.passes) == ("gave_up unreached", True, 17)
        assert (cells(story, "nvme"), cells(story, "s3")) == ("retry retry", "miss miss")
        assert deciding_line(story) == (
            "block 0 (b1) was given up: cpu miss, nvme retry, s3 miss; "
            "nvme still said retry in pass 17; vLLM would wait on."
        )

    def test_a_load_that_takes_longer_than_the_wait(self) -> None:
        at = server(4, replace(NVME, load_latency=99), seeds={"nvme": "b1"})
        assert reasons(at.story("b1")) == ["still on its way from nvme in pass 17; vLLM would wait on"]

    def test_a_prompt_that_evicts_itself_for_ever(self) -> None:
        story = server(2, NVME, seeds={"nvme": "b1 b2 b3"}).story("b1 b2 b3")
        assert story.gave_up
        assert headline(story).startswith("Gave up waiting for block ")
        assert "the 3 blocks do not fit into the CPU tier's 2; vLLM would wait on" in str(deciding_line(story))


def test_a_request_without_blocks_has_a_story_too() -> None:
    story = server(4, NVME).story("")
    assert (story.blocks, story.stop, headline(story)) == ((), None, "No blocks were looked up.")


def test_a_block_that_stands_twice_in_a_prompt_is_told_of_twice() -> None:
    story = server(4, NVME, seeds={"nvme": "b1"}).story("b1 b1 b2 b2")
    assert outcomes(story) == "promoted promoted absent unreached"


def test_the_tokens_are_said_where_the_size_of_a_block_is_known() -> None:
    at = server(4, NVME, seeds={"nvme": "b1"})
    story = tell_story(at.loop, ["b1", "b2"], parse_tier_filter(), at.history, block_tokens=512)
    assert "1 of 2 blocks served (512 of 1,024 tokens)" in headline(story)


def test_the_story_is_the_request_replayed_for_good() -> None:
    told, replayed = server(3, NVME, seeds={"nvme": "b1 b2"}), server(3, NVME, seeds={"nvme": "b1 b2"})
    told.story("b1 b2 b3", LOCAL)
    replayed.replay("b1 b2 b3", LOCAL)
    for at in (told, replayed):
        at.replay("b4")
    assert order(told.manager) == order(replayed.manager)
    assert told.loop.requests == 2


def test_names_are_the_caller_s() -> None:
    at = server(1, replace(NVME, capacity=1))
    at.replay("b1")
    at.replay("b2")
    story = tell_story(
        at.loop,
        ["b1"],
        parse_tier_filter(),
        at.history,
        block_name=lambda key: f"<{key}>",
        request_name=lambda req_id: f"chat-{req_id}",
    )
    assert (story.blocks[0].name, reasons(story)) == ("<b1>", ["evicted from nvme by chat-1"])
