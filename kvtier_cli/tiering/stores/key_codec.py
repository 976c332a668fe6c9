"""Between a block's key in the engine and its name on disk: a replay counts blocks, a store knows them by text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kvtier_cli.tiering.model import BlockKey


class KeyCodec(NamedTuple):
    """`name_of` gives a block's name on disk, `key_of` the key that stands for a name found there.

    Each undoes the other, and different blocks have different names in all runs that use the store.
    """

    name_of: Callable[[BlockKey], str]
    key_of: Callable[[str], BlockKey]


def _name_of(key: BlockKey) -> str:
    if type(key) is not str:
        raise TypeError(f"a store on disk names blocks by text, not by {type(key).__name__}")
    return key


def _key_of(name: str) -> BlockKey:
    return name


TEXT_KEYS = KeyCodec(_name_of, _key_of)
"""For keys that are texts already: they are the names."""
