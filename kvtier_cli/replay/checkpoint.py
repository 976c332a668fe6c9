"""Checkpoints of a replay: puts a run back to a moment between two of its requests, from where it goes on as before.

What keeps many blocks is packed; the rest of a run's state is small. Which requests come next is not a run's state:
see `recorded_requests.py`. What observers have gathered meanwhile stays with them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.packed import PackedList, PackedOrder
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.policies import EvictionPolicy, LruPolicy
from kvtier_cli.tiering.stores import MemoryStore
from kvtier_cli.tiering.topology import Topology

_LISTS: Final = ("evicted", "losses", "refused")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a run when `request` requests were replayed. It can be restored any number of times.

    `state` is the run's, without what is long: `blocks` of the secondary tiers, the lists of the primary's `policy`,
    and those of the `history`.
    """

    request: int
    state: dict[str, Any]
    policy: dict[str, Any]
    blocks: tuple[PackedOrder, ...]
    history: dict[str, tuple[PackedList, ...]]
    table: BlockTable
    topology: Topology

    def sizes(self) -> dict[int, int]:
        """The arrays that it consists of, identity → bytes; some are shared with other checkpoints."""
        packed: list[PackedOrder | PackedList] = [
            *self.blocks,
            *(value for value in self.policy.values() if isinstance(value, PackedOrder)),
            *(part for parts in self.history.values() for part in parts),
        ]
        return {key: size for pack in packed for key, size in pack.sizes().items()}


def take(run: TraceRun, after: Checkpoint | None = None) -> Checkpoint:
    """Keep the state of `run` at this moment, between two requests. What has not changed since `after`, an earlier
    checkpoint of the same run, takes no room.

    Raises ManagerError within a request, and where blocks are not numbers that a run in memory counts up (a run over
    stores on disk, lookups of blocks that no trace has).
    """
    if run.loop.text_keys is not None:
        raise ManagerError("a run over tiers that outlive it has no checkpoints")
    state = run.dump_state()
    history = state["history"]
    try:
        return Checkpoint(
            run.loop.requests,
            state,
            _pack_policy(run.manager.primary.policy),
            tuple(_pack_store(tier.memory) for tier in run.manager.own_tiers()),
            {
                name: tuple(
                    PackedList.of(ints, after.history[name][index] if after is not None else None)
                    for index, ints in enumerate(history.pop(name))
                )
                for name in _LISTS
            },
            run.loop.table,
            run.topology,
        )
    except (TypeError, ValueError, OverflowError):
        raise ManagerError("only a run whose blocks are numbers has checkpoints") from None


def restore(run: TraceRun, checkpoint: Checkpoint) -> None:
    """Put `run` back to where it was when `checkpoint` was taken. Raises ManagerError for another run's checkpoint.

    Blocks keep their numbers: the table that gives them out still knows all that it has seen.
    """
    if run.loop.table is not checkpoint.table or run.topology != checkpoint.topology:
        raise ManagerError("the checkpoint was taken from another run")
    history = {name: [part.unpack() for part in parts] for name, parts in checkpoint.history.items()}
    policy = {
        name: value.unpack() if isinstance(value, PackedOrder) else value for name, value in checkpoint.policy.items()
    }
    run.load_state(
        {**checkpoint.state, "history": {**checkpoint.state["history"], **history}},
        policy,
        [packed.unpack() for packed in checkpoint.blocks],
    )
    for tier, packed in zip(run.manager.own_tiers(), checkpoint.blocks, strict=True):
        tier.memory.set_mark(packed)
    if isinstance(run.manager.primary.policy, LruPolicy):
        run.manager.primary.policy.recency.set_mark(checkpoint.policy["order"])


def _pack_store(store: MemoryStore) -> PackedOrder:
    """The blocks of a store: what was written since the last checkpoint, taken or restored, behind what was there."""
    before = store.mark
    if isinstance(before, PackedOrder):
        packed = before.moved_on(store.moved(), (), len(store.index))
    else:
        packed = PackedOrder.of(list(store.index))
    store.set_mark(packed)
    return packed


def _pack_policy(policy: EvictionPolicy) -> dict[str, Any]:
    if not isinstance(policy, LruPolicy):
        state = policy.state()
        return {name: PackedOrder.of(value) if isinstance(value, list) else value for name, value in state.items()}
    before = policy.recency.mark
    if isinstance(before, PackedOrder):
        packed = before.moved_on(*policy.recency.moved(), len(policy.resident))
    else:
        packed = PackedOrder.of(list(policy.recency))
    policy.recency.set_mark(packed)
    return {"name": policy.name, "order": packed}


DEFAULT_LIMIT: Final = 64
DEFAULT_SPACING: Final = 20_480


class CheckpointKeeper:
    """Checkpoints of one run, about `spacing` references to blocks apart (which is what replaying costs), and at most
    `limit` of them.

    When there would be more, every second one goes and the spacing doubles. The first, before all requests, stays.
    """

    def __init__(self, run: TraceRun, *, limit: int = DEFAULT_LIMIT, spacing: int = DEFAULT_SPACING) -> None:
        if limit < 2 or spacing < 1:
            raise ValueError("at least two checkpoints, at least one block apart")
        self._run = run
        self._limit = limit
        self.spacing = spacing
        self._kept: list[Checkpoint] = []
        self._blocks: list[int] = []
        self._add(None)

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self) -> None:
        """To be called after each request: takes a checkpoint where the last one is far enough behind."""
        if self._run.loop.blocks < self._blocks[-1] + self.spacing:
            return
        self._add(self._kept[-1])
        if len(self._kept) > self._limit:
            self._kept, self._blocks = self._kept[::2], self._blocks[::2]
            self.spacing *= 2

    def _add(self, after: Checkpoint | None) -> None:
        self._kept.append(take(self._run, after))
        self._blocks.append(self._run.loop.blocks)

    def at_or_before(self, request: int) -> Checkpoint:
        """The last checkpoint at which not more than `request` requests were replayed."""
        return self._kept[max(1, self._until(request)) - 1]

    def forget_after(self, request: int) -> None:
        """The run takes another course once `request` requests are replayed: later checkpoints stand for what will not
        be."""
        until = max(1, self._until(request))
        del self._kept[until:], self._blocks[until:]

    def _until(self, request: int) -> int:
        """How many checkpoints there are up to that request."""
        return bisect_right(self._kept, request, key=lambda kept: kept.request)

    def seek(self, request: int, replay: Callable[[int], object]) -> None:
        """Put the run to where `request` requests are replayed, by way of the nearest checkpoint before that if the run
        is not nearer. `replay` is told up to which request to replay from where the run is then."""
        checkpoint = self.at_or_before(request)
        if not checkpoint.request <= self._run.loop.requests <= request:
            restore(self._run, checkpoint)
        if self._run.loop.requests < request:
            replay(request)

    @property
    def nbytes(self) -> int:
        """Bytes of the lists that all of them pack, shared ones once."""
        sizes: dict[int, int] = {}
        for kept in self._kept:
            sizes.update(kept.sizes())
        return sum(sizes.values())
