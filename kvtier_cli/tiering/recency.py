"""An order of recency over blocks in which a move costs no more than writing down where a block went.

Blocks that became recent together lie in one segment, in their order; `segments` knows each block's own. A block that
moves on stays where it was written, but no longer counts there. So nothing is ever taken out of the middle: what does
not count any more is dropped when it comes to the old end, and when too much of it has gathered. (An ordered map, with
its links to mend for every move, takes twice the time.)

A segment that holds the whole prompt of a request knows by itself which of its blocks still count: what moves on is
nearly always the head of the prompt, as far as another one shares it, and what is evicted its tail. Such a `run` is
evicted without a look at each block.

At the old end the blocks of other segments lie in one list, each beside its segment: an eviction takes a slice of it,
whatever segments that goes through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import is_

from kvtier_cli.tiering.model import BlockKey

_SLACK = 4096
_KEPT = 64
"""How many blocks a run may keep although they have moved on, besides as many as still count."""
_LISTED = 512
"""About how many of the oldest blocks are listed at a time."""

_NOTHING: Mapping[BlockKey, object] = {}


class Segment:
    """Blocks that became recent at one moment. `keys` has the least recent last, where it is cheap to drop.

    In a run all of `keys` from the place `start` on count, and no others do but those that evictions have passed over:
    these are listed. Places are those in its request's prompt, and `keys` begins at the place `first`. Any other
    segment has a `start` of −1.
    """

    __slots__ = ("first", "keys", "moment", "start")

    is_open = False
    """Whether blocks may still come in; an open segment keeps its place even when it is empty."""

    def __init__(self, moment: int, keys: list[BlockKey]) -> None:
        self.moment = moment
        self.keys = keys
        self.first = 0
        self.start = -1

    def settle(self) -> None:
        """Bring what has come into an open segment into `keys`."""


class Recency:
    """Blocks from the least to the most recent. `segments` holds exactly the blocks in it, each with its segment."""

    __slots__ = (
        *("_at", "_clock", "_empty", "_gone", "_has_runs", "_marked_at", "_oldest", "_oldest_in", "_order"),
        *("_written", "mark", "segments"),
    )

    def __init__(self) -> None:
        self.segments: dict[BlockKey, Segment] = {}
        self._order: deque[Segment] = deque()
        self._clock = 0
        self._written = 0  # blocks in segments other than runs, whether they count or not
        self._has_runs = False
        self._empty = 0  # runs of which nothing counts any more
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
        """Give the latest segment, closed by its owner with the whole prompt of its request, a new moment: a run."""
        segment.moment = self._clock = self._clock + 1
        segment.start = 0
        self._has_runs = True
        if 2 * self._empty > len(self._order) + _SLACK:
            self._tidy()

    def leave(self, keys: list[BlockKey], place: int | None) -> None:
        """Blocks that are in are about to move to a segment that their owner fills. `place`: where in a prompt they
        follow each other, if they do; then `keys` gets the objects that stand for them here, so that those of the
        prompt need not be kept too."""
        if not self._has_runs:
            return
        if place is None:
            self._leave_each(keys)
            return
        segments = self.segments
        at = len(keys)
        while at:
            run = segments[keys[at - 1]]
            if run.start >= 0:
                first, own, end, before = run.first, run.keys, place + at, run.start - place
                moved = own[run.start - first : end - first]
                if 0 <= before < at and moved == keys[before:at]:
                    keys[before:at] = moved
                    run.start = end
                    gone = end - first
                    if gone == len(own):
                        run.keys = []
                        run.first = end
                        self._empty += 1
                    elif gone > _KEPT and 2 * gone > len(own):
                        run.keys = own[gone:]
                        run.first = end
                    at = before
                    continue
                self._forget_run(run)
            at -= 1

    def _leave_each(self, keys: Iterable[BlockKey]) -> None:
        """Some of `keys` are in; they are about to leave their segments."""
        if self._has_runs:
            for key in keys:
                segment = self.segments.get(key)
                if segment is not None and segment.start >= 0:
                    self._forget_run(segment)

    def _forget_run(self, segment: Segment) -> None:
        """From now on `segments` is to be asked for each block of a run."""
        segment.keys = segment.keys[segment.start - segment.first :]
        segment.start = -1
        self._written += len(segment.keys)

    def _wrote(self, count: int) -> None:
        self._written += count
        if self._written > 4 * len(self.segments) + _SLACK:
            self._tidy()

    def append(self, keys: Sequence[BlockKey]) -> None:
        """Make blocks, new or not, the most recent, in order, at one new moment. No repeats."""
        self._leave_each(keys)
        self._clock += 1
        segment = Segment(self._clock, list(keys[::-1]))
        segments = self.segments
        for key in keys:  # faster than update(dict.fromkeys(…)), which hashes twice
            segments[key] = segment
        self._order.append(segment)
        self._wrote(len(keys))

    def discard(self, keys: Collection[BlockKey]) -> None:
        """Take blocks out; all are in."""
        self._leave_each(keys)
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
        taken = self._take(count, busy, protected)
        segments = self.segments
        for key in taken:
            del segments[key]
        if self.mark is not None:
            self._gone += taken
        return taken

    def _take(
        self, missing: int, busy: Mapping[BlockKey, object], protected: Mapping[BlockKey, object]
    ) -> list[BlockKey]:
        """The same, but only their places are given up."""
        some_blocked = bool(busy or protected)
        taken: list[BlockKey] = []
        passed: list[BlockKey] = []
        while missing > 0:
            part = self._next_places(missing)
            if part is None:
                taken += self._from_open(missing, busy, protected)
                break
            if some_blocked and not (busy.keys().isdisjoint(part) and protected.keys().isdisjoint(part)):
                passed += [key for key in part if key in busy or key in protected]
                part = [key for key in part if key not in busy and key not in protected]
            taken = taken + part if taken else part
            missing -= len(part)
        if passed:
            self._oldest = passed + self._oldest[self._at :]
            self._oldest_in = [self.segments[key] for key in passed] + self._oldest_in[self._at :]
            self._at = 0
        return taken

    def _next_places(self, count: int) -> list[BlockKey] | None:
        """Give up places at the old end, of not more than `count` blocks, perhaps of none; whose they were. None where
        an open segment is the oldest, or there is no other."""
        if self._at < len(self._oldest):
            return self._from_list(count)
        if self._order and self._order[0].start >= 0:
            return self._from_runs(count)
        return [] if self._list_oldest() else None

    def _from_list(self, count: int) -> list[BlockKey]:
        """The next blocks of the list of the oldest, not more than `count`, that still count."""
        end = self._at + count
        part, its = self._oldest[self._at : end], self._oldest_in[self._at : end]
        self._at += len(part)
        found = list(map(self.segments.get, part))
        return part if found == its else list(compress(part, map(is_, found, its)))

    def _from_runs(self, count: int) -> list[BlockKey]:
        """The next blocks of the runs at the old end, not more than `count`. Only their places are given up."""
        order = self._order
        taken: list[BlockKey] = []
        while count and order:
            run = order[0]
            start, keys = run.start, run.keys
            if start < 0:
                break
            left = run.first + len(keys) - start
            if left > count:
                part = keys[-count:]
                del keys[-count:]
                left = count
            else:
                order.popleft()
                part = keys[-left:] if left else []
                run.keys = []
                run.first = start
                self._empty -= not left
            part.reverse()
            taken = taken + part if taken else part
            count -= left
        return taken

    def _list_oldest(self) -> bool:
        """List blocks of the next segments from the old end; whether something can be taken before an open segment."""
        order, segment_of = self._order, self.segments.get
        oldest: list[BlockKey] = []
        oldest_in: list[Segment] = []
        while len(oldest) < _LISTED and order and not order[0].is_open and order[0].start < 0:
            segment = order.popleft()
            keys, segment.keys = segment.keys, []
            self._written -= len(keys)
            keys.reverse()
            before = len(oldest)
            oldest += compress(keys, map(is_, map(segment_of, keys), repeat(segment)))
            oldest_in += [segment] * (len(oldest) - before)
        self._oldest, self._oldest_in, self._at = oldest, oldest_in, 0
        return bool(oldest) or bool(order and order[0].start >= 0)

    def _from_open(
        self, missing: int, busy: Mapping[BlockKey, object], protected: Mapping[BlockKey, object]
    ) -> list[BlockKey]:
        """The least recent blocks where the oldest segment of all is open. Only their places are given up."""
        taken: list[BlockKey] = []
        for segment in self._order:
            if segment.is_open:
                segment.settle()
            elif segment.start >= 0:
                self._forget_run(segment)
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
            if not segment.is_open and segment.start < 0:
                segment.keys = [key for key in segment.keys if segment_of(key) is segment]
                written += len(segment.keys)
            if segment.is_open or segment.keys:
                kept.append(segment)
        self._order = kept
        self._written = written
        self._empty = 0
