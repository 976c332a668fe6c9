"""What may be wrong with a workspace, and mending it. Opens no `Workspace`: a damaged one could not be opened.

The stores are checked by `stores/disk_check.py`; the installation by `installation.py`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.tiering.stores.disk_faults import DATABASE
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_file import load_topology
from kvtier_cli.workspace.layout import ASIDE, PARTS, STATE, TIERS, TOPOLOGY, store_name
from kvtier_cli.workspace.lock import forget_the_dead, holders
from kvtier_cli.workspace.state import State, damaged, leftovers, read_state, write_state

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: whether it is right, what was found (empty: nothing to say), and what a repair did
    or would do (empty: nothing)."""

    name: str
    ok: bool
    found: str = ""
    repair: str = ""


def check_workspace(path: Path, *, repair: bool, lock_timeout: float) -> Iterator[Check]:
    """The checks of the workspace in `path`, which the caller has locked, to write if it is to be repaired."""
    yield from _check_folder(path, repair=repair)
    yield _check_lock(path, repair=repair)
    state_check = _check_state(path, repair=repair)
    yield state_check
    topology, topology_check = _check_topology(path)
    yield topology_check
    if topology is None:
        return
    for tier in topology.tiers:
        if tier.backend != "memory":
            yield _check_store(
                tier.name, path / TIERS / store_name(tier.name), repair=repair, lock_timeout=lock_timeout
            )
    known = {store_name(tier.name) for tier in topology.tiers}
    yield from _unused(path, known)


def _check_folder(path: Path, *, repair: bool) -> Iterator[Check]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        done = ""
        if repair:
            with suppress(OSError):
                path.chmod(0o700)
                done = "its mode is 0700 now"
        found = f"others may look into it (mode {mode:04o})"
        yield Check("folder", bool(done), found, done or "sets its mode to 0700")
    else:
        yield Check("folder", True)
    killed = leftovers(path)
    if killed:
        if repair:
            for file in killed:
                with suppress(OSError):
                    file.unlink()
        # The next writer does the same: nothing is wrong.
        yield Check("leftovers", True, f"{len(killed)} unfinished file(s) of a writer that was killed", _done(repair))


def _done(repair: bool) -> str:
    return "removed" if repair else "the next writer removes them"


def _check_lock(path: Path, *, repair: bool) -> Check:
    others = [holder.words() for holder in holders(path) if holder.pid != os.getpid()]
    found = f"{', '.join(others)} reads it too" if others else "nobody else has it"
    gone = forget_the_dead(path) if repair else 0
    return Check("lock", True, found, f"forgot {gone:,} that were killed" if gone else "")


def _check_state(path: Path, *, repair: bool) -> Check:
    try:
        state = read_state(path)
    except EnvironmentFault as fault:
        if not str(fault).startswith(str(damaged(path, ""))):
            return Check("state", False, fault.message, "none: " + (fault.hint or ""))
        if not repair:
            return Check("state", False, fault.message, "makes a new one: the CPU tier begins empty")
        with suppress(OSError):
            (path / STATE).replace(path / f"{STATE}{ASIDE}")
        write_state(path, State.empty())
        return Check("state", True, fault.message, f"made anew, the CPU tier is empty; the old one is {STATE}{ASIDE}")
    lists = sum(len(part) for part in msgspec.structs.astuple(state.primary) if isinstance(part, list))
    return Check("state", True, f"format {state.format}, {lists:,} blocks of the CPU tier")


def _check_topology(path: Path) -> tuple[Topology | None, Check]:
    try:
        topology = load_topology(str(path / TOPOLOGY))
    except InputError as error:
        return None, Check(
            "topology", False, str(error), "none: mend the file, or write one with kvtier topology show --toml"
        )
    return topology, Check("topology", True, f"the primary and {len(topology.tiers)} secondary tiers")


def _check_store(tier: str, folder: Path, *, repair: bool, lock_timeout: float) -> Check:
    """One check a store; the damages of one store are told together."""
    from kvtier_cli.tiering.stores.disk import DiskStore
    from kvtier_cli.tiering.stores.disk_reader import DiskReader

    name = f"store {tier}"
    if folder.is_symlink() and not folder.is_dir():
        return Check(
            name, False, f"lies in {folder.readlink()}, which is not there", "none: mount it, or remove the link"
        )
    if not (folder / DATABASE).exists():
        return Check(name, True, "nothing was stored yet")
    damages = DiskStore.check(folder, repair=repair, lock_timeout=lock_timeout)
    wrong = [damage for damage in damages if not damage.harmless]
    told = [f"{damage.subject}: {damage.reason}" for damage in (wrong or damages)[:_SHOWN]]
    more = len(wrong or damages) - len(told)
    found = "; ".join(told) + (f"; and {more:,} more" if more else "")
    if wrong and not all(damage.mended for damage in wrong):
        if not repair:
            return Check(name, False, found, "removes what is damaged, keeps the rest")
        aside = _put_aside(folder)
        return Check(name, True, found, f"put aside as {aside}: nothing of it could be saved, the tier begins empty")
    if damages:
        mended = "mended" if repair else "the next writer mends it"
        return Check(name, True, found, mended)
    with DiskReader(folder, lock_timeout=lock_timeout) as store:
        return Check(name, True, f"{len(store.index):,} blocks, all as they were written")


def _put_aside(folder: Path) -> str:
    number = 1
    while (aside := folder.with_name(f"{folder.name}{ASIDE}-{number}")).exists():
        number += 1
    folder.rename(aside)
    return aside.name


def _unused(path: Path, known: set[str]) -> Iterator[Check]:
    """What no tier of the topology has, and what nobody put there."""
    folder = path / TIERS
    found = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    for name in found:
        if name not in known:
            yield Check(f"{TIERS}/{name}", True, "no tier of the topology has this store", "none: remove it yourself")
    for entry in sorted(path.iterdir()):
        if entry.name not in PARTS and entry not in leftovers(path):
            yield Check(entry.name, True, "is not part of a workspace", "none: remove it yourself")
