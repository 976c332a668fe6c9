"""What a secondary tier asks of the store behind it. A new backend is one small class with these methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from kvtier_cli.tiering.model import BlockKey


class BlockStore(Protocol):
    """Blocks and their order of recency. Capacity, latency and faults are the tier's business."""

    @property
    def index(self) -> Mapping[BlockKey, object]:
        """Exactly the blocks in the store, in no particular order; one object for the store's life, for reading."""

    def oldest(self, count: int) -> Sequence[BlockKey]:
        """The `count` least recent blocks, the least recent first; all where there are fewer."""

    def least_recent_first(self) -> Iterator[BlockKey]:
        """All blocks in order of recency; the store must not change meanwhile."""

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        """One transaction: `deletes` (all held) leave, `puts` (none held) come in; then the blocks of `recent`
        (`puts` where it is left out) are the most recent, in order. No repeats."""

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        """Read the payloads of blocks that are held, and check them. Those that are damaged leave the store; they are
        returned, each with what is wrong with it. No repeats."""

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        """Blocks that are held become the most recent, in order. No repeats."""

    def close(self) -> None:
        """Write what is not written yet and let go of the files."""
