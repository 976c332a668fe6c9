"""What a primary asks of its eviction policy, and the part of a request that policies read and write.

The rules are vLLM 0.33's, observed on its manager. A policy orders blocks and picks victims; which blocks are
pinned, pending or free slots are counted by `primary.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from kvtier_cli.errors import ManagerError
from kvtier_cli.tiering.model import BlockKey, group_of


class RequestRecency:
    """What a request has done to the primary's recency, from its first access to its finish or a reset.

    `accessed`: blocks in the order of their first access. `rank`: what the policy keeps for it. `prompt`: its blocks,
    where their positions were given at once, block after block, in `ends`; else None.
    """

    __slots__ = ("_positions", "accessed", "ends", "prompt", "rank")

    def __init__(self) -> None:
        self.prompt: list[BlockKey] | None = None
        self.ends = range(0)
        self._positions: dict[BlockKey, int] | None = None
        self.accessed: dict[BlockKey, None] = {}
        self.rank: Any = None

    def set_positions(self, keys: Sequence[BlockKey], positions: Sequence[int | None]) -> None:
        """Tell the token at which each block ends; None tells nothing, a later value replaces an earlier one."""
        if len(keys) != len(positions):
            raise ManagerError(f"{len(positions):,} positions for {len(keys):,} blocks")
        rises = type(positions) is range and positions.step > 0
        if rises and self.prompt is None and not self._positions and not self.accessed and len(set(keys)) == len(keys):
            self.prompt, self.ends = list(keys), positions  # type: ignore[assignment]  # a range
            return
        known = self.positions
        self.prompt = None
        for key, position in zip(keys, positions, strict=True):
            if position is not None:
                known[key] = position

    def set_prompt(self, keys: Sequence[BlockKey], ends: range) -> None:
        """`set_positions` for blocks of which none comes twice, with rising positions, before anything else of the
        request. A list is given away."""
        self.prompt, self.ends = keys if type(keys) is list else list(keys), ends

    @property
    def positions(self) -> dict[BlockKey, int]:
        """Block → the token at which it ends, as far as it was told; made when somebody needs it."""
        if self._positions is None:
            self._positions = dict(zip(self.prompt or (), self.ends, strict=False))
        return self._positions

    def places(self, keys: Sequence[BlockKey]) -> tuple[int | None, Sequence[int] | None]:
        """Where `keys`, one or more, stand in the prompt one after another (None: nowhere), and their positions (None:
        one is not known)."""
        prompt, count = self.prompt, len(keys)
        if prompt:
            start = 0
            if prompt[0] != keys[0]:
                if prompt[-count:] == keys:
                    return len(prompt) - count, self.ends[-count:]
                start = prompt.index(keys[0]) if keys[0] in prompt else 0
            if prompt[start : start + count] == keys:
                return start, self.ends[start : start + count]
        try:
            return None, list(map(self.positions.__getitem__, keys))
        except KeyError:
            return None, None

    def forget_accesses(self) -> None:
        """Forget everything but the positions, as a reset of the cache does."""
        self.accessed = {}
        self.rank = None

    def commit_order(self) -> list[BlockKey]:
        """The accessed blocks in the order in which a finish makes them recent: the head of the prefix last.

        All positions known: by falling position, at ties the higher KV group first. Otherwise the higher groups
        first, each by falling position if all of its own are known, else in reverse order of first access. What is
        level after that goes in reverse order of first access too.
        """
        accessed, positions = self.accessed, self.positions
        if self.prompt is not None:
            if accessed.keys() == positions.keys():
                return list(reversed(positions))
            order = [key for key in reversed(positions) if key in accessed]
            if len(order) == len(accessed):
                return order
        if all(map(positions.__contains__, accessed)):
            return sorted(reversed(accessed), key=lambda key: (-positions[key], -group_of(key)))  # noqa: C414 - for ties
        return self._commit_order_by_group()

    def _commit_order_by_group(self) -> list[BlockKey]:
        groups: dict[int, list[BlockKey]] = {}
        for key in self.accessed:
            groups.setdefault(group_of(key), []).append(key)
        order: list[BlockKey] = []
        for group in sorted(groups, reverse=True):
            keys = groups[group]
            if all(key in self.positions for key in keys):
                order += sorted(reversed(keys), key=lambda key: -self.positions[key])  # noqa: C414 - for ties
            else:
                order += reversed(keys)
        return order


class EvictionPolicy(Protocol):
    """The order in which resident blocks leave the primary.

    `resident` holds every block that has a slot, pending ones too; its values belong to the policy.
    """

    name: str
    evicts_in_order: bool
    """Whether the victims of n evictions of one block are those of one eviction of n blocks."""
    resident: dict[BlockKey, Any]

    def access(self, request: RequestRecency, keys: dict[BlockKey, None], ready: Collection[BlockKey]) -> None:
        """`request` accesses `keys`, in this order (the dict is given away); `ready` are those of them that are ready
        now, the others are absent. Called before the eviction and the insertion that the same call may bring."""

    def insert(self, request: RequestRecency, keys: Sequence[BlockKey]) -> None:
        """Absent blocks, accessed before, take their slots."""

    def evict(self, count: int, busy: Mapping[BlockKey, int], protected: Mapping[BlockKey, None]) -> list[BlockKey]:
        """Remove and return `count` resident blocks, the first victim first; never a `busy` one (pinned or
        pending) nor a `protected` one. The caller has made sure that there are so many."""

    def remove(self, keys: Collection[BlockKey]) -> None:
        """Blocks whose write failed give their slots back; they leave no trace in ghost lists."""

    def touch(self, keys: Sequence[BlockKey], busy: Mapping[BlockKey, int]) -> None:
        """Make blocks recent, the last first; absent ones are no error. Pending ones are −1 in `busy`."""

    def commit(self, request: RequestRecency) -> None:
        """The request is finished: what it accessed becomes recent in `RequestRecency.commit_order`."""

    def reset(self) -> None:
        """Forget all blocks, ranks and ghosts."""

    def restore(self, state: dict[str, Any]) -> None:
        """Put the blocks into the order that `state` told; no request may be live, since it would keep its rank."""

    def state(self) -> dict[str, Any]:
        """The order, least recent first, as scripted fixtures show it."""
