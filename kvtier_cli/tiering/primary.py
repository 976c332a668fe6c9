"""The primary (CPU) tier: slots, pins and pending writes. Who is evicted is the policy's business."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.policies import RequestRecency, make_policy

PENDING = -1


class Primary:
    """Blocks in a fixed number of slots.

    `resident` holds every block with a slot. `busy` says what keeps a block from eviction: −1 while its write is in
    flight, else the number of its pins (above 0); a ready block without pins is not in it. The pins of the last store
    are written down there only when somebody looks: most are gone before.
    """

    def __init__(self, capacity: int, policy: str) -> None:
        self.capacity = capacity
        self.policy = make_policy(policy, capacity)
        self.resident = self.policy.resident
        self._busy: dict[BlockKey, int] = {}
        self._stored: Sequence[BlockKey] | None = None  # blocks with a pin each that is not in `_busy` yet
        self.pending = 0

    @property
    def busy(self) -> dict[BlockKey, int]:
        if self._stored is not None:
            self._busy.update(dict.fromkeys(self._stored, 1))
            self._stored = None
        return self._busy

    @property
    def free(self) -> int:
        """Slots that hold no block."""
        return self.capacity - len(self.resident)

    @property
    def evictable(self) -> int:
        """Ready blocks without a pin."""
        return len(self.resident) - len(self.busy)

    def is_ready(self, key: BlockKey) -> bool:
        return key in self.resident and self.busy.get(key, 0) != PENDING

    def allocate(
        self, request: RequestRecency, keys: Sequence[BlockKey], protected: Mapping[BlockKey, None], pins: int = PENDING
    ) -> list[BlockKey] | None:
        """Give absent `keys` slots, all or nothing; they are pending then, or ready with that many `pins`.

        `protected` are never evicted for it. Returns the evicted blocks, or None where too few
        may be: nothing has changed then.
        """
        if not keys:
            return []  # not even a rank is taken
        resident, busy = self.resident, self.busy
        missing = len(keys) + len(resident) - self.capacity
        evicted: list[BlockKey] = []
        if missing > 0:
            spare = len(resident) - len(busy) - missing
            # Protected blocks are counted only where they could make the difference.
            if spare < len(protected):
                spare -= self._evictable_of(protected)
            if spare < 0:
                return None
            evicted = self.policy.evict(missing, busy, protected)
        self.policy.insert(request, keys)
        if pins == 1:
            self._stored = keys
        elif pins:
            for key in keys:
                busy[key] = pins
            if pins == PENDING:
                self.pending += len(keys)
        return evicted

    def _evictable_of(self, keys: Mapping[BlockKey, None]) -> int:
        return sum(1 for key in keys if key in self.resident and key not in self.busy)

    def make_ready(self, keys: Collection[BlockKey]) -> None:
        """Pending writes have succeeded."""
        for key in keys:
            del self.busy[key]
        self.pending -= len(keys)

    def make_ready_pinned(self, keys: Collection[BlockKey]) -> None:
        """Pending writes have succeeded, and something reads the blocks at once: one pin each."""
        busy = self.busy
        for key in keys:
            busy[key] = 1
        self.pending -= len(keys)

    def give_back(self, keys: Collection[BlockKey]) -> None:
        """Pending writes have failed: their slots are free again."""
        for key in keys:
            del self.busy[key]
        self.pending -= len(keys)
        self.policy.remove(keys)

    def sorted_out(
        self, keys: Mapping[BlockKey, None]
    ) -> tuple[list[BlockKey], dict[BlockKey, None], dict[BlockKey, None]]:
        """Those of `keys` that are absent, that are ready, and that are pending."""
        resident, busy = self.resident, self.busy
        absent = [key for key in keys if key not in resident]
        if not self.pending:
            return absent, {key: None for key in keys if key in resident}, {}
        pending = {key: None for key in keys if busy.get(key) == PENDING}
        return absent, {key: None for key in keys if key in resident and key not in pending}, pending

    def are_ready(self, keys: Collection[BlockKey]) -> bool:
        """Whether all of `keys` are resident and none is pending."""
        return all(map(self.resident.__contains__, keys)) and not (
            self.pending and any(self.busy.get(key) == PENDING for key in keys)
        )

    def pin(self, keys: Iterable[BlockKey]) -> None:
        busy = self.busy
        for key in keys:
            busy[key] = busy.get(key, 0) + 1

    def unpin(self, keys: Collection[BlockKey]) -> None:
        if keys is self._stored:
            self._stored = None
            return
        busy = self.busy
        for key in keys:
            pins = busy[key]
            if pins == 1:
                del busy[key]
            else:
                busy[key] = pins - 1

    def reset(self) -> None:
        """Empty the tier; whatever was in flight has ended before."""
        self.policy.reset()
        self.resident = self.policy.resident
        self._busy, self._stored = {}, None
        self.pending = 0

    def restore(self, state: dict[str, Any], pending: Iterable[BlockKey]) -> None:
        """Hold the blocks of a policy's `state`, ready and without pins but for the `pending` ones. No request may be
        live, and no job may run."""
        self.policy.restore(state)
        self.resident = self.policy.resident
        self._busy, self._stored = dict.fromkeys(pending, PENDING), None
        self.pending = len(self._busy)

    def dump_state(self) -> dict[str, Any]:
        """What keeps which blocks busy; their order is the policy's state. To be taken while no request is
        unfinished."""
        return {"busy": dict(self.busy)}

    def load_state(self, state: Mapping[str, Any], policy: dict[str, Any]) -> None:
        """Go back to a state that `dump_state` gave, with the policy's state of then; it may be loaded again."""
        self.policy.restore(policy)
        self.resident = self.policy.resident
        self._busy, self._stored = dict(state["busy"]), None
        self.pending = list(self._busy.values()).count(PENDING)

    def pins(self, extra: Mapping[BlockKey, int]) -> dict[BlockKey, int | None]:
        """Block → its pins (with `extra` ones added), or None while pending, in no particular order."""
        busy = self.busy
        return {
            key: None if busy.get(key) == PENDING else busy.get(key, 0) + extra.get(key, 0) for key in self.resident
        }

    def state(self) -> dict[str, Any]:
        return self.policy.state()
