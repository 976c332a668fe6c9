"""A block store in memory: the names of the blocks in order of recency, no payloads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from kvtier_cli.tiering.model import BlockKey


class MemoryStore:
    """A `BlockStore` that ends with the process.

    A checkpoint may leave its `mark`, whatever that is; then `moved` tells what has become recent since.

    `bounded` says whether blocks will be taken from the old end time and again, which an ordered map does cheaply; a
    plain dict takes less time and memory for everything else.
    """

    def __init__(self, *, bounded: bool = True) -> None:
        self._kind: type[dict[BlockKey, None]] = OrderedDict if bounded else dict
        self._index = self._kind()
        self.mark: object = None
        self._writes = 0

    @property
    def index(self) -> Mapping[BlockKey, object]:
        return self._index

    def oldest(self, count: int) -> Sequence[BlockKey]:
        return list(islice(self._index, max(count, 0)))

    def least_recent_first(self) -> Iterator[BlockKey]:
        return iter(self._index)

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        index = self._index
        for key in deletes:
            del index[key]
        for key in puts:  # faster than update(dict.fromkeys(…)), which hashes twice
            index[key] = None
        self._writes += len(puts)
        if recent is not None:
            self.refresh(recent)

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        index = self._index
        for key in keys:
            del index[key]
            index[key] = None
        self._writes += len(keys)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        return {}

    def hold(self, keys: Iterable[BlockKey]) -> None:
        """Hold exactly these blocks, least recent first, no repeats. `index` is another object then."""
        self._index = self._kind.fromkeys(keys)
        self.set_mark(None)

    def set_mark(self, mark: object) -> None:
        """Leave a mark on the order as it is now. Any change but by `write` and `refresh` takes it away."""
        self.mark = mark
        self._writes = 0

    def moved(self) -> list[BlockKey]:
        """The most recent blocks, least recent first: all that were written since the mark, perhaps more. Of the
        others the least recent may have left."""
        recent = list(islice(reversed(self._index), self._writes))
        recent.reverse()
        return recent

    def close(self) -> None:
        """There is nothing to let go of."""
