"""ARC as vLLM 0.33 plays it: blocks enter T1, reach T2 when a request that did not insert them uses them again.

T1, T2 hold resident blocks, B1, B2 the ghosts of evicted ones, each least recent first; `target` is the size that
T1 is meant to have.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.policies.base import RequestRecency

_PENDING = -1

_Blocks = OrderedDict[BlockKey, None]


class _Uses:
    """What a request has done to blocks. `inserted`: its stores and promotions put them in. `reused`: it loaded them,
    or offered them while they were ready, without having inserted them itself. `offered`: while they were absent."""

    __slots__ = ("inserted", "offered", "reused")

    def __init__(self) -> None:
        self.inserted: set[BlockKey] = set()
        self.reused: set[BlockKey] = set()
        self.offered: set[BlockKey] = set()


class ArcPolicy:
    """Adaptive replacement. `resident` maps each block to the list (T1 or T2) that it is in."""

    name = "arc"
    evicts_in_order = False  # an insertion between two evictions grows T1, which decides where the second takes from

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.reset()

    def reset(self) -> None:
        self.resident: dict[BlockKey, _Blocks] = {}
        self.t1: _Blocks = OrderedDict()
        self.t2: _Blocks = OrderedDict()
        self.b1: _Blocks = OrderedDict()
        self.b2: _Blocks = OrderedDict()
        self.target: float = 0.0

    def access(self, request: RequestRecency, keys: dict[BlockKey, None], ready: Collection[BlockKey]) -> None:
        uses = self._uses(request)
        offered = uses.offered
        for key in reversed(keys):
            if key not in ready and key not in offered:
                offered.add(key)
                self._meet_ghost(key)
        uses.reused.update(key for key in ready if key not in uses.inserted)
        request.accessed.update(keys)

    @staticmethod
    def _uses(request: RequestRecency) -> _Uses:
        uses: _Uses | None = request.rank
        if uses is None:
            uses = request.rank = _Uses()
        return uses

    def _meet_ghost(self, key: BlockKey) -> None:
        """A hit in a ghost list moves the target towards the list that was too small, by the sizes before it."""
        b1, b2 = self.b1, self.b2
        if key in b1:
            self.target = min(float(self._capacity), self.target + max(1.0, len(b2) / len(b1)))
            b1.move_to_end(key)
        elif key in b2:
            self.target = max(0.0, self.target - max(1.0, len(b1) / len(b2)))
            b2.move_to_end(key)

    def insert(self, request: RequestRecency, keys: Sequence[BlockKey]) -> None:
        for key in keys:
            self.b1.pop(key, None)
            self.b2.pop(key, None)
            self.t1[key] = None
            self.resident[key] = self.t1
        self._uses(request).inserted.update(keys)

    def evict(self, count: int, busy: Mapping[BlockKey, int], protected: Mapping[BlockKey, None]) -> list[BlockKey]:
        def evictable(blocks: _Blocks) -> Iterator[BlockKey]:
            return (key for key in blocks if key not in busy and key not in protected)

        from_t1, from_t2 = evictable(self.t1), evictable(self.t2)
        t1_size = len(self.t1)
        wanted = int(self.target)
        victims: list[BlockKey] = []
        for _ in range(count):
            first, second = (from_t1, from_t2) if t1_size >= wanted else (from_t2, from_t1)
            victim = next(first, None)
            if victim is None:
                victim = next(second)
            t1_size -= self.resident[victim] is self.t1
            victims.append(victim)
        for key in victims:
            blocks = self.resident.pop(key)
            del blocks[key]
            ghosts = self.b1 if blocks is self.t1 else self.b2
            ghosts[key] = None
        for ghosts in (self.b1, self.b2):
            while len(ghosts) > self._capacity:
                ghosts.popitem(last=False)
        return victims

    def remove(self, keys: Collection[BlockKey]) -> None:
        for key in keys:
            del self.resident.pop(key)[key]

    def touch(self, keys: Sequence[BlockKey], busy: Mapping[BlockKey, int]) -> None:
        for key in reversed(keys):
            blocks = self.resident.get(key)
            if blocks is None:
                self._meet_ghost(key)
            elif blocks is self.t1 and busy.get(key) == _PENDING:
                self.t1.move_to_end(key)
            else:
                self._make_frequent(key)

    def _make_frequent(self, key: BlockKey) -> None:
        del self.resident[key][key]
        self.t2[key] = None
        self.resident[key] = self.t2

    def commit(self, request: RequestRecency) -> None:
        uses = self._uses(request)
        for key in request.commit_order():
            blocks = self.resident.get(key)
            if blocks is None:
                continue
            if key in uses.reused:
                self._make_frequent(key)
            elif key in uses.inserted:
                blocks.move_to_end(key)

    def restore(self, state: dict[str, Any]) -> None:
        self.reset()
        for name in ("t1", "t2", "b1", "b2"):
            getattr(self, name).update(dict.fromkeys(state[name]))
        for blocks in (self.t1, self.t2):
            self.resident.update(dict.fromkeys(blocks, blocks))
        self.target = float(state["target"])

    def state(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "t1": list(self.t1),
            "t2": list(self.t2),
            "b1": list(self.b1),
            "b2": list(self.b2),
            "target": self.target,
        }
