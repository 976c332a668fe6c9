"""An expectation that was not met, as it is read: what differs is marked, what does not is short."""

from __future__ import annotations

from typing import Any

import pytest

from kvtier_cli.render.console import Output
from kvtier_cli.render.flow import flow
from kvtier_cli.render.mismatch_view import mismatch_text
from kvtier_cli.replay.fixture_run import Mismatch

PLAIN = Output(color=False, unicode=False)


def told(path: str, expected: Any, found: Any, remark: str | None = None, out: Output = PLAIN) -> str:
    return mismatch_text(Mismatch(7, 0, "step", path, expected, found, remark), out)


@pytest.mark.parametrize(
    ("path", "expected", "found", "said"),
    [
        ("result", "HIT", "MISS", "expected result HIT, found MISS"),
        ("promotion", None, "t0", "expected promotion null, found t0"),
        ("state.free", {"min": 2}, 1, "expected state.free {min: 2}, found 1"),
        ("state.jobs", [], [{"tier": "t0"}], "expected state.jobs [], found [{tier: t0}]"),
        ("stored", ["b1"], None, "expected stored [b1], found null"),
        ("evicted", ["b1", "b2"], ["b2", "b3"], "evicted (-missing +unexpected): [-b1, b2, +b3]"),
        (
            "verdicts",
            ["miss", "hit", "miss"],
            ["hit", "miss", "miss"],
            "verdicts (-missing +unexpected): [-miss, +hit, -hit, +miss, miss]",
        ),
        (
            "state.jobs",
            [{"tier": "t0"}, {"tier": "t1"}],
            [{"tier": "t1", "job": 3}],
            "state.jobs (-missing +unexpected): [-{tier: t0}, {tier: t1, job: 3}]",
        ),
    ],
)
def test_lists_are_told_by_what_differs_and_all_else_by_both_values(
    path: str, expected: Any, found: Any, said: str
) -> None:
    assert told(path, expected, found) == said


def test_the_remark_comes_last() -> None:
    assert told("result", "HIT", "MISS", "no tier holds it").endswith("found MISS (no tier holds it)")


def test_what_is_alike_in_a_long_list_is_counted_and_many_differences_are_cut() -> None:
    blocks = [f"b{number}" for number in range(1_000)]
    assert told("state.policy.order", blocks, [*blocks[:500], "x", *blocks[501:]]) == (
        "state.policy.order (-missing +unexpected): [(498 as expected), b498, b499, -b500, +x, b501, b502, "
        "(497 as expected)]"
    )
    assert told("state.policy.order", ["x"], blocks).endswith("+b10, +b11, +988 more]")
    verbose = Output(color=False, verbose=1)
    assert told("state.policy.order", ["x"], blocks, out=verbose).endswith("+b999]")


def test_expected_and_found_have_a_colour_each_besides_their_signs() -> None:
    out = Output(color=True)
    assert told("evicted", ["b1", "b2"], ["b2"], out=out).endswith("[\x1b[32m-b1\x1b[0m, b2]")
    assert told("result", "HIT", "MISS", out=out) == "expected result \x1b[32mHIT\x1b[0m, found \x1b[1;31mMISS\x1b[0m"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"id": "r1", "blocks": ["b1", "b2@1"], "defer": True}, "{id: r1, blocks: [b1, b2@1], defer: true}"),
        ({}, "{}"),
        (["7", "null", "no", "-", "a: b", "#", "block 7"], '["7", "null", "no", "-", "a: b", "#", block 7]'),
        ([1, 2.5, None, False], "[1, 2.5, null, false]"),
        ("\x1b[2J\u202e", '"\\u001b[2J\\u202e"'),
    ],
)
def test_values_are_written_as_yaml_reads_them(value: Any, text: str) -> None:
    assert flow(value) == text


def test_what_is_written_is_what_yaml_reads() -> None:
    import yaml

    value = {"a": ["b1", "12:30", "0x1f", "1e3", "~", "yes", " b", "b ", "é", ".5", "2026-01-01", "=", "a, b"]}
    assert yaml.safe_load(flow(value)) == value
