"""A block's key where it outlives the process: its label and the digest of its chain in one text.

A replay counts blocks; stores on disk know them by these texts, which are the same in every run. The digest tells
apart what the same label stands for behind other prefixes; the label is there for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kvtier_cli.replay.identity import ROOT_DIGEST, BlockTable, Label, chain_digest
from kvtier_cli.tiering.model import BlockKey

_MARK: Final = ":"


def text_key(label: Label, digest: bytes) -> str:
    """The key of a block: `5102:` and the 64 hex digits of its digest. (The label first: neighbours in a prompt often
    have neighbouring labels, which an index on disk takes faster.)"""
    return f"{label}{_MARK}{digest.hex()}"


def text_key_start(label: Label) -> str:
    """How the keys of all blocks with that label begin; those of some others too (`5102:x` is a label as well)."""
    return f"{label}{_MARK}"


def label_of(key: str) -> str:
    """The label in a text key; a text that is none is its own label."""
    label, mark, _ = key.rpartition(_MARK)
    return label if mark else key


def hex_of(key: str) -> str:
    """The digest in a text key, in hex digits; empty in a text that is none."""
    _, mark, digits = key.rpartition(_MARK)
    return digits if mark else ""


def digest_of(key: str) -> bytes:
    """The digest in a text key."""
    return bytes.fromhex(hex_of(key))


def key_behind(parent: str | None, label: Label, *, by_id: bool = False) -> str:
    """The key of the block `label` behind the block `parent` (None: it begins a prompt). See `BlockTable` for
    `by_id`."""
    before = ROOT_DIGEST if parent is None or by_id else digest_of(parent)
    return text_key(label, chain_digest(before, label))


class TextKeys:
    """Hands out text keys for the blocks of a table."""

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self._texts: list[str] = []

    def keys(self, numbers: Sequence[int]) -> list[str]:
        """The text keys of blocks that the table knows by number."""
        table, texts = self._table, self._texts
        if len(texts) < len(table):
            labels, digest = table.labels, table.digest
            texts.extend(text_key(labels[number], digest(number)) for number in range(len(texts), len(table)))
        return list(map(texts.__getitem__, numbers))

    def digest(self, key: BlockKey) -> bytes:
        """The digest of a block's chain, as `BlockTable.digest` gives it."""
        return digest_of(str(key))
