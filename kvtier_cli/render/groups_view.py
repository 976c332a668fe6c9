"""The figures of groups of requests: a table for people, and the same for `--json`. Sums nothing up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.replay.groups import MOST_GROUPS, Group, GroupedOutcomes
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.topology import PRIMARY_NAME

_FEWEST = 3
_SERVED = ("primary", "promoted")


def group_lines(
    grouped: GroupedOutcomes, by: Sequence[str], tiers: Sequence[str], top: int, out: Output
) -> Iterator[str]:
    """The table of the largest groups, line by line. `by`: what they have in common; `tiers`: the secondary ones."""
    groups, others = grouped.largest(top)
    rows = [*groups, *([others] if others is not None else [])]
    if not rows:
        return
    names = [[_value(value, out) for value in group.key] for group in groups]
    if others is not None:
        more = "more" if grouped.is_whole else "or more"
        names.append([f"{others.groups:,} {more}", *[""] * (len(by) - 1)])
    heads = [out.shorten(plain(name), NAME_WIDTH) for name in by]
    numbers = _columns(rows, tiers, out)
    left = len(heads)
    for shown, shrink in _ever_fewer(numbers):
        table = [[*heads, *(head for head, _ in shown)]]
        table += [[*name, *(cells[at] for _, cells in shown)] for at, name in enumerate(names)]
        lines = columns(
            table, "<" * left + ">" * len(shown), shrink=shrink, width=out.width, mark="…" if out.unicode else ".."
        )
        if max(map(cell_width, lines)) <= out.width:
            break
    yield from lines
    if not grouped.is_whole:
        yield from wrapped(f"only the first {MOST_GROUPS:,} groups are told apart", out, indent=2)


def groups_as_json(grouped: GroupedOutcomes, by: Sequence[str], tiers: Sequence[str], top: int) -> dict[str, Any]:
    """`by`, `groups` (the largest first) and `others` (what the rest comes to, None without any)."""
    groups, others = grouped.largest(top)
    return {
        "by": list(by),
        "groups": [
            {
                "group": {
                    name: value.as_json() if isinstance(value, TierFilter) else value
                    for name, value in zip(by, group.key, strict=True)
                },
                **_figures(group, tiers),
            }
            for group in groups
        ],
        "others": None if others is None else {"groups": others.groups, **_figures(others, tiers)},
        "groups_limit_reached": not grouped.is_whole,
    }


def _figures(group: Group, tiers: Sequence[str]) -> dict[str, Any]:
    return {
        "requests": group.requests,
        "blocks": group.blocks,
        "blocks_loaded": group.blocks_loaded,
        "outcomes": dict(group.outcomes),
        "served_by_tier": dict(zip((PRIMARY_NAME, *tiers), group.served, strict=True)),
        "lost_to_filter": group.lost_to_filter,
    }


def _value(value: str | TierFilter | None, out: Output) -> str:
    if value is None:
        return out.symbol("none")
    text = value.short() if isinstance(value, TierFilter) else plain(value)
    return out.shorten(text, NAME_WIDTH) if text else '""'


_Column = tuple[str, list[str]]


def _columns(rows: Sequence[Group], tiers: Sequence[str], out: Output) -> list[_Column]:
    """Every column that says something, the one that says most first."""
    found = [
        ("blocks", [f"{group.blocks:,}" for group in rows]),
        ("served", [f"{group.blocks_loaded:,}" for group in rows]),
        ("of its", [f"{100 * group.blocks_loaded / group.blocks:.1f} %" if group.blocks else "" for group in rows]),
        ("requests", [f"{group.requests:,}" for group in rows]),
    ]
    if any(group.lost_to_filter for group in rows):
        found.append(("lost", [f"{group.lost_to_filter:,}" for group in rows]))
    for place, name in enumerate((PRIMARY_NAME, *tiers)):
        if any(group.served[place] for group in rows):
            found.append((out.shorten(plain(name), NAME_WIDTH), [f"{group.served[place]:,}" for group in rows]))
    for outcome in rows[0].outcomes:
        if outcome not in _SERVED and any(group.outcomes[outcome] for group in rows):
            name = outcome.replace("_", " ")
            found.append((name, [f"{group.outcomes[outcome]:,}" for group in rows]))
    return found


def _ever_fewer(numbers: Sequence[_Column]) -> Iterator[tuple[Sequence[_Column], int | None]]:
    """The columns to show, and which may be shortened: names only where the first columns alone do not fit."""
    for last in range(len(numbers), _FEWEST, -1):
        yield numbers[:last], None
    for last in range(_FEWEST, 0, -1):
        yield numbers[:last], 0
