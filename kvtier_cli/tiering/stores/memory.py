"""A block store in memory: the names of the blocks in order of recency, no payloads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.recency import Recency

_NO_DAMAGE: Mapping[BlockKey, str] = {}


class MemoryStore:
    """A `BlockStore` that ends with the process."""

    def __init__(self) -> None:
        self._recency = Recency()

    @property
    def index(self) -> Mapping[BlockKey, object]:
        return self._recency.segments

    def oldest(self, count: int) -> Sequence[BlockKey]:
        return self._recency.oldest(count)

    def least_recent_first(self) -> Iterator[BlockKey]:
        return iter(self._recency)

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        self._recency.discard(deletes)
        self._recency.append(puts if recent is None else recent)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        return _NO_DAMAGE

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        self._recency.append(keys)

    def close(self) -> None:
        """There is nothing to let go of."""
