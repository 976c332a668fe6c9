"""Block stores: where a secondary tier keeps its blocks."""

from __future__ import annotations

from kvtier_cli.tiering.stores.base import BlockStore
from kvtier_cli.tiering.stores.memory import MemoryStore

__all__ = ["BlockStore", "MemoryStore"]
