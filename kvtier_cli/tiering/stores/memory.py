"""A block store in memory: the names of the blocks in order of recency, no payloads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from kvtier_cli.tiering.model import BlockKey

_LISTED = 1 << 16
"""Of how many of the oldest blocks a list is made: enough for the walk to them to cost little, and so few that they are
still in the processor's caches when they are taken."""


class MemoryStore:
    """A `BlockStore` that ends with the process.

    A checkpoint may leave its `mark`, whatever that is; then `moved` tells what has become recent since.

    The order is that of a plain dict: what is written goes to its end. Its old end is not cheap to reach, since the
    places of all that has left are walked over time and again; so the oldest blocks are listed, and taken from the list
    until it is used up. `_left` has those of the list that are not least recent any more. (An ordered map, which
    reaches both ends, takes twice the time for a write, and twice the memory.)
    """

    def __init__(self) -> None:
        self._index: dict[BlockKey, None] = {}
        self._old: list[BlockKey] = []
        self._at = 0
        self._left: set[BlockKey] = set()
        self._found: list[BlockKey] | None = None  # what `oldest` gave last, and where in the list it ends
        self._found_to = 0
        self.mark: object = None
        self._writes = 0

    @property
    def index(self) -> Mapping[BlockKey, object]:
        return self._index

    def oldest(self, count: int) -> Sequence[BlockKey]:
        old, left, at = self._old, self._left, self._at
        count = max(count, 0)
        found: list[BlockKey] = []
        while len(found) < count:
            part = old[at : at + count - len(found)]
            at += len(part)
            if not part:
                if len(found) == len(self._index):
                    break
                self._look_anew(list(islice(self._index, max(_LISTED, count))))
                old, at, found = self._old, 0, []
            elif left and not left.isdisjoint(part):
                found += [key for key in part if key not in left]
            elif found:
                found += part
            else:
                found = part
        self._found, self._found_to = found, at
        return found

    def least_recent_first(self) -> Iterator[BlockKey]:
        if self._at == len(self._old):
            self._look_anew(list(islice(self._index, _LISTED)))
        walked = 0
        for key in map(self._old.__getitem__, range(self._at, len(self._old))):
            if key not in self._left:
                walked += 1
                yield key
        yield from islice(self._index, walked, None)

    def _look_anew(self, old: list[BlockKey]) -> None:
        self._old, self._at, self._found = old, 0, None
        self._left.clear()

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        index = self._index
        if deletes:
            if deletes is self._found:
                self._at = self._found_to
            else:
                self._left.update(deletes)
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
        if self._old:
            self._left.update(keys)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        return {}

    def hold(self, keys: Iterable[BlockKey]) -> None:
        """Hold exactly these blocks, least recent first, no repeats. `index` is another object then."""
        self._index = dict.fromkeys(keys)
        self._look_anew([])
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
