"""LRU as vLLM 0.33 ranks it: by request first, and within a request from its last block to its first.

A rank is a moment on one clock (`recency.py`). A block either has a moment of its own, or it shares the moment at
which its request first accessed anything; blocks that share one are ordered by falling position. Nothing is sorted
until an eviction has to take from the blocks of a live request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import lt
from typing import Any

from kvtier_cli.tiering.model import BlockKey, group_of
from kvtier_cli.tiering.policies.base import RequestRecency
from kvtier_cli.tiering.recency import Recency, Segment


class _Bucket(Segment):
    """The blocks that rank at a live request's moment, with the positions that they had when they came in.

    The highest position is the least recent; at the same position the lower KV group is, and in one group the block
    that came in first.
    """

    __slots__ = ("_positions", "added", "is_open")

    def __init__(self, moment: int) -> None:
        super().__init__(moment, [])
        self.is_open = True
        self.added: list[tuple[Sequence[BlockKey], Sequence[int]]] = []
        """What has come in since it was settled last: blocks and their positions."""
        self._positions: dict[BlockKey, int] = {}

    @property
    def unsettled(self) -> int:
        """How many blocks have come in since. None is taken out of the bucket while there are some."""
        count = 0
        for keys, _ in self.added:
            count += len(keys)
        return count

    def settle(self) -> None:
        for keys, positions in self.added:
            self._add(keys, positions)
        self.added.clear()

    def _add(self, keys: Sequence[BlockKey], positions: Sequence[int]) -> None:
        known = self._positions
        last = known[self.keys[-1]] if self.keys else positions[0] - 1
        rises = all(map(lt, (last, *positions), positions)) and known.keys().isdisjoint(keys)
        known.update(zip(keys, positions, strict=True))
        if rises:
            self.keys += keys
        else:
            self.keys = sorted(reversed(known), key=lambda key: (known[key], -group_of(key)))  # noqa: C414 - for ties

    def close(self, keys: list[BlockKey]) -> None:
        """The request is finished. `keys`, the least recent last, are all that still count here."""
        self.is_open = False
        self.keys = keys
        self.added, self._positions = [], {}


class LruPolicy:
    """Least recently used. `resident` maps each block to the segment that it ranks in."""

    name = "lru"
    evicts_in_order = True

    def __init__(self, capacity: int) -> None:
        del capacity  # the primary counts the slots
        self.reset()

    def reset(self) -> None:
        self._recency = Recency()
        self.resident = self._recency.segments

    def _bucket(self, request: RequestRecency) -> _Bucket:
        """Take the request's rank."""
        bucket = request.rank = _Bucket(self._recency.tick())
        self._recency.open(bucket)
        return bucket

    def access(self, request: RequestRecency, keys: dict[BlockKey, None], ready: Collection[BlockKey]) -> None:
        if not keys:
            return
        accessed, bucket = request.accessed, request.rank
        if bucket is None:
            bucket = self._bucket(request)
            moving = list(ready)  # its moment is the latest
        else:
            moving = self._before(bucket, ready, accessed) if ready else []
        if moving:
            self._move(request, bucket, moving)
        if accessed:
            accessed.update(keys)
        else:
            request.accessed = keys

    def _before(
        self, bucket: _Bucket, ready: Collection[BlockKey], accessed: Mapping[BlockKey, None]
    ) -> list[BlockKey]:
        """Those `ready` blocks that rank before the bucket and were not accessed yet."""
        moment, resident = bucket.moment, self.resident
        return [key for key in ready if key not in accessed and resident[key].moment < moment]

    def _move(self, request: RequestRecency, bucket: _Bucket, keys: list[BlockKey]) -> None:
        """Blocks whose positions are known come into the bucket."""
        place, ends = request.places(keys)
        if ends is None:
            keys = [key for key in keys if key in request.positions]
            ends = [request.positions[key] for key in keys]
            if not keys:
                return
        self._recency.leave(keys, place)
        if place is not None:  # the objects that stood for these blocks before stand for them in this prompt too
            request.prompt[place : place + len(keys)] = keys  # type: ignore[index]
        bucket.added.append((keys, ends))
        resident = self.resident
        for key in keys:
            resident[key] = bucket

    def insert(self, request: RequestRecency, keys: Sequence[BlockKey]) -> None:
        bucket = request.rank or self._bucket(request)
        resident = self.resident
        _, ends = request.places(keys)
        if ends is not None:
            bucket.added.append((keys, ends))
            for key in keys:
                resident[key] = bucket
            return
        positions = request.positions
        for key in keys:
            if key in positions:
                bucket.added.append(((key,), (positions[key],)))
                resident[key] = bucket
            else:
                self._recency.append((key,))

    def evict(self, count: int, busy: Mapping[BlockKey, int], protected: Mapping[BlockKey, None]) -> list[BlockKey]:
        return self._recency.take_oldest(count, busy, protected)

    def remove(self, keys: Collection[BlockKey]) -> None:
        self._recency.discard(keys)

    def touch(self, keys: Sequence[BlockKey], busy: Mapping[BlockKey, int]) -> None:
        del busy  # pending blocks are touched like the others
        self._recency.append([key for key in reversed(dict.fromkeys(keys)) if key in self.resident])

    def commit(self, request: RequestRecency) -> None:
        bucket: _Bucket | None = request.rank
        if bucket is None:
            return
        request.rank = None
        accessed, resident = request.accessed, self.resident
        prompt, recency = request.prompt, self._recency
        if prompt is not None and len(accessed) == len(prompt) == bucket.unsettled and recency.is_latest(bucket):
            # The usual end: all its blocks came into the bucket and none has left, so it becomes recent as a whole.
            bucket.close(list(prompt))
            recency.renew(bucket)
            return
        order = request.commit_order()
        if not resident.keys() >= accessed.keys():
            order = list(filter(resident.__contains__, order))
        bucket.close([])
        self._recency.close(bucket)
        self._recency.append(order)

    @property
    def recency(self) -> Recency:
        """The order of the blocks itself, for checkpoints. A restore makes another one."""
        return self._recency

    def restore(self, state: dict[str, Any]) -> None:
        self.reset()
        self._recency.append(state["order"])

    def state(self) -> dict[str, Any]:
        return {"name": self.name, "order": list(self._recency)}
