"""A store on disk for lookups: asks its database about single blocks instead of reading all of it first.

A lookup asks for some dozens of blocks, of however many there are. Whoever wants more of the store (its order, its
size, a change) gets all of it in memory then; what is changed stays there. Nothing is written. Reading whole stores is
`stores/disk_reader.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.stores import BlockStore
from kvtier_cli.tiering.stores.disk_database import connect, refuse_foreign
from kvtier_cli.tiering.stores.disk_faults import DATABASE_ERRORS, fault, unreadable
from kvtier_cli.tiering.stores.disk_values import DamagedValue, unpack, value_in_row

# The plus keeps SQLite from the index of expiry times, which names every block.
_IS_BLOCK: Final = "raw = 1 AND +expire_time IS NULL"
_HOLDS: Final = f"SELECT 1 FROM Cache WHERE key = ? AND {_IS_BLOCK}"  # noqa: S608
_ROW: Final = f"SELECT mode, filename, value FROM Cache WHERE key = ? AND {_IS_BLOCK}"  # noqa: S608
_RANGE: Final = f"SELECT key FROM Cache WHERE key >= ? AND key < ? AND {_IS_BLOCK} AND typeof(key) = 'text'"  # noqa: S608


class PeekingStore:
    """The store in `folder`, for a caller who has seen to it that nobody writes it meanwhile.

    Raises EnvironmentFault where it cannot be read, or is damaged.
    """

    def __init__(self, folder: Path, *, lock_timeout: float) -> None:
        self._folder = folder
        self._lock_timeout = lock_timeout
        self._connection = connect(folder, lock_timeout=lock_timeout)
        self._answers: dict[BlockKey, bool] = {}
        self._refreshed: list[Sequence[BlockKey]] = []
        self._whole: BlockStore | None = None
        self.index: Mapping[BlockKey, object] = _Index(self)
        try:
            refuse_foreign(self._connection, folder)
        except DATABASE_ERRORS as error:
            self._connection.close()
            raise fault(error, folder) from error
        except BaseException:
            self._connection.close()
            raise

    @property
    def whole(self) -> BlockStore:
        """All of the store, in memory, with what was changed so far."""
        if self._whole is None:
            from kvtier_cli.tiering.stores.disk_reader import DiskReader

            self._whole = DiskReader(self._folder, lock_timeout=self._lock_timeout)
            for keys in self._refreshed:
                self._whole.refresh(keys)
        return self._whole

    def holds(self, key: BlockKey) -> bool:
        """Whether a block is in the store."""
        if self._whole is not None:
            return key in self._whole.index
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = isinstance(key, str) and bool(self._ask(_HOLDS, key))
        return found

    @property
    def is_whole(self) -> bool:
        """Whether all of the store is in memory already."""
        return self._whole is not None

    def with_start(self, start: str) -> list[str]:
        """The blocks on disk whose keys begin with `start`, which is not empty; without reading the others."""
        return [key for (key,) in self._ask(_RANGE, start, start[:-1] + chr(ord(start[-1]) + 1))]

    def _ask(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except UnicodeEncodeError:  # half a surrogate is in no name
            return []
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):  # killed before there was one
                return []
            raise fault(error, self._folder) from error
        except DATABASE_ERRORS as error:
            raise fault(error, self._folder) from error

    def oldest(self, count: int) -> Sequence[BlockKey]:
        return self.whole.oldest(count)

    def least_recent_first(self) -> Iterator[BlockKey]:
        return self.whole.least_recent_first()

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        self.whole.write(puts, deletes, recent)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        if self._whole is not None:
            return self._whole.read(keys)
        damaged: dict[BlockKey, str] = {}
        for key in keys:
            try:
                self._check(str(key))
            except DamagedValue as damage:
                damaged[key] = str(damage)
                self._answers[key] = False
        if damaged:
            self.write((), [key for key in damaged if key in self.whole.index])
        return damaged

    def _check(self, name: str) -> None:
        try:
            row = self._connection.execute(_ROW, (name,)).fetchone()
        except DATABASE_ERRORS as error:
            raise unreadable(error, self._folder) from error
        if row is None:
            raise DamagedValue("its row is gone")
        unpack(name, value_in_row(self._folder, *row))

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        if self._whole is not None:
            self._whole.refresh(keys)
        elif keys:
            self._refreshed.append(list(keys))

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()
        if self._whole is not None:
            self._whole.close()


class _Index(Mapping[BlockKey, object]):
    """The blocks of a store: asking for one is a query, going over them reads the store."""

    def __init__(self, store: PeekingStore) -> None:
        self._store = store

    def __contains__(self, key: object) -> bool:
        return self._store.holds(key)

    def __getitem__(self, key: BlockKey) -> object:
        return self._store.whole.index[key]

    def __iter__(self) -> Iterator[BlockKey]:
        return iter(self._store.whole.index)

    def __len__(self) -> int:
        return len(self._store.whole.index)
