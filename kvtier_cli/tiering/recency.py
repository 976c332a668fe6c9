"""An order of recency over blocks in which a move costs no more than writing down where a block went.

Blocks that became recent together lie in one segment, in their order; `segments` knows each block's own. A block that
moves on stays where it was written, but no longer counts there. So nothing is ever taken out of the middle: what does
not count any more is dropped when the walk from the old end meets it, and when too much of it has gathered. (An
ordered map, with its links to mend for every move, takes twice the time.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import compress, filterfalse, repeat
from operator import is_

from kvtier_cli.tiering.model import BlockKey

_SLACK = 4096
_AHEAD = 64
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

    __slots__ = ("_clock", "_gone", "_marked_at", "_order", "_written", "mark", "segments")

    def __init__(self) -> None:
        self.segments: dict[BlockKey, Segment] = {}
        self._order: deque[Segment] = deque()
        self._clock = 0
        self._written = 0
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
        order, segment_of = self._order, self.segments.get
        while order and not order[0].is_open and not order[0].keys:
            order.popleft()
        taken: list[BlockKey] = []
        missing = max(count, 0)
        some_blocked = bool(busy or protected)
        for segment in order:
            if not missing:
                break
            if segment.is_open:
                segment.settle()
            keys = segment.keys
            end = len(keys)
            looked_at = missing
            passed_over = False
            while end and missing:
                start = max(0, end - looked_at)
                part = keys[start:end]
                part.reverse()
                found = list(map(segment_of, part))
                valid = found.count(segment)
                if valid < len(part):
                    # The head of a prompt moves on, its tail stays: what follows here is likely to have moved as well.
                    looked_at = missing + _AHEAD
                    if not valid:
                        end = start
                        continue
                    if found[:valid].count(segment) == valid:
                        del part[valid:]
                    else:
                        part = list(compress(part, map(is_, found, repeat(segment))))
                if some_blocked and not (busy.keys().isdisjoint(part) and protected.keys().isdisjoint(part)):
                    part = list(filterfalse(protected.__contains__, filterfalse(busy.__contains__, part)))
                    passed_over = True
                if len(part) > missing:
                    del part[missing:]
                    start = end - 1 - keys[start:end][::-1].index(part[-1])
                taken += part
                missing -= len(part)
                end = start
            if not passed_over:  # all that was walked over is taken, or did not count any more
                if not segment.is_open:
                    self._written -= len(keys) - end
                del keys[end:]
        segments = self.segments
        for key in taken:
            del segments[key]
        if self.mark is not None:
            self._gone += taken
        return taken

    def __iter__(self) -> Iterator[BlockKey]:
        """The blocks, least recent first. Change nothing meanwhile."""
        segment_of = self.segments.get
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
