"""What a secondary tier asks of the store behind it. A new backend is one small class with these methods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from kvtier_cli.tiering.model import BlockKey


class BlockStore(Protocol):
    """Blocks and their order of recency. Capacity, latency and faults are the tier's business.

    `index` holds exactly the blocks in the store, least recent first; it is for reading.
    """

    @property
    def index(self) -> Mapping[BlockKey, object]: ...

    def write(
        self, puts: Collection[BlockKey], deletes: Iterable[BlockKey] = (), recent: Collection[BlockKey] | None = None
    ) -> None:
        """One transaction: `deletes` (all held) leave, `puts` (none held) come in; then the blocks of `recent`
        (`puts` where it is left out) are the most recent, in order."""

    def refresh(self, keys: Iterable[BlockKey]) -> None:
        """Blocks that are held become the most recent, in order."""

    def close(self) -> None:
        """Write what is not written yet and let go of the files."""
