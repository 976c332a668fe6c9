"""A block store in memory: the names of the blocks in order of recency, no payloads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable

from kvtier_cli.tiering.model import BlockKey


class MemoryStore:
    """Blocks, least recent first, in `index`. A bounded store uses an ordered map, whose oldest entry is cheap to
    take; one that nothing is ever taken from saves the memory of the links."""

    def __init__(self, *, bounded: bool = True) -> None:
        self.index: dict[BlockKey, None] = OrderedDict() if bounded else {}

    def write(
        self, puts: Collection[BlockKey], deletes: Iterable[BlockKey] = (), recent: Collection[BlockKey] | None = None
    ) -> None:
        index = self.index
        for key in deletes:
            del index[key]
        index.update(dict.fromkeys(puts))
        if recent is not None:
            self.refresh(recent)

    def refresh(self, keys: Iterable[BlockKey]) -> None:
        index = self.index
        for key in keys:
            del index[key]
            index[key] = None

    def close(self) -> None:
        """There is nothing to let go of."""
