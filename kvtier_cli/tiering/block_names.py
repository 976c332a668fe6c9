"""Which names of blocks are accepted on input. What a group's mark in a name means is `model.group_of`."""

from __future__ import annotations

import re

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.model import GROUP_MARK
from kvtier_cli.wording import shown

CHAIN_MARK = "~"
"""Reserved: where one label stands for several blocks of a trace, the second prints as `label~2`."""

_GROUP = re.compile(r"[1-9][0-9]{0,8}")


def check_block_name(name: object, *, file: str | None = None, path: str | None = None) -> str:
    """`name` as it is, or InputError: `b7` and `b7@1` (block b7 of KV group 1) are names, a number is not.

    Group 0 carries no mark, so that a block has one name only.
    """
    if not isinstance(name, str):
        raise InputError(
            f"expected a block's name, found {shown(name)}", file=file, path=path, hint="names are texts: quote it"
        )
    base, mark, group = name.partition(GROUP_MARK)
    if not base or not name.isprintable() or name != name.strip():
        raise InputError(f"{shown(name)} is no name of a block", file=file, path=path)
    if CHAIN_MARK in name:
        raise InputError(f"{shown(name)} is no name of a block: {CHAIN_MARK} is reserved", file=file, path=path)
    if mark and not _GROUP.fullmatch(group):
        raise InputError(
            f"{shown(name)} is no name of a block: what follows {GROUP_MARK} is a KV group from 1",
            file=file,
            path=path,
        )
    return name
