"""The tiers of a workspace for people and as JSON: how full they are, what they were asked, which faults are on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.units import format_size
from kvtier_cli.workspace import Workspace
from kvtier_cli.workspace.holdings import Holding, faults_in_force

_LEFT = 4
_GOES_FIRST = ("on disk", "backend", "medium", "locality", "skipped", "promoted", "of all", "bytes", "hits", "asked")


def tiers_as_json(space: Workspace, found: Sequence[Holding]) -> dict[str, Any]:
    """The body of `kvtier.tiers/1`. `bytes` is what the blocks stand for, `on_disk` what their store takes."""
    state = space.state
    return {
        "workspace": str(space.path),
        "topology": space.topology.name,
        "block_tokens": state.block_tokens,
        "requests": state.requests,
        "blocks": state.blocks,
        "tiers": [
            {
                "name": tier.name,
                "role": "primary" if tier.is_primary else "secondary",
                "medium": tier.medium and tier.medium.value,
                "locality": tier.locality and tier.locality.value,
                "backend": tier.backend,
                "path": None if tier.path is None else str(tier.path),
                "resident": tier.resident,
                "capacity": tier.capacity,
                "bytes": tier.size,
                "on_disk": tier.on_disk,
                "asked": tier.totals.asked,
                "hits": tier.totals.hits,
                "skipped": tier.totals.skipped,
                "promoted": tier.totals.promoted,
                "served": tier.totals.served,
                "offline": tier.spec is not None and tier.spec.offline,
                "fail_rate": 0.0 if tier.spec is None else tier.spec.fail_rate,
                "seed": None if tier.spec is None else tier.spec.seed,
            }
            for tier in found
        ],
    }


def tiers_lines(space: Workspace, found: Sequence[Holding], out: Output) -> Iterator[str]:
    """The text of `kvtier tiers`, line by line."""
    state = space.state
    title = plain(str(space.path))
    if state.block_tokens is None:
        loaded = "nothing was loaded into it yet"
    else:
        loaded = f"{state.requests:,} requests, {state.blocks:,} blocks of {state.block_tokens:,} tokens were loaded"
    yield from wrapped(f"{title}: {loaded}", out, style="bold")
    yield ""
    yield from _table(state.blocks, found, out)
    for fault in faults_in_force(space.topology):
        yield from wrapped(plain(fault), out, indent=2, style="warning")
    yield ""
    if state.block_tokens is not None and found[0].size is None:
        yield from wrapped("bytes: not known (give block.bytes_per_token)", out, indent=2)
    yield from wrapped(SCOPE, out, indent=2, style="muted")


def _table(blocks: int, found: Sequence[Holding], out: Output) -> Iterator[str]:
    """One row a tier. Where the width is short, columns go in the order of `_GOES_FIRST`."""
    heads = ["tier", "medium", "locality", "backend", "resident", "bytes", "on disk"]
    heads += ["asked", "hits", "of asked", "of all", "skipped", "promoted"]
    rows = [_row(blocks, tier, out) for tier in found]
    shown = [at for at, head in enumerate(heads) if at < _LEFT or any(row[at] for row in rows)]
    leaves = [heads.index(head) for head in _GOES_FIRST]
    while True:
        align = "".join("<" if at < _LEFT else ">" for at in shown)
        table = [[row[at] for at in shown] for row in [heads, *rows]]
        lines = columns(table, align, shrink=0, width=out.width, mark="…" if out.unicode else "..")
        at = next((at for at in leaves if at in shown), None)
        wide = columns(table, align)
        if at is None or max(map(cell_width, wide)) <= out.width:
            yield from lines
            return
        shown.remove(at)


def _row(blocks: int, tier: Holding, out: Output) -> list[str]:
    totals = tier.totals
    medium = tier.medium.value.lower() if tier.medium else out.symbol("none")
    locality = tier.locality.value.lower() if tier.locality else out.symbol("none")
    return [
        out.shorten(plain(tier.name), NAME_WIDTH),
        "primary" if tier.is_primary else medium,
        "" if tier.is_primary else locality,
        "" if tier.is_primary else tier.backend,
        f"{tier.resident:,}" + ("" if tier.capacity is None else f"/{tier.capacity:,}"),
        "" if tier.size is None else format_size(tier.size),
        "" if tier.on_disk is None else format_size(tier.on_disk),
        f"{totals.asked:,}",
        f"{totals.hits:,}",
        _percent(totals.hits, totals.asked),
        _percent(totals.served, blocks),
        "" if tier.is_primary else f"{totals.skipped:,}",
        "" if tier.is_primary else f"{totals.promoted:,}",
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""
