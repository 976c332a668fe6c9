"""Checkpoints of a replay: puts a run back to a moment between two of its requests, from where it goes on as before.

What keeps many blocks is packed; the rest of a run's state is small. Which requests come next is not a run's state:
see `recorded_requests.py`. What observers have gathered meanwhile stays with them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.packed import Packed, PackedList, PackedOrder
from kvtier_cli.replay.trace_run import TraceRun

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a run when `request` requests were replayed. It can be restored any number of times.

    `state` is the run's, without the long lists; these are in `packed`, each with where it belongs.
    """

    request: int
    state: dict[str, Any]
    packed: dict[_Path, Packed]
    table: BlockTable

    @property
    def own_bytes(self) -> int:
        """Bytes of its packed lists that it shares with no checkpoint before it."""
        return sum(packed.own_bytes for packed in self.packed.values())

    def bases(self) -> dict[int, int]:
        """The arrays that it shares with others: identity → bytes."""
        return {id(packed.base): packed.base.nbytes for packed in self.packed.values()}


def take(run: TraceRun, after: Checkpoint | None = None) -> Checkpoint:
    """Keep the state of `run` at this moment, between two requests. With `after`, a checkpoint of the same run, what
    has not changed since takes no room.

    Raises ManagerError within a request, and where blocks are not numbers that a run in memory counts up (a run over
    stores on disk, lookups of blocks that no trace has).
    """
    if run.loop.text_keys is not None:
        raise ManagerError("a run over tiers that outlive it has no checkpoints")
    state = run.dump_state()
    before = {} if after is None or after.table is not run.loop.table else after.packed
    packed: dict[_Path, Packed] = {}
    try:
        for path, kind in _long_lists(state):
            holder = _at(state, path[:-1])
            like = before.get(path)
            packed[path] = (
                PackedOrder.of(holder[path[-1]], like if isinstance(like, PackedOrder) else None)
                if kind is PackedOrder
                else PackedList.of(holder[path[-1]], like if isinstance(like, PackedList) else None)
            )
            holder[path[-1]] = None
    except (TypeError, ValueError, OverflowError):
        raise ManagerError("only a run whose blocks are numbers has checkpoints") from None
    return Checkpoint(run.loop.requests, state, packed, run.loop.table)


def restore(run: TraceRun, checkpoint: Checkpoint) -> None:
    """Put `run` back to where it was when `checkpoint` was taken. Raises ManagerError for another run's checkpoint.

    Blocks keep their numbers: the table that gives them out still knows all that it has seen.
    """
    if run.loop.table is not checkpoint.table:
        raise ManagerError("the checkpoint was taken from another run")
    state = checkpoint.state
    for path, packed in checkpoint.packed.items():
        state = _with(state, path, packed.unpack())
    run.load_state(state)


def _long_lists(state: dict[str, Any]) -> Iterator[tuple[_Path, type[Packed]]]:
    """Where in a run's state the lists are whose length grows with the tiers or the trace."""
    for index in range(len(state["manager"]["tiers"])):
        yield ("manager", "tiers", index, "blocks"), PackedOrder
    for name, value in state["manager"]["primary"]["policy"].items():
        if isinstance(value, list):
            yield ("manager", "primary", "policy", name), PackedOrder
    yield ("history", "evicted", 0), PackedOrder
    yield ("history", "evicted", 1), PackedList
    yield ("history", "refused", 0), PackedOrder
    yield ("history", "refused", 1), PackedList
    yield ("history", "losses", 0), PackedList
    yield ("history", "losses", 1), PackedList
    yield ("history", "unread"), PackedList


def _at(state: Any, path: _Path) -> Any:
    for step in path:
        state = state[step]
    return state


def _with(state: Any, path: _Path, value: Any) -> Any:
    """A copy of `state` with `value` at `path`; what is not on the way there is shared."""
    if not path:
        return value
    copy = state.copy()
    copy[path[0]] = _with(state[path[0]], path[1:], value)
    return copy


DEFAULT_LIMIT: Final = 64
DEFAULT_SPACING: Final = 256


class CheckpointKeeper:
    """Checkpoints of one run, about `spacing` requests apart and at most `limit` of them.

    When there would be more, every second one goes and the spacing doubles. The first, before all requests, stays.
    """

    def __init__(self, run: TraceRun, *, limit: int = DEFAULT_LIMIT, spacing: int = DEFAULT_SPACING) -> None:
        if limit < 2 or spacing < 1:
            raise ValueError("at least two checkpoints, at least one request apart")
        self._run = run
        self._limit = limit
        self.spacing = spacing
        self._kept: list[Checkpoint] = [take(run)]

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self) -> None:
        """To be called after each request: takes a checkpoint where the last one before is far enough away."""
        if self._run.loop.requests < self._kept[-1].request + self.spacing:
            return
        self._kept.append(take(self._run, self._kept[-1]))
        if len(self._kept) > self._limit:
            self._kept = self._kept[::2]
            self.spacing *= 2

    def at_or_before(self, request: int) -> Checkpoint:
        """The last checkpoint at which not more than `request` requests were replayed."""
        return self._kept[max(0, bisect_right(self._kept, request, key=lambda kept: kept.request) - 1)]

    def forget_after(self, request: int) -> None:
        """The run will take another course when `request` requests are replayed: later checkpoints stand for what will
        not be."""
        del self._kept[max(1, bisect_right(self._kept, request, key=lambda kept: kept.request)) :]

    def seek(self, request: int, replay: Callable[[int, int], object]) -> None:
        """Put the run to where `request` requests are replayed. `replay` is told from which to which request to go on:
        from the nearest checkpoint before, or from where the run is, whatever is nearer."""
        at, checkpoint = self._run.loop.requests, self.at_or_before(request)
        if not checkpoint.request <= at <= request:
            restore(self._run, checkpoint)
            at = checkpoint.request
        if at < request:
            replay(at, request)

    @property
    def nbytes(self) -> int:
        """Bytes of what all of them pack, shared arrays once."""
        bases: dict[int, int] = {}
        for kept in self._kept:
            bases.update(kept.bases())
        return sum(bases.values()) + sum(kept.own_bytes for kept in self._kept)
