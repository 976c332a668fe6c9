"""An order of recency over blocks in which a move costs no more than writing down a new moment.

Each block has a moment; blocks that became recent together share one and lie in one segment, in their order. A block
that moves on stays where it was written, but no longer counts there, since its moment is another one now. So nothing
is ever taken out of the middle: what does not count any more is dropped when the walk from the old end meets it, and
when too much of it has gathered. (An ordered map, with its links to mend for every move, takes twice the time.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from kvtier_cli.tiering.model import BlockKey

_SLACK = 4096
_MARGIN = 8
_NOTHING: Mapping[BlockKey, object] = {}


class Segment:
    """Blocks of one moment. `keys` has the least recent last, where it is cheap to drop."""

    __slots__ = ("keys", "moment")

    is_open: bool = False
    """Whether blocks may still be added; an open segment keeps its place even when it is empty."""

    def __init__(self, moment: int, keys: list[BlockKey]) -> None:
        self.moment = moment
        self.keys = keys


class Recency:
    """Blocks from the least to the most recent. `moments` holds exactly the blocks in it, each with its moment."""

    __slots__ = ("_clock", "_segments", "_written", "moments")

    def __init__(self) -> None:
        self.moments: dict[BlockKey, int] = {}
        self._segments: deque[Segment] = deque()
        self._clock = 0
        self._written = 0

    def tick(self) -> int:
        """A new moment, later than all before it."""
        self._clock += 1
        return self._clock

    def open(self, segment: Segment) -> None:
        """Give a segment with the latest moment its place; its owner fills it, and accounts for it by `wrote`."""
        self._segments.append(segment)

    def wrote(self, count: int) -> None:
        """`count` blocks were written into segments; tidies up when most of what is written no longer counts."""
        self._written += count
        if self._written > 4 * len(self.moments) + _SLACK:
            self._tidy()

    def append(self, keys: Sequence[BlockKey]) -> None:
        """Make blocks, new or not, the most recent, in order, at one new moment. No repeats."""
        moment = self.tick()
        self.moments.update(dict.fromkeys(keys, moment))
        self._segments.append(Segment(moment, list(keys[::-1])))
        self.wrote(len(keys))

    def discard(self, keys: Collection[BlockKey]) -> None:
        """Take blocks out; all are in."""
        moments = self.moments
        for key in keys:
            del moments[key]

    def close(self, segment: Segment) -> None:
        """Nothing counts in this segment any more. The owner has emptied it."""
        if self._segments[-1] is segment:
            self._segments.pop()

    def oldest(
        self, count: int, busy: Mapping[BlockKey, object] = _NOTHING, protected: Mapping[BlockKey, object] = _NOTHING
    ) -> list[BlockKey]:
        """The `count` least recent blocks that are neither `busy` nor `protected`; fewer where there are not so many."""
        segments, moment_of = self._segments, self.moments.get
        while segments and not segments[0].keys and not segments[0].is_open:
            segments.popleft()
        found: list[BlockKey] = []
        missing = count
        for segment in segments:
            if missing <= 0:
                break
            keys, moment = segment.keys, segment.moment
            while keys and moment_of(keys[-1]) != moment:
                keys.pop()
            end = len(keys)
            while end and missing > 0:
                # A little more than is missing, since some may not count; seldom the whole of a long segment.
                start = max(0, end - missing - _MARGIN)
                part = keys[start:end]
                part.reverse()
                if busy or protected:
                    part = [
                        key for key in part if moment_of(key) == moment and key not in busy and key not in protected
                    ]
                else:
                    part = [key for key in part if moment_of(key) == moment]
                found += part
                missing -= len(part)
                end = start
        if missing < 0:
            del found[missing:]
        return found

    def __iter__(self) -> Iterator[BlockKey]:
        """The blocks, least recent first. Change nothing meanwhile."""
        moment_of = self.moments.get
        for segment in self._segments:
            moment = segment.moment
            for key in reversed(segment.keys):
                if moment_of(key) == moment:
                    yield key

    def _tidy(self) -> None:
        moment_of = self.moments.get
        kept: deque[Segment] = deque()
        for segment in self._segments:
            moment = segment.moment
            if segment.is_open:
                kept.append(segment)
            elif segment.keys:
                segment.keys = [key for key in segment.keys if moment_of(key) == moment]
                if segment.keys:
                    kept.append(segment)
        self._segments = kept
        self._written = sum(len(segment.keys) for segment in kept)
