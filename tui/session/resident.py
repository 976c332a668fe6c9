"""The blocks that tiers hold at one moment, copied at once and named only when somebody looks at one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.topology import PRIMARY_NAME

Resident = tuple[str, tuple[str, ...]]


class ResidentBlocks(Sequence[Resident]):
    """Each block once, by its name, with the tiers that hold it: the primary's first, from the least recent on."""

    def __init__(self, manager: TieringManager, name: Callable[[BlockKey], str]) -> None:
        self._name = name
        self._names = [PRIMARY_NAME, *(tier.name for tier in manager.tiers)]
        self._held = [dict.fromkeys(manager.primary.resident), *(dict.fromkeys(t.blocks()) for t in manager.tiers)]
        every: dict[BlockKey, None] = {}
        for held in self._held:
            every.update(held)
        self._keys = list(every)

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> Resident: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Resident]: ...
    def __getitem__(self, index: int | slice) -> Resident | Sequence[Resident]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        key = self._keys[index]
        holders = (name for name, held in zip(self._names, self._held, strict=True) if key in held)
        return self._name(key), tuple(holders)
