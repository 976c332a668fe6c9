"""An open workspace: its topology, its tiers over their stores, and runs that go on where the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from kvtier_cli.errors import EnvironmentFault, InputError, ManagerError
from kvtier_cli.replay.outcomes import keeps_everything
from kvtier_cli.replay.trace_run import KeptTiers, TraceRun
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.stores import BlockStore, MemoryStore
from kvtier_cli.tiering.stores.disk_faults import DATABASE
from kvtier_cli.tiering.topology import PRIMARY_NAME, TierSpec, Topology
from kvtier_cli.tiering.topology_file import load_topology
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.workspace.layout import TIERS, TOPOLOGY, store_name
from kvtier_cli.workspace.lock import LOCK_TIMEOUT, WorkspaceLock
from kvtier_cli.workspace.snapshot import primary_lists, restore_primary
from kvtier_cli.workspace.state import Faults, State, Totals, leftovers, read_state, write_state

if TYPE_CHECKING:
    from kvtier_cli.replay.loop import ReplayLoop
    from kvtier_cli.tiering.filters import TierFilter
    from kvtier_cli.traces.source import TraceSource

PAYLOAD_BYTES: Final = 64
"""How long a block's payload is unless told otherwise."""


def open_workspace(
    path: Path, *, write: bool = False, command: str = "kvtier", lock_timeout: float = LOCK_TIMEOUT
) -> Workspace:
    """The workspace in `path`, to be closed again (it is a context manager).

    With `write` nobody else has it until then; without, others may read it too, and whatever a run changes stays in
    memory. `command` is what those are told who have to wait, for `lock_timeout` seconds at most.

    Raises InputError where there is none, or its topology is wrong; EnvironmentFault where it is in use, damaged, of
    another format, or may not be read or written.
    """
    from kvtier_cli.workspace.found import require_workspace

    require_workspace(path)
    return Workspace(path, write=write, command=command, lock_timeout=lock_timeout)


class Workspace:
    """See `open_workspace`. `state` is what it was when it was opened or last saved, `topology` that of its
    `kvtier.toml` with the faults that were asked for."""

    def __init__(self, path: Path, *, write: bool, command: str, lock_timeout: float) -> None:
        self.path = path
        self.is_writable = write
        self._lock_timeout = lock_timeout
        self._stores: list[BlockStore] = []
        self._run: TraceRun | None = None
        self._lock = WorkspaceLock(path, write=write, command=command, timeout=lock_timeout)
        try:
            self.state = read_state(path)
            self.topology = with_faults(load_topology(str(path / TOPOLOGY)), self.state.faults)
            if write:
                for file in leftovers(path):
                    with suppress(OSError):
                        file.unlink()
        except BaseException:
            self._lock.release()
            raise

    def store_folder(self, tier: str) -> Path:
        """Where the blocks of a secondary tier lie."""
        return self.path / TIERS / store_name(tier)

    @cached_property
    def tiers(self) -> list[SecondaryTier]:
        """The secondary tiers with their blocks, in lookup order. Opened when first asked for."""
        return [SecondaryTier(spec, self._open_store(spec)) for spec in self.topology.tiers]

    def _open_store(self, spec: TierSpec) -> BlockStore:
        folder = self.store_folder(spec.name)
        if folder.is_symlink() and not folder.is_dir():
            raise EnvironmentFault(
                f"the store of the tier {spec.name} lies in {folder.readlink()}, which is not there",
                hint=f"Mount it, or remove the link {folder}: the tier then begins empty.",
            )
        store: BlockStore
        if spec.backend == "memory":
            store = MemoryStore()
        elif self.is_writable:
            from kvtier_cli.tiering.stores.disk import DiskStore

            store = DiskStore(folder, lock_timeout=self._lock_timeout)
        elif (folder / DATABASE).exists():
            from kvtier_cli.workspace.peeking_store import PeekingStore

            store = PeekingStore(folder, lock_timeout=self._lock_timeout)
        else:
            store = MemoryStore()
        self._stores.append(store)
        if self.is_writable and spec.capacity is not None and len(store.index) > spec.capacity:  # it was larger once
            store.write((), store.oldest(len(store.index) - spec.capacity))
        return store

    def run(
        self,
        sources: Sequence[TraceSource] = (),
        load_filter: TierFilter | None = None,
        *,
        reading: TraceOptions = AS_IT_SAYS,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
        timed: bool = False,
        payload_bytes: int | None = PAYLOAD_BYTES,
    ) -> TraceRun:
        """A run on the workspace's tiers, as they are; one for each opening.

        Without `sources` nothing is replayed: its `loop`, `manager` and `history` are there to look blocks up with.
        The payloads of blocks that it stores have `payload_bytes`, or with None their real size.

        Raises InputError where the real size is not known.
        """
        if self._run is not None:
            raise ManagerError("a workspace that is open has one run")
        if payload_bytes is None and self.topology.block.bytes_per_token is None:
            raise InputError(
                "the real size of a block is not known",
                hint=f"Give block.bytes_per_token in {self.path / TOPOLOGY}, or --payload a number of bytes.",
            )

        def settle(block_tokens: int) -> None:
            self.state.block_tokens = block_tokens
            real = block_tokens * (self.topology.block.bytes_per_token or 0)
            self._set_payload_bytes(real if payload_bytes is None else payload_bytes)

        kept = KeptTiers(self.tiers, self.is_writable and self.is_empty, self.state.block_tokens, settle)
        run = TraceRun(
            sources,
            self.topology,
            load_filter,
            reading=reading,
            skip_bad=skip_bad,
            on_bytes=on_bytes,
            timed=timed,
            kept=kept,
        )
        restore_primary(run.manager.primary, self.state.primary)
        self._run = run
        return run

    def _set_payload_bytes(self, length: int) -> None:
        from kvtier_cli.tiering.stores.disk import DiskStore

        for store in self._stores:
            if isinstance(store, DiskStore):
                store.payload_bytes = length

    @property
    def loop(self) -> ReplayLoop:
        """The loop of the workspace's run, which is made if there is none yet."""
        return (self._run or self.run()).loop

    @property
    def is_empty(self) -> bool:
        """Whether no tier held a block when the workspace was opened."""
        return not any(msgspec.structs.astuple(self.state.primary)) and not any(tier.size() for tier in self.tiers)

    @property
    def remembers_losses(self) -> bool:
        """Whether a block that no tier has was never stored. Where blocks get lost, what earlier runs evicted cannot
        be told from what no run ever stored."""
        return keeps_everything(self.topology) or self.is_empty

    def set_faults(self, tier: str, faults: Faults) -> None:
        """Ask for other faults of a tier, those of `faults` that are not None; they hold from the next opening on."""
        before = self.state.faults.get(tier, Faults())
        given = {name: value for name, value in msgspec.structs.asdict(faults).items() if value is not None}
        self.state.faults[tier] = msgspec.structs.replace(before, **given)
        self.topology = with_faults(self.topology, self.state.faults)

    def save(self) -> None:
        """Write down how things stand, without ending anything. Raises EnvironmentFault where that is not possible."""
        self._require_writable()
        write_state(self.path, self.state if self._run is None else self._state_after(self._run))

    def _require_writable(self) -> None:
        if not self.is_writable:
            raise ManagerError(f"the workspace {self.path} was opened to be read")

    def _state_after(self, run: TraceRun) -> State:
        loop, counters = run.loop, run.manager.counters
        served = counters.blocks_loaded - sum(loop.loaded_promoted)
        found = {PRIMARY_NAME: Totals(counters.lookups, counters.primary_hits, 0, 0, served)}
        for index, tier in enumerate(run.manager.tiers):
            found[tier.name] = Totals(
                counters.asked[index],
                counters.hits[index],
                counters.skipped[index],
                counters.promoted[index],
                loop.loaded_promoted[index],
            )
        before = self.state.totals
        totals = {**before, **{name: _sum(before.get(name, Totals()), more) for name, more in found.items()}}
        return msgspec.structs.replace(
            self.state,
            requests=self.state.requests + loop.requests,
            blocks=self.state.blocks + loop.blocks,
            primary=primary_lists(run.manager.primary),
            totals=totals,
        )

    def close(self, *, finish: bool = True) -> None:
        """Save what a run changed, let go of the stores, and let others in.

        With `finish` the run has come to its end: jobs under way are brought to theirs, as in a server that is shut
        down. Without, something broke it off; what it committed stays.
        """
        try:
            if self._run is not None and self.is_writable:
                if finish:
                    self._drain(self._run)
                self.save()
        finally:
            self._let_go()

    def _drain(self, run: TraceRun) -> None:
        try:
            run.manager.transfers.drain()
        except BaseException:
            with suppress(EnvironmentFault):  # the first fault is the one to tell
                self.save()
            raise

    def _let_go(self) -> None:
        """Close all stores, whatever becomes of one, and release the lock."""
        stores, self._stores = self._stores, []
        fault: EnvironmentFault | None = None
        try:
            for store in stores:
                try:
                    store.close()
                except EnvironmentFault as error:
                    fault = fault or error
        finally:
            self._lock.release()
        if fault is not None:
            raise fault

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(EnvironmentFault):  # the first fault is the one to tell
            self.close(finish=False)


def with_faults(topology: Topology, faults: dict[str, Faults]) -> Topology:
    """`topology` with the faults that were asked for in the place of its own."""

    def changed(tier: TierSpec) -> TierSpec:
        found: dict[str, Any] = msgspec.structs.asdict(faults.get(tier.name, Faults()))
        return replace(tier, **{name: value for name, value in found.items() if value is not None})

    return replace(topology, tiers=tuple(map(changed, topology.tiers)))


def _sum(one: Totals, other: Totals) -> Totals:
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    return Totals(*(first + second for first, second in pairs))
