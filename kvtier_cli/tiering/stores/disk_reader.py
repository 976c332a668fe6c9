"""A store on disk for those who only look: nothing is written, what a what-if changes stays in memory.

Needs SQLite alone; importing diskcache takes longer than all of this. Writing is `disk.py`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.stores.disk_database import Order, connect, read_order, refuse_foreign, stamp
from kvtier_cli.tiering.stores.disk_faults import DATABASE_ERRORS, fault, unreadable
from kvtier_cli.tiering.stores.disk_values import DamagedValue, unpack, value_in_row
from kvtier_cli.tiering.stores.key_codec import TEXT_KEYS, KeyCodec
from kvtier_cli.tiering.stores.memory import MemoryStore

_ATTEMPTS = 5
_ROW = "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1"


class DiskReader(MemoryStore):
    """The blocks of the store in `folder` as they were when it was opened. `write` and `refresh` change the memory
    alone; a block put that way has no payload that could be damaged.

    Raises EnvironmentFault where the store cannot be read, is damaged, or changes while it is being read.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, codec: KeyCodec = TEXT_KEYS, lock_timeout: float = 5.0
    ) -> None:
        super().__init__()
        self.folder = Path(folder).absolute()
        self._codec = codec
        self._lock_timeout = lock_timeout
        self._pretended: set[BlockKey] = set()
        names = self._open().names
        try:
            keys = list(map(codec.key_of, names))
        except BaseException:
            self.close()
            raise
        if keys:
            super().write(keys)

    def _open(self) -> Order:
        """Opens the database and reads the order; once more where somebody wrote meanwhile."""
        for _ in range(_ATTEMPTS):
            # The stamp first: it has to notice a log that appears before the connection is there.
            self._stamp = self._now()
            self._connection = connect(self.folder, lock_timeout=self._lock_timeout)
            try:
                refuse_foreign(self._connection, self.folder)
                order = read_order(self._connection)
                if self._now() == self._stamp:
                    return order
            except (*DATABASE_ERRORS, OSError) as error:
                self._connection.close()
                if self._now() == self._stamp:
                    raise fault(error, self.folder) from error
            except BaseException:
                self._connection.close()
                raise
            self._connection.close()
        raise EnvironmentFault(f"the store {self.folder} is being written; wait for the writer to end")

    def _now(self) -> object:
        try:
            return stamp(self.folder)
        except OSError as error:
            raise fault(error, self.folder) from error

    def payload(self, key: BlockKey) -> bytes:
        """The bytes of a block. Raises DamagedValue (the text says how) where they are not what was written."""
        name = self._codec.name_of(key)
        try:
            row = self._connection.execute(_ROW, (name,)).fetchone()
        except DATABASE_ERRORS as error:
            raise unreadable(error, self.folder) from error
        if row is None:
            raise DamagedValue("its row is gone")
        return unpack(name, value_in_row(self.folder, *row))

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        damaged: dict[BlockKey, str] = {}
        for key in keys:
            if key not in self._pretended:
                try:
                    self.payload(key)
                except DamagedValue as damage:
                    damaged[key] = str(damage)
        if damaged:
            if self._now() != self._stamp:
                raise EnvironmentFault(f"the store {self.folder} was changed while it was read; look again")
            super().write((), damaged)
        return damaged

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        self._pretended.update(puts)
        super().write(puts, deletes, recent)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
