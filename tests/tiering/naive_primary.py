"""The primary and its two policies once more, as plainly as the rules can be put down; for `naive_manager.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kvtier_cli.tiering.filters import TierFilter

Rank = tuple[int, int, int]
"""A moment, minus a position, a KV group: what sorts first is evicted first."""


def group(block: str) -> int:
    return int(block.partition("@")[2] or 0)


class NaiveRequest:
    """What a request has done so far. Blocks are kept in the order in which they came."""

    def __init__(self, name: str, load_filter: TierFilter) -> None:
        self.name = name
        self.filter = load_filter
        self.positions: dict[str, int] = {}
        self.finished = False
        self.over = False
        self.reset()

    def reset(self) -> None:
        self.accessed: list[str] = []
        self.inserted: set[str] = set()
        self.reused: set[str] = set()
        self.met_absent: set[str] = set()
        self.rank: int | None = None
        self.sources: dict[str, str] = {}
        self.stores: list[list[str]] = []
        self.loads: list[list[str]] = []
        self.storing = 0
        self.parked: list[str] = []


class NaivePrimary:
    """Blocks with their pins (None: pending), and where both policies rank them."""

    def __init__(self, capacity: int, policy: str) -> None:
        self.capacity = capacity
        self.arc = policy == "arc"
        self.moment = 0
        self.reset()

    def reset(self) -> None:
        self.pins: dict[str, int | None] = {}
        self.ranks: dict[str, Rank] = {}
        self.t1: list[str] = []
        self.t2: list[str] = []
        self.b1: list[str] = []
        self.b2: list[str] = []
        self.target: float = 0

    def fresh(self) -> int:
        self.moment += 1
        return self.moment

    def is_ready(self, block: str) -> bool:
        return self.pins.get(block) is not None

    def order(self) -> list[str]:
        return sorted(self.pins, key=self.ranks.__getitem__)

    def list_of(self, block: str) -> list[str]:
        return self.t1 if block in self.t1 else self.t2

    def rank_in(self, request: NaiveRequest, block: str) -> Rank:
        assert request.rank is not None
        return (request.rank, -request.positions[block], group(block))

    def access(self, request: NaiveRequest, blocks: Iterable[str]) -> None:
        for block in blocks:
            if request.rank is None:
                request.rank = self.fresh()
            if block in request.accessed:
                continue
            request.accessed.append(block)
            if not self.arc and self.is_ready(block) and block in request.positions:
                self.ranks[block] = max(self.ranks[block], self.rank_in(request, block))

    def reuse(self, request: NaiveRequest, blocks: Iterable[str]) -> None:
        request.reused.update(block for block in blocks if block not in request.inserted)

    def meet_ghost(self, block: str) -> None:
        if block in self.b1:
            self.target = min(self.capacity, self.target + max(1, len(self.b2) / len(self.b1)))
            ghosts = self.b1
        elif block in self.b2:
            self.target = max(0, self.target - max(1, len(self.b1) / len(self.b2)))
            ghosts = self.b2
        else:
            return
        ghosts.remove(block)
        ghosts.append(block)

    def insert(self, request: NaiveRequest, block: str) -> None:
        self.pins[block] = None
        request.inserted.add(block)
        if self.arc:
            self.t1.append(block)
            for ghosts in (self.b1, self.b2):
                if block in ghosts:
                    ghosts.remove(block)
        elif block in request.positions:
            self.ranks[block] = self.rank_in(request, block)
        else:
            self.ranks[block] = (self.fresh(), 0, 0)

    def drop(self, block: str) -> None:
        del self.pins[block]
        if self.arc:
            self.list_of(block).remove(block)
        else:
            del self.ranks[block]

    def evict(self, count: int, protected: Sequence[str]) -> list[str] | None:
        """Take `count` blocks out, or none at all."""

        def evictable(blocks: Sequence[str]) -> list[str]:
            return [block for block in blocks if self.pins[block] == 0 and block not in protected]

        if not self.arc:
            victims = evictable(self.order())[:count]
        else:
            victims = []
            size = len(self.t1)
            from_t1, from_t2 = evictable(self.t1), evictable(self.t2)
            while len(victims) < count and (from_t1 or from_t2):
                if from_t1 and (size >= int(self.target) or not from_t2):
                    victims.append(from_t1.pop(0))
                    size -= 1
                else:
                    victims.append(from_t2.pop(0))
        if len(victims) < count:
            return None
        for block in victims:
            if self.arc:
                (self.b1 if block in self.t1 else self.b2).append(block)
            self.drop(block)
        for ghosts in (self.b1, self.b2):
            del ghosts[: max(0, len(ghosts) - self.capacity)]
        return victims

    def offer(self, request: NaiveRequest, blocks: Sequence[str]) -> tuple[list[str], list[str]] | None:
        """Slots for those that are absent: these and what was evicted; None if there are too few."""
        absent = [block for block in blocks if block not in self.pins]
        ready = [block for block in blocks if self.is_ready(block)]
        if self.arc:
            for block in reversed(absent):
                if block not in request.met_absent:
                    self.meet_ghost(block)
        request.met_absent.update(absent)
        self.access(request, [block for block in blocks if block in absent or block in ready])
        self.reuse(request, ready)
        missing = len(absent) - (self.capacity - len(self.pins))
        victims = self.evict(missing, blocks) if absent and missing > 0 else []
        if victims is None:
            return None
        for block in absent:
            self.insert(request, block)
        return absent, victims

    def touch(self, blocks: Sequence[str]) -> None:
        for block in reversed(blocks):
            if not self.arc:
                if block in self.pins:
                    self.ranks[block] = (self.fresh(), 0, 0)
            elif block in self.pins:
                stays = block in self.t1 and not self.is_ready(block)
                self.list_of(block).remove(block)
                (self.t1 if stays else self.t2).append(block)
            else:
                self.meet_ghost(block)

    def commit(self, request: NaiveRequest) -> None:
        for block in self.commit_order(request):
            if block not in self.pins:
                continue
            if not self.arc:
                self.ranks[block] = (self.fresh(), 0, 0)
            elif block in request.reused:
                self.list_of(block).remove(block)
                self.t2.append(block)
            elif block in request.inserted:
                blocks = self.list_of(block)
                blocks.remove(block)
                blocks.append(block)

    @staticmethod
    def commit_order(request: NaiveRequest) -> list[str]:
        positions = request.positions
        latest_first = request.accessed[::-1]
        if all(block in positions for block in latest_first):
            return sorted(latest_first, key=lambda block: (-positions[block], -group(block)))
        order = []
        for number in sorted({group(block) for block in latest_first}, reverse=True):
            blocks = [block for block in latest_first if group(block) == number]
            if all(block in positions for block in blocks):
                blocks.sort(key=lambda block: -positions[block])
            order += blocks
        return order

    def state(self) -> dict[str, Any]:
        if not self.arc:
            return {"name": "lru", "order": self.order()}
        lists = {name: list(getattr(self, name)) for name in ("t1", "t2", "b1", "b2")}
        return {"name": "arc", **lists, "target": self.target}
