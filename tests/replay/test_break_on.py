"""Breaks of a fixture: what may be written, and the ops at which each is met, whatever kind of op it is."""

from __future__ import annotations

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.break_on import BreakOn, BreakWatcher, blocks_named, parse_break
from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_ops, runner_of


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("denied", BreakOn("denied")),
        ("mismatch", BreakOn("mismatch")),
        ("evicted:b1", BreakOn("evicted", "b1")),
        ("evicted:12:30@1", BreakOn("evicted", "12:30@1")),
        ("evicted:5102~2", BreakOn("evicted", "5102~2")),
    ],
)
def test_a_break_is_read_and_written_alike(text: str, read: BreakOn) -> None:
    assert parse_break(text) == read
    assert str(read) == text


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("dneied", 'cannot break on "dneied"', 'did you mean "denied"?'),
        ("evict:b1", 'cannot break on "evict"', 'did you mean "evicted"?'),
        ("", 'cannot break on ""', "Break on denied, evicted:BLOCK or mismatch."),
        ("evicted", "evicted needs a block to wait for", "For example evicted:b1."),
        ("evicted:", "evicted needs a block to wait for", "For example evicted:b1."),
        ("denied:b1", 'denied takes no "b1"', "Break on denied, evicted:BLOCK or mismatch."),
    ],
)
def test_another_word_is_refused_with_what_may_be_meant(text: str, said: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_break(text)
    assert (str(raised.value), raised.value.hint) == (said, hint)


TOPOLOGY = "topology: {primary: {capacity: 2}, tiers: [{name: t0, capacity: 3}]}"


def breaks(stop: str, *ops: str) -> list[tuple[int, str]]:
    """The ops, from 0, at which a break is met, and why."""
    fixture = fixture_from_text(f"{TOPOLOGY}\nops:\n" + "\n".join(f"- {op}" for op in ops), "bug.yaml")
    watcher = BreakWatcher([parse_break(stop)])
    runner = runner_of(fixture, (watcher,))
    return [
        (result.op.index, reason)
        for result in run_ops(fixture, runner)
        for reason in watcher.met(result, runner).values()
    ]


def run(req_id: str, blocks: str) -> str:
    return f"{{op: run, id: {req_id}, blocks: [{blocks}]}}"


def test_an_eviction_is_met_in_a_lookup_a_store_and_a_whole_request_from_any_tier() -> None:
    lookup = [run("r1", "b1, b2"), "{op: seed, tier: t0, blocks: [b3]}", "{op: request, id: r2}"]
    assert breaks("evicted:b2", *lookup, "{op: lookup, id: r2, block: b3}") == [(3, "b2 was evicted from cpu for r2")]
    store = [run("r1", "b1, b2"), "{op: request, id: r2}", "{op: store, id: r2, blocks: [b3]}"]
    assert breaks("evicted:b2", *store) == [(2, "b2 was evicted from cpu for r2")]
    # c1 to c3 push the copy of b2 out of t0, once that is told of them.
    assert breaks("evicted:b2", run("r1", "b1, b2"), run("r2", "c1, c2"), "{op: step}") == [
        (1, "b2 was evicted from cpu for r2"),
    ]
    assert breaks("evicted:b1", run("r1", "b1, b2"), run("r2", "c1, c2"), "{op: step}") == [
        (1, "b1 was evicted from cpu for r2"),
        (2, "b1 was evicted from t0 for r2"),
    ]


def test_a_denied_promotion_is_met_in_a_lookup_and_in_a_whole_request() -> None:
    full = [
        "{op: seed, tier: t0, blocks: [b3]}",
        "{op: request, id: r1}",
        "{op: store, id: r1, blocks: [b1, b2], defer: true}",
    ]
    said = "t0 has b3 for r2, and the primary had no slot"
    assert breaks("denied", *full, "{op: request, id: r2}", "{op: lookup, id: r2, block: b3}") == [(4, said)]
    assert breaks("denied", *full, run("r2", "b3"), "{op: complete_store, id: r1}") == [(3, said)]


def test_a_mismatch_is_met_where_an_expectation_is_not() -> None:
    wrong = "{op: step, expect: {state: {free: 1, evictable: 0, live: [r1]}}}"
    assert breaks("mismatch", "{op: step, expect: {state: {free: 2}}}", wrong) == [(1, "2 expectations are not met")]


def test_the_blocks_that_a_fixture_names_are_those_of_its_ops() -> None:
    fixture = fixture_from_text(
        "topology: {primary: {capacity: 2}, tiers: [{name: t0}]}\nops:\n"
        "- {op: preset, state: {policy: {order: [p1]}, tiers: {t0: [p2]}}}\n"
        "- {op: run, id: r1, blocks: [b1], kv_load_tiers: [cpu]}\n"
        "- {op: request, id: r2}\n"
        "- {op: lookup, id: r2, block: b2, expect: {not_resident: [b9]}}\n",
        "bug.yaml",
    )
    assert blocks_named(fixture) == {"p1", "p2", "b1", "b2"}
    replays = fixture_from_text("ops: [{op: replay, trace: t.jsonl}]", "bug.yaml")
    assert blocks_named(replays) is None
