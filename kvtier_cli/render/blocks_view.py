"""The blocks of a workspace for people and as JSON: a row a block, a column a tier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvtier_cli.render.console import MAX_WIDTH, Output, cell_width, columns, plain
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.replay.text_keys import hex_of, label_of
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.workspace import Workspace
from kvtier_cli.workspace.holdings import block_size, faults_in_force
from kvtier_cli.workspace.stored_blocks import StoredBlock, StoredBlocks

_TIER_WIDTH = 8
_DIGITS = 12


def blocks_as_json(
    space: Workspace, blocks: StoredBlocks, page: Sequence[StoredBlock], total: int, offset: int
) -> dict[str, Any]:
    """The body of `kvtier.blocks/1`. `pins` is None where the primary does not have the block; at rest nothing is
    pinned."""
    size = block_size(space)
    blocks.learn(label_of(block.key) for block in page)
    return {
        "workspace": str(space.path),
        "faults": faults_in_force(space.topology),
        "blocks": [
            {
                "block": blocks.name(block.key),
                "label": label_of(block.key),
                "digest": hex_of(block.key),
                "tiers": list(block.tiers),
                "pins": 0 if PRIMARY_NAME in block.tiers else None,
                "bytes": size,
            }
            for block in page
        ],
        "total": total,
        "offset": offset,
    }


def blocks_lines(
    space: Workspace,
    blocks: StoredBlocks,
    page: Sequence[StoredBlock],
    total: int,
    offset: int,
    out: Output,
    *,
    wide: bool,
) -> Iterator[str]:
    """The text of `kvtier blocks`, line by line."""
    which = f"{total:,} block{'' if total == 1 else 's'}"
    if page and len(page) < total:
        which += f", {offset + 1:,} to {offset + len(page):,} shown"
    elif total and not page:
        which += ", none shown"
    yield from wrapped(f"{plain(str(space.path))}: {which}", out, style="bold")
    if page:
        yield ""
        yield from _table(space, blocks, page, out, wide=wide)
    yield ""
    if offset + len(page) < total and page:
        yield from wrapped(f"more: --offset {offset + len(page)}", out, indent=2)
    for fault in faults_in_force(space.topology):
        yield from wrapped(plain(fault), out, indent=2, style="warning")
    yield from wrapped(SCOPE, out, indent=2, style="muted")


def _table(
    space: Workspace, blocks: StoredBlocks, page: Sequence[StoredBlock], out: Output, *, wide: bool
) -> Iterator[str]:
    tiers = [PRIMARY_NAME, *(tier.name for tier in space.topology.tiers)]
    heads = [name if wide else out.shorten(plain(name), _TIER_WIDTH) for name in map(plain, tiers)]
    blocks.learn(label_of(block.key) for block in page)
    rows = [["block", *heads, "digest"]]
    for block in page:
        digest = hex_of(block.key)
        cells = [_cell(tier, tier in block.tiers, out) for tier in tiers]
        rows.append([plain(blocks.name(block.key)), *cells, digest if wide else digest[:_DIGITS]])
    mark = "…" if out.unicode else ".."
    if wide:
        yield from columns(rows)
        return
    if max(map(cell_width, columns(rows, shrink=0, width=out.width, mark=mark))) > out.width:
        rows = [row[:-1] for row in rows]
    yield from columns(rows, shrink=0, width=min(out.width, MAX_WIDTH), mark=mark)


def _cell(tier: str, held: bool, out: Output) -> str:
    if not held:
        return out.style(out.symbol("unreached"), "unreached")
    name = "primary" if tier == PRIMARY_NAME else "holds"
    return out.style(out.symbol(name), name)
