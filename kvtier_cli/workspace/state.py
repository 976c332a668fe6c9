"""The state of a workspace that is in no store: the CPU tier's blocks, what was counted, faults on demand. One file,
written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.workspace.faults import workspace_fault
from kvtier_cli.workspace.layout import STATE

FORMAT: Final = 1
"""The version of a workspace's format, of its stores and of this file together."""

_LARGEST: Final = 4 * 1024 * 1024 * 1024


class LruLists(msgspec.Struct, tag_field="policy", tag="lru", forbid_unknown_fields=True):
    """The blocks of an LRU primary, least recent first."""

    order: list[str] = []


class ArcLists(msgspec.Struct, tag_field="policy", tag="arc", forbid_unknown_fields=True):
    """The lists of an ARC primary, least recent first, and its target."""

    t1: list[str] = []
    t2: list[str] = []
    b1: list[str] = []
    b2: list[str] = []
    target: float = 0.0


class Totals(msgspec.Struct, forbid_unknown_fields=True):
    """What a tier was asked over all loads: lookups, hits, lookups that a filter skipped, promotions started, and the
    blocks that requests loaded from it."""

    asked: int = 0
    hits: int = 0
    skipped: int = 0
    promoted: int = 0
    served: int = 0


class Faults(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Faults that were asked for, in the place of those in the topology; None leaves the topology's."""

    offline: bool | None = None
    fail_rate: float | None = None
    seed: int | None = None


class State(msgspec.Struct, forbid_unknown_fields=True):
    """`block_tokens`: tokens a block, None before the first load. `requests` and `blocks` (references) were replayed.
    `totals` by tier, the primary under `cpu`; `faults` by tier."""

    format: int
    block_tokens: int | None
    requests: int
    blocks: int
    primary: LruLists | ArcLists
    totals: dict[str, Totals]
    faults: dict[str, Faults]

    @classmethod
    def empty(cls) -> State:
        """That of a workspace nobody has loaded anything into."""
        return cls(FORMAT, None, 0, 0, LruLists(), {}, {})


class _Version(msgspec.Struct):
    format: int


def read_state(folder: Path) -> State:
    """The state of the workspace in `folder`. Raises EnvironmentFault where it is of another format, or damaged."""
    path = folder / STATE
    try:
        if path.stat().st_size > _LARGEST:
            raise damaged(folder, "too large")
        data = path.read_bytes()
    except FileNotFoundError:
        raise damaged(folder, "missing") from None
    except OSError as error:
        raise workspace_fault(error, folder, "be read") from error
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version == FORMAT:
            return _checked(msgspec.json.decode(data, type=State))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise damaged(folder, f"not as kvtier writes it ({error})") from error
    if version > FORMAT:
        raise EnvironmentFault(
            f"the workspace {folder} has format {version}, this kvtier knows {FORMAT} and older ones",
            hint="Use the newer kvtier that made it, or another folder with --workspace.",
        )
    raise EnvironmentFault(
        f"the workspace {folder} has format {version}, which this kvtier ({FORMAT}) no longer reads",
        hint="Make another one with kvtier init, and load the traces again.",
    )


def damaged(folder: Path, how: str) -> EnvironmentFault:
    """The fault of a state that is not what was written."""
    return EnvironmentFault(
        f"the workspace {folder} is damaged: its {STATE} is {how}",
        hint="Mend it with kvtier doctor --repair: the blocks in the stores stay, the CPU tier begins empty.",
    )


def _checked(state: State) -> State:
    """ValueError where the lists could not be a primary's."""
    lists = state.primary
    found = lists.order if isinstance(lists, LruLists) else [*lists.t1, *lists.t2, *lists.b1, *lists.b2]
    if len(set(found)) < len(found):
        raise ValueError("a block stands in it twice")
    if state.block_tokens is not None and state.block_tokens < 1:
        raise ValueError("a block without tokens")
    numbers = [state.requests, state.blocks]
    for totals in state.totals.values():
        numbers += [totals.asked, totals.hits, totals.skipped, totals.promoted, totals.served]
    if min(numbers) < 0:
        raise ValueError("a count is below 0")
    for faults in state.faults.values():
        if faults.fail_rate is not None and not 0 <= faults.fail_rate <= 1:
            raise ValueError("a fail_rate is no share")
    return state


def write_state(folder: Path, state: State) -> None:
    """Put `state` in the place of the one before; after a crash it is the one or the other.

    Raises EnvironmentFault where it cannot be written; the one before stays then.
    """
    temporary = folder / f".{STATE}.{os.getpid()}"
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(handle)
        temporary.replace(folder / STATE)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise workspace_fault(error, folder, "be written") from error
        raise
    with suppress(OSError):  # not every file system can
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def leftovers(folder: Path) -> list[Path]:
    """Files that writers left when they were killed."""
    return sorted(folder.glob(f".{STATE}.*"))
