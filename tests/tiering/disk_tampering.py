"""What somebody with write access to a store's folder could do to it, for the tests of damage."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

PAGE = 4096
TABLE_LEAF, INDEX_LEAF = 0x0D, 0x0A
"""The first byte of a database page of that kind."""


class Bomb:
    """Whoever unpickles it makes the file `canary`."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.canary,))


def bomb(canary: Path) -> bytes:
    """A pickle that is noticed when it is loaded."""
    return pickle.dumps(Bomb(canary))


def execute(folder: Path, statement: str, *values: object) -> None:
    """Run one statement on the database of the store in `folder`, which nobody has open."""
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as connection:
        connection.execute(statement, values)


def filename_of(folder: Path, block: str) -> str:
    """The name of a block's value file, as its row has it."""
    with closing(sqlite3.connect(folder / "cache.db")) as connection:
        return str(connection.execute("SELECT filename FROM Cache WHERE key = ?", (block,)).fetchone()[0])


def corrupt_page(folder: Path, kind: int) -> None:
    """Overwrite the middle one of the database's pages of that kind."""
    path = folder / "cache.db"
    data = bytearray(path.read_bytes())
    pages = [start for start in range(PAGE, len(data), PAGE) if data[start] == kind]
    start = pages[len(pages) // 2]
    data[start : start + PAGE] = b"\xff" * PAGE
    path.write_bytes(data)
