"""An order of recency over blocks in which a move costs no more than writing down where a block went.

Blocks that became recent together lie in one segment, in their order; `segments` knows each block's own. A block that
moves on stays where it was written, but no longer counts there. So nothing is ever taken out of the middle: what does
not count any more is dropped when it comes to the old end, and when too much of it has gathered. (An ordered map, with
its links to mend for every move, takes twice the time.)

At the old end the blocks of some segments lie in one list, each beside its segment: an eviction takes a slice of it,
whatever segments that goes through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import is_

from kvtier_cli.tiering.model import BlockKey

_SLACK = 4096
_LISTED = 512
"""About how many of the oldest blocks are listed at a time."""

_NOTHING: Mapping[BlockKey, object] = {}


class Segment:
    """Blocks that became recent at one moment. `keys` has the least recent last, where it is cheap to drop."""

    __slots__ = ("keys", "moment")

    is_open = False
    """Whether blocks may still come in; an open segment keeps its place even when it is empty."""

    def __init__(self, moment: int, keys: list[BlockKey]) -> None:
        self.moment = moment
        self.keys = keys

    def settle(self) -> None:
        """Bring what has come into an open segment into `keys`."""


class Recency:
    """Blocks from the least to the most recent. `segments` holds exactly the blocks in it, each with its segment."""

    __slots__ = (
        *("_at", "_clock", "_gone", "_marked_at", "_oldest", "_oldest_in", "_order", "_written"),
        *("mark", "segments"),
    )

    def __init__(self) -> None:
        self.segments: dict[BlockKey, Segment] = {}
        self._order: deque[Segment] = deque()
        self._clock = 0
        self._written = 0
        self._oldest: list[BlockKey] = []
        self._oldest_in: list[Segment] = []
        self._at = 0
        self.mark: object = None
        self._marked_at = 0
        self._gone: list[BlockKey] = []

    def tick(self) -> int:
        """A new moment, later than all before it."""
        self._clock += 1
        return self._clock

    def open(self, segment: Segment) -> None:
        """Give a segment with the latest moment its place. Its owner fills it, and enters its blocks in `segments`."""
        self._order.append(segment)

    def close(self, segment: Segment) -> None:
        """Nothing counts in this segment any more. The owner has emptied it."""
        if self._order[-1] is segment:
            self._order.pop()

    def is_latest(self, segment: Segment) -> bool:
        """Whether nothing has happened since a segment was opened but that its owner filled it, and evictions."""
        return segment.moment == self._clock and self._order[-1] is segment

    def renew(self, segment: Segment) -> None:
        """Give the latest segment, closed by its owner, a new moment."""
        segment.moment = self._clock = self._clock + 1
        self._wrote(len(segment.keys))

    def _wrote(self, count: int) -> None:
        self._written += count
        if self._written > 4 * len(self.segments) + _SLACK:
            self._tidy()

    def append(self, keys: Sequence[BlockKey]) -> None:
        """Make blocks, new or not, the most recent, in order, at one new moment. No repeats."""
        self._clock += 1
        segment = Segment(self._clock, list(keys[::-1]))
        segments = self.segments
        for key in keys:  # faster than update(dict.fromkeys(…)), which hashes twice
            segments[key] = segment
        self._order.append(segment)
        self._wrote(len(keys))

    def discard(self, keys: Collection[BlockKey]) -> None:
        """Take blocks out; all are in."""
        self._clock += 1
        segments = self.segments
        for key in keys:
            del segments[key]
        if self.mark is not None:
            self._gone += keys

    def take_oldest(
        self, count: int, busy: Mapping[BlockKey, object] = _NOTHING, protected: Mapping[BlockKey, object] = _NOTHING
    ) -> list[BlockKey]:
        """Take out and return the `count` least recent blocks that are neither `busy` nor `protected`; all of these
        where there are fewer."""
        segments = self.segments
        missing = max(count, 0)
        some_blocked = bool(busy or protected)
        taken: list[BlockKey] = []
        passed: list[BlockKey] = []
        while missing and (self._at < len(self._oldest) or self._list_oldest()):
            end = self._at + missing
            part, its = self._oldest[self._at : end], self._oldest_in[self._at : end]
            self._at += len(part)
            found = list(map(segments.get, part))
            if found != its:
                part = list(compress(part, map(is_, found, its)))
            if some_blocked and not (busy.keys().isdisjoint(part) and protected.keys().isdisjoint(part)):
                blocked = [key for key in part if key in busy or key in protected]
                passed += blocked
                part = [key for key in part if key not in busy and key not in protected]
            taken += part
            missing -= len(part)
        if passed:
            self._oldest = passed + self._oldest[self._at :]
            self._oldest_in = [segments[key] for key in passed] + self._oldest_in[self._at :]
            self._at = 0
        if missing:
            taken += self._from_open(missing, busy, protected)
        for key in taken:
            del segments[key]
        if self.mark is not None:
            self._gone += taken
        return taken

    def _list_oldest(self) -> bool:
        """List blocks of the next segments from the old end; whether there are any in front of an open segment."""
        order, segment_of = self._order, self.segments.get
        oldest: list[BlockKey] = []
        oldest_in: list[Segment] = []
        while len(oldest) < _LISTED and order and not order[0].is_open:
            segment = order.popleft()
            keys, segment.keys = segment.keys, []
            self._written -= len(keys)
            keys.reverse()
            before = len(oldest)
            oldest += compress(keys, map(is_, map(segment_of, keys), repeat(segment)))
            oldest_in += [segment] * (len(oldest) - before)
        self._oldest, self._oldest_in, self._at = oldest, oldest_in, 0
        return bool(oldest)

    def _from_open(
        self, missing: int, busy: Mapping[BlockKey, object], protected: Mapping[BlockKey, object]
    ) -> list[BlockKey]:
        """The least recent blocks where the oldest segment of all is open. Only their places are given up."""
        taken: list[BlockKey] = []
        for segment in self._order:
            if segment.is_open:
                segment.settle()
            kept: list[BlockKey] = []
            keys = segment.keys
            before = len(keys)
            while keys and len(taken) < missing:
                key = keys.pop()
                if self.segments.get(key) is segment:
                    (kept if key in busy or key in protected else taken).append(key)
            keys += reversed(kept)
            if not segment.is_open:
                self._written -= before - len(keys)
            if len(taken) == missing:
                break
        return taken

    def __iter__(self) -> Iterator[BlockKey]:
        """The blocks, least recent first. Change nothing meanwhile."""
        segment_of = self.segments.get
        for at in range(self._at, len(self._oldest)):
            if segment_of(self._oldest[at]) is self._oldest_in[at]:
                yield self._oldest[at]
        for segment in self._order:
            if segment.is_open:
                segment.settle()
            for key in reversed(segment.keys):
                if segment_of(key) is segment:
                    yield key

    def set_mark(self, mark: object) -> None:
        """Leave a mark on the order as it is now: `moved` tells what has become of it since."""
        self.mark = mark
        self._marked_at = self._clock
        self._gone = []

    def moved(self) -> tuple[list[BlockKey], list[BlockKey]]:
        """The blocks that became recent since the mark, least recent first, and those that left, perhaps to return."""
        recent: list[BlockKey] = []
        segment_of = self.segments.get
        for segment in reversed(self._order):
            if segment.moment <= self._marked_at:
                break
            if segment.is_open:
                segment.settle()
            recent += [key for key in segment.keys if segment_of(key) is segment]
        else:
            for at in range(len(self._oldest) - 1, self._at - 1, -1):
                segment = self._oldest_in[at]
                if segment.moment <= self._marked_at:
                    break
                if segment_of(self._oldest[at]) is segment:
                    recent.append(self._oldest[at])
        recent.reverse()
        return recent, self._gone

    def _tidy(self) -> None:
        segment_of = self.segments.get
        kept: deque[Segment] = deque()
        written = 0
        for segment in self._order:
            if not segment.is_open:
                segment.keys = [key for key in segment.keys if segment_of(key) is segment]
                written += len(segment.keys)
            if segment.is_open or segment.keys:
                kept.append(segment)
        self._order = kept
        self._written = written
