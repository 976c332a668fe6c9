"""What each tier of an open workspace holds and was asked, as numbers. Renders nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.stores.disk_faults import DATABASE, DATABASE_ERRORS
from kvtier_cli.tiering.topology import PRIMARY_NAME, TierSpec, Topology
from kvtier_cli.workspace.opened import Workspace
from kvtier_cli.workspace.state import LruLists, Totals


@dataclass(frozen=True, slots=True)
class Holding:
    """One tier. `resident` and `capacity` (None: unlimited) in blocks; `size` is what the blocks stand for in bytes of
    KV data (None: not known), `on_disk` the bytes of the store's files (None: no store); `totals` over all loads;
    `spec` of a secondary tier, and the `path` of its store, where that lies outside the workspace."""

    name: str
    is_primary: bool
    medium: Medium | None
    locality: Locality | None
    backend: str
    resident: int
    capacity: int | None
    size: int | None
    on_disk: int | None
    totals: Totals
    spec: TierSpec | None = None
    path: Path | None = None


def tier_holdings(space: Workspace) -> list[Holding]:
    """The primary, then the secondary tiers in lookup order."""
    topology, state = space.topology, space.state
    lists = state.primary
    resident = len(lists.order) if isinstance(lists, LruLists) else len(lists.t1) + len(lists.t2)
    resident = min(resident, topology.primary.capacity)
    found = [
        Holding(
            PRIMARY_NAME,
            True,
            Medium.CPU,
            None,
            "snapshot",
            resident,
            topology.primary.capacity,
            _size(space, resident),
            None,
            state.totals.get(PRIMARY_NAME, Totals()),
        )
    ]
    for spec, tier in zip(topology.tiers, space.tiers, strict=True):
        found.append(
            Holding(
                spec.name,
                False,
                spec.medium,
                spec.locality,
                spec.backend,
                tier.size(),
                spec.capacity,
                _size(space, tier.size()),
                None if spec.backend == "memory" else _on_disk(space, spec.name),
                state.totals.get(spec.name, Totals()),
                spec,
                space.store_folder(spec.name).readlink() if space.store_folder(spec.name).is_symlink() else None,
            )
        )
    return found


def faults_in_force(topology: Topology) -> list[str]:
    """A sentence for each tier that is made to fail: whoever reads a result has to know."""
    found = []
    for tier in topology.tiers:
        faults = ["it is offline"] if tier.offline else []
        if tier.fail_rate:
            faults.append(f"{100 * tier.fail_rate:.4g} % of what is transferred fails (seed {tier.seed})")
        if faults:
            found.append(f"{tier.name} has a fault on demand: {', and '.join(faults)}")
    return found


def block_size(space: Workspace) -> int | None:
    """The bytes of KV data that a block of the workspace stands for, None where that is not known."""
    per_token = space.topology.block.bytes_per_token
    tokens = space.state.block_tokens or space.topology.block.tokens
    return None if per_token is None or tokens is None else per_token * tokens


def _size(space: Workspace, blocks: int) -> int | None:
    size = block_size(space)
    return None if size is None else size * blocks


def _on_disk(space: Workspace, tier: str) -> int:
    """The bytes of a store: its database, and the value files that this counts."""
    from kvtier_cli.tiering.stores.disk_database import connect

    folder = space.store_folder(tier)
    if not (folder / DATABASE).exists():
        return 0
    size = sum(path.stat().st_size for path in folder.glob(f"{DATABASE}*"))
    with suppress(*DATABASE_ERRORS, sqlite3.Error), closing(connect(folder, lock_timeout=1.0)) as connection:
        row = connection.execute("SELECT value FROM Settings WHERE key = 'size'").fetchone()
        if row and type(row[0]) is int:
            size += row[0]
    return size
