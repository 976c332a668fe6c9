"""A comparison for `--json`: the figures of each variant, their differences, the requests and blocks that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvtier_cli.render.checks_view import assert_as_json
from kvtier_cli.replay.compare import LETTERS, Difference, Differences, Moved, differing_blocks
from kvtier_cli.replay.compare_checks import FailOn
from kvtier_cli.replay.figure_expr import Judged


def variants_as_json(
    labels: Sequence[str],
    settings: Sequence[Mapping[str, Any]],
    figures: Sequence[Mapping[str, Any]],
    moved: Sequence[Mapping[str, Moved] | None],
    remote_reads: Sequence[int | None],
) -> list[dict[str, Any]]:
    """One entry a variant: its name, what tells it from the others, topology and filter, then what came of it. What was
    moved is None where that is not known."""
    return [
        {
            "name": letter,
            "label": label,
            **setting,
            "figures": one,
            "moved_blocks": None if blocks is None else {tier: each._asdict() for tier, each in blocks.items()},
            "remote_reads": remote,
        }
        for letter, label, setting, one, blocks, remote in zip(
            LETTERS, labels, settings, figures, moved, remote_reads, strict=False
        )
    ]


def totals_as_json(figures: Sequence[Mapping[str, Any]], differences: Differences) -> dict[str, Any]:
    """How much differs, and each variant's figures less those of the first."""
    return {
        "requests": figures[0]["requests"],
        "requests_differ": differences.requests,
        "blocks_differ": differences.blocks,
        "deltas": [
            {
                "name": f"{letter} - {LETTERS[0]}",
                "requests_differ": against.differ,
                "requests_served_fewer": against.fewer,
                "requests_served_more": against.more,
                "served_points": _points(figures[0], one),
                "figures": delta(figures[0], one),
            }
            for letter, against, one in list(zip(LETTERS, differences.against_first, figures, strict=False))[1:]
        ],
    }


def _points(first: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    shares = [100 * one["blocks_loaded"] / one["blocks"] for one in (first, other) if one["blocks"]]
    return shares[1] - shares[0] if len(shares) == 2 else None


def delta(first: Any, other: Any) -> Any:
    """`other` less `first`, figure by figure. A tier that only one of them has is 0 in the other; what one of them
    does not know is None."""
    if isinstance(first, Mapping) and "formula" in first:
        first = first["value"]
    if isinstance(other, Mapping) and "formula" in other:
        other = other["value"]
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys((*first, *other))
        return {name: delta(first.get(name, _zero(other, name)), other.get(name, _zero(first, name))) for name in names}
    return None if first is None or other is None else other - first


def _zero(figures: Mapping[str, Any], name: str) -> Any:
    """What stands for the figure `name` where only `figures` have it."""
    value = figures.get(name, 0)
    if isinstance(value, Mapping):
        return None if "formula" in value else dict.fromkeys(value, 0)
    return 0


def requests_as_json(page: Sequence[Difference]) -> list[dict[str, Any]]:
    """The requests of a page, the worst first; `served` has one number a variant."""
    return [
        {
            "request": each.number,
            "id": each.label,
            "blocks": len(each.keys),
            "served": list(each.served),
            "blocks_differ": each.blocks,
        }
        for each in page
    ]


def differences_as_json(page: Sequence[Difference]) -> list[dict[str, Any]]:
    """The blocks of these requests that ended in another way; lists have one entry a variant, None where it has no
    such block."""
    return [
        {
            "request": each.number,
            "index": block.at,
            "block": block.name,
            "outcomes": [None if outcome is None else outcome.value for outcome in block.outcomes],
            "tiers": list(block.tiers),
        }
        for each in page
        for block in differing_blocks(each)
    ]


def fail_on_as_json(judged: Sequence[tuple[FailOn, list[tuple[str, Judged]]]]) -> list[dict[str, Any]]:
    """One entry a demand and variant; `of` is `B`, or `B - A` for a difference."""
    return [
        {"of": name, **assert_as_json(fail_on.expression, each)} for fail_on, found in judged for name, each in found
    ]
