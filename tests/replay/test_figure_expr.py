"""Demands on figures: which names there are, how a right side is read, what is refused and where, and what holds."""

from __future__ import annotations

from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.figure_expr import Judged, parse_expression
from kvtier_cli.replay.figure_names import FigureNames
from kvtier_cli.tiering.topology import BUILT_IN, TierSpec, Topology

NAMES = FigureNames(BUILT_IN)

FIGURES: dict[str, Any] = {
    "requests": 4,
    "blocks": 100,
    "steps": 9,
    "gave_up": 1,
    "blocks_loaded": 36,
    "promotions_started": 30,
    "promoted_by_tier": {"nvme": 20, "s3": 10},
    "outcomes": {"filtered": 0, "absent": 3},
    "absent_by_reason": {"cold": 3},
    "bytes": {"s3": {"read": 2**30, "written": 0}},
    "rates": {"served_of_all": {"value": 0.36, "formula": "…"}, "s3_of_asked": {"value": None, "formula": "…"}},
}


def judged(text: str, figures: dict[str, Any] = FIGURES) -> Judged:
    return parse_expression(text, NAMES, "--assert").judge(figures)


@pytest.mark.parametrize(
    "text",
    [
        *("served == 36", "served>=36", "served <= 36", "served < 37", "served > 35", "served != 35"),
        *("served < 10k", "served < 1M", "blocks_loaded == 36", "served >= 36%", "served == 36.0 %", "served < 36.1pt"),
        *("promoted == 30", "promoted.s3 == 10", "promoted_by_tier.s3 == 10", "promoted.nvme > 19"),
        *("outcomes.filtered == 0", "filtered == 0", "absent.cold >= 3%", "absent_by_reason.cold == 3"),
        *("gave_up <= 25%", "gave_up == 1", "steps < 10"),
        *("rates.served_of_all >= 36%", "rates.served_of_all.value >= 0.36", "rates.served_of_all <= 0.36"),
    ],
)
def test_what_holds(text: str) -> None:
    assert judged(text).holds


@pytest.mark.parametrize("text", ["served > 36%", "served == 35", "gave_up < 25%", "rates.served_of_all > 36%"])
def test_what_does_not_hold_tells_what_was_found(text: str) -> None:
    found = judged(text)
    assert not found.holds
    assert found.found in (36, 1, 0.36)
    assert found.share in (0.36, 0.25)


@pytest.mark.parametrize("text", ["rates.s3_of_asked < 5%", "rates.s3_of_asked >= 0"])
def test_a_rate_of_nothing_meets_no_demand(text: str) -> None:
    assert judged(text) == Judged(None, None, False)


def test_shares_of_a_trace_without_blocks_meet_no_demand() -> None:
    assert judged("served >= 0%", FIGURES | {"blocks": 0, "blocks_loaded": 0}) == Judged(0, None, False)


def test_shares_are_compared_exactly_whatever_a_float_makes_of_them() -> None:
    whole = FIGURES | {"blocks": 3 * 10**17, "blocks_loaded": 10**17}
    assert judged("served > 33.333333333333%", whole).holds
    assert not judged("served > 33.33333333333334%", whole).holds


@pytest.mark.parametrize(
    ("text", "column", "said", "hint"),
    [
        ("servd >= 36%", 1, 'there is no figure "servd"', 'Did you mean "served"?'),
        ("  promoted.s4 > 1", 3, 'there is no figure "promoted.s4"', 'Did you mean "promoted.s3"?'),
        ("zzzzzz > 1", 1, 'there is no figure "zzzzzz"', "kvtier replay --json shows the names of all figures."),
        ("bytes.s3.read > 1GiB", 1, "bytes are not known without", "Give block.bytes_per_token in a topology."),
        ("served => 36", 8, 'expected >=, <=, >, <, == or !=, found "=>"', None),
        ("served =< 36", 8, 'expected >=, <=, >, <, == or !=, found "=<"', None),
        ("served = 36", 8, 'expected >=, <=, >, <, == or !=, found "="', None),
        ("served ≥ 36", 8, 'expected >=, <=, >, <, == or !=, found "≥"', None),
        ("served 36", 10, "expected >=, <=, >, <, == or !=, found the end", None),
        (">= 36", 1, "expected the name of a figure", None),
        ("served >=", 10, 'expected a number behind ">="', None),
        ("served >= x", 11, '"x" is not understood, expected a count', None),
        ("served >= 36x", 11, '"36x" has a unit that is not known', None),
        ("served >= 0.36", 11, '"0.36" is no whole number', "A share of all blocks is written with a percent sign."),
        ("served >= -3", 11, '"-3": a figure has no sign', None),
        (
            "hits.s3 > 5%",
            11,
            '"hits_by_tier.s3" is no part',
            "The share of what a tier was asked is rates.s3_of_asked.",
        ),
        ("steps > 5%", 9, '"steps" is no part of all blocks or requests', "Compare it with a number."),
        ("rates.s3_of_all > 36", 19, '"36" is no rate, expected a percentage', None),
    ],
)
def test_what_is_refused_is_told_with_its_column(text: str, column: int, said: str, hint: str | None) -> None:
    with pytest.raises(InputError) as refused:
        parse_expression(text, NAMES, "--assert")
    assert (refused.value.column, refused.value.hint) == (column, hint)
    assert refused.value.message.startswith(said)
    assert refused.value.file is not None
    assert refused.value.file.startswith("--assert ")


@pytest.mark.parametrize("text", ["", "  ", "served > " + "1" * 2000])
def test_what_is_empty_or_endless_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_expression(text, NAMES, "--assert")


def test_bytes_have_names_and_sizes_where_the_size_of_a_block_is_known() -> None:
    from dataclasses import replace

    known = FigureNames(replace(BUILT_IN, block=replace(BUILT_IN.block, bytes_per_token=131072)))
    for text in ("bytes.s3.read == 1GiB", "bytes.s3.read >= 1024MiB", "bytes.s3.written == 0"):
        assert parse_expression(text, known, "--assert").judge(FIGURES).holds


def test_tiers_may_have_dots_and_colons_in_their_names() -> None:
    names = FigureNames(Topology(tiers=(TierSpec("1:fs"), TierSpec("eu.west"))))
    for tier in ("1:fs", "eu.west"):
        assert parse_expression(f"promoted.{tier} > 0", names, "--assert").figure.path == ("promoted_by_tier", tier)
