"""The stores that a secondary tier may lie on. All of them must come out as vLLM's manager did: one line each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kvtier_cli.tiering.stores import BlockStore, MemoryStore
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.tiering.topology import TierSpec

MakeStore = Callable[[TierSpec, Path], BlockStore]
"""An empty store for this tier; the folder is empty too, and the tiers of one manager share it."""

BACKENDS: dict[str, MakeStore] = {
    "memory": lambda spec, folder: MemoryStore(),
    "disk": lambda spec, folder: DiskStore(folder / spec.name),
}
SLOW = BACKENDS.keys() - {"memory"}
"""Replay what is shipped with every test run, all the others only in `make soak`."""
