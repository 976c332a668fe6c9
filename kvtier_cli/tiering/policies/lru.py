"""LRU as vLLM 0.33 ranks it: by request first, and within a request from its last block to its first.

A rank is a moment on one clock. A block either has a moment of its own, or it shares the moment at which its
request first accessed anything; blocks that share one are ordered by falling position. So the blocks with a moment
of their own lie in one ordered map, and each live request's shared moment is one `_Bucket` in that map. Nothing is
sorted until an eviction has to enter a bucket.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kvtier_cli.tiering.model import BlockKey, group_of
from kvtier_cli.tiering.policies.base import RequestRecency


class _Bucket:
    """The blocks that rank at one request's moment, with the positions they had when they came in."""

    __slots__ = ("_by_rank", "blocks", "moment")

    def __init__(self, moment: int) -> None:
        self.moment = moment
        self.blocks: dict[BlockKey, int] = {}
        self._by_rank: list[tuple[int, int, BlockKey]] | None = None

    def add(self, keys: Sequence[BlockKey], positions: Sequence[int]) -> None:
        self.blocks.update(zip(keys, positions, strict=True))
        ranked = self._by_rank
        if ranked is not None:
            entries = [(end, -group_of(key), key) for key, end in zip(keys, positions, strict=True)]
            in_order = all(a[:2] < b[:2] for a, b in zip([*ranked[-1:], *entries], entries, strict=False))
            if in_order:
                ranked.extend(entries)
            else:
                self._by_rank = None

    def least_recent_first(self) -> Iterator[BlockKey]:
        """By falling position; at the same position the lower KV group first."""
        ranked = self._by_rank
        if ranked is None:
            # Blocks at the same position of the same group keep the order in which they came in.
            entries = [(end, -group_of(key), key) for key, end in reversed(self.blocks.items())]
            ranked = self._by_rank = sorted(entries, key=lambda entry: entry[:2])
        blocks = self.blocks
        while ranked and blocks.get(ranked[-1][2]) != ranked[-1][0]:
            ranked.pop()
        for end, _, key in reversed(ranked):
            if blocks.get(key) == end:
                yield key


class LruPolicy:
    """Least recently used. `resident` maps each block to its moment."""

    name = "lru"

    def __init__(self, capacity: int) -> None:
        del capacity  # the primary counts the slots
        self.reset()

    def reset(self) -> None:
        self.resident: dict[BlockKey, int] = {}
        self._order: OrderedDict[Any, None] = OrderedDict()
        self._buckets: dict[int, _Bucket] = {}
        self._clock = 0

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _bucket(self, request: RequestRecency) -> _Bucket:
        bucket: _Bucket | None = request.rank
        if bucket is None:
            bucket = request.rank = _Bucket(self._tick())
            self._order[bucket] = None
            self._buckets[bucket.moment] = bucket
        return bucket

    def access(self, request: RequestRecency, keys: Sequence[BlockKey], ready: Collection[BlockKey]) -> None:
        if not keys:
            return
        bucket = self._bucket(request)
        accessed = request.accessed
        if ready:
            moment, resident, positions = bucket.moment, self.resident, request.positions
            moving = [
                key for key in ready if key not in accessed and resident[key] < moment and key in positions
            ]
            if moving:
                self._take_out(moving)
                bucket.add(moving, [positions[key] for key in moving])
                resident.update(dict.fromkeys(moving, moment))
        accessed.update(dict.fromkeys(keys))

    def _take_out(self, keys: Iterable[BlockKey]) -> None:
        """Remove resident blocks from where they rank; `resident` is left as it is."""
        order, buckets, resident = self._order, self._buckets, self.resident
        for key in keys:
            bucket = buckets.get(resident[key])
            if bucket is None:
                del order[key]
            else:
                del bucket.blocks[key]

    def insert(self, request: RequestRecency, keys: Sequence[BlockKey]) -> None:
        bucket = self._bucket(request)
        positions = request.positions
        try:
            bucket.add(keys, [positions[key] for key in keys])
        except KeyError:
            for key in keys:
                if key in positions:
                    bucket.add((key,), (positions[key],))
                    self.resident[key] = bucket.moment
                else:
                    self._order[key] = None
                    self.resident[key] = self._tick()
        else:
            self.resident.update(dict.fromkeys(keys, bucket.moment))

    def evict(self, count: int, busy: Mapping[BlockKey, int], protected: Container[BlockKey]) -> list[BlockKey]:
        order, resident = self._order, self.resident
        victims: list[BlockKey] = []
        for entry in order:
            if type(entry) is _Bucket:
                for key in entry.least_recent_first():
                    if key not in busy and key not in protected:
                        victims.append(key)
                        if len(victims) == count:
                            break
            elif entry not in busy and entry not in protected:
                victims.append(entry)
            if len(victims) == count:
                break
        self._take_out(victims)
        for key in victims:
            del resident[key]
        return victims

    def remove(self, keys: Iterable[BlockKey]) -> None:
        keys = list(keys)
        self._take_out(keys)
        for key in keys:
            del self.resident[key]

    def touch(self, keys: Sequence[BlockKey], busy: Mapping[BlockKey, int]) -> None:
        del busy  # pending blocks are touched like the others
        for key in reversed(keys):
            if key in self.resident:
                self._take_out((key,))
                self._order[key] = None
                self.resident[key] = self._tick()

    def commit(self, request: RequestRecency) -> None:
        if not request.accessed:
            return
        bucket = self._bucket(request)
        order, resident = self._order, self.resident
        sequence = request.commit_order()
        # One moment serves for all: no request can take a rank between two of them.
        moment = self._tick()
        if len(bucket.blocks) != len(sequence):
            sequence = [key for key in sequence if key in resident]
            self._take_out(key for key in sequence if key not in bucket.blocks)
        del order[bucket]
        del self._buckets[bucket.moment]
        request.rank = None
        order.update(dict.fromkeys(sequence))
        resident.update(dict.fromkeys(sequence, moment))

    def state(self) -> dict[str, Any]:
        order: list[BlockKey] = []
        for entry in self._order:
            if type(entry) is _Bucket:
                order.extend(entry.least_recent_first())
            else:
                order.append(entry)
        return {"name": self.name, "order": order}
