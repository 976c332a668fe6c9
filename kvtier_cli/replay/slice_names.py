"""What the blocks of a trace are called in a fixture, where `~` and `@` mean something of their own."""

from __future__ import annotations

from kvtier_cli.errors import InputError
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.tiering.block_names import CHAIN_MARK, check_block_name
from kvtier_cli.tiering.model import GROUP_MARK, BlockKey


class BlockNames:
    """Names blocks by their labels in `table`; `5102~2`, the second block of the label 5102, becomes `5102-2`.

    A label that is no name of a block gets one that says its number in order of first sight. `given`: the names so
    far; `renamed`: name → what the block is called in the trace, where that is something else.
    """

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self._taken: set[str] = set()
        self.given: dict[BlockKey, str] = {}
        self.renamed: dict[str, str] = {}

    def __call__(self, key: BlockKey) -> str:
        name = self.given.get(key)
        if name is None:
            label = self._table.name(key) if isinstance(key, int) else str(key)
            name = self.given[key] = self._free_name(key, label)
            self._taken.add(name)
            if name != label:
                self.renamed[name] = label
        return name

    def _free_name(self, key: BlockKey, label: str) -> str:
        plain = label.replace(CHAIN_MARK, "-").replace(GROUP_MARK, "-")
        for name in (label, plain, f"block-{key}" if isinstance(key, int) else f"block-{len(self._taken)}"):
            if GROUP_MARK not in name and name not in self._taken and _is_name(name):
                return name
        free = f"{plain}-" if _is_name(plain) else "block-"
        count = 2
        while f"{free}{count}" in self._taken:
            count += 1
        return f"{free}{count}"


def _is_name(text: str) -> bool:
    try:
        check_block_name(text)
    except InputError:
        return False
    return len(text) <= 200
