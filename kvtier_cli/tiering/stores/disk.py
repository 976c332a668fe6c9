"""A block store on disk that outlives the process: diskcache underneath, the order of recency in memory.

One writer at a time, from one thread. To look only, `DiskStore.open_readonly`; to find and mend damage,
`DiskStore.check`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kvtier_cli.errors import EnvironmentFault, InputError, ManagerError
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.payload import payload_for
from kvtier_cli.tiering.stores.disk_database import Order, has_log, locked, orphans, read_order, refuse_foreign
from kvtier_cli.tiering.stores.disk_faults import DATABASE, DATABASE_ERRORS, fault, is_damage, unreadable
from kvtier_cli.tiering.stores.disk_reader import DiskReader
from kvtier_cli.tiering.stores.disk_values import DamagedValue, pack, remove_value_file, unpack
from kvtier_cli.tiering.stores.key_codec import TEXT_KEYS, KeyCodec
from kvtier_cli.tiering.stores.memory import MemoryStore

if TYPE_CHECKING:
    from kvtier_cli.tiering.stores.disk_check import Damage

PAYLOAD_BYTES = 64
"""How long a block's payload is unless told otherwise."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process's lock unless told otherwise."""


class DiskStore(MemoryStore):
    """The blocks in `folder`, which is made (mode 0700) if it is not there.

    A job's blocks, with their places in the order, are committed when `write` returns, all or none; they survive the
    end of the process, whatever ends it (not of the machine: files are not forced to the disk). The places of blocks
    that were only touched or loaded are written by `close`.

    Raises EnvironmentFault where the folder cannot be used: full, not writable, damaged, another program's, or locked
    for longer than `lock_timeout` seconds. Nothing of the failed job is kept then.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        codec: KeyCodec = TEXT_KEYS,
        payload_bytes: int = PAYLOAD_BYTES,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> None:
        super().__init__()
        self.folder = Path(folder).absolute()
        self.payload_bytes = payload_bytes
        self._codec = codec
        self._touched: dict[BlockKey, int] = {}
        if os.path.expandvars(self.folder) != str(self.folder):
            raise InputError(f"{self.folder} holds the name of an environment variable: use another folder for a store")
        # Here, since a reader has no need of it.
        from kvtier_cli.tiering.stores.raw_disk import BlockCache

        try:
            _make_folder(self.folder)
            order = _inspect(self.folder, lock_timeout)
            keys = list(map(codec.key_of, order.names))
            self._cache = BlockCache(self.folder, lock_timeout=lock_timeout)
        except (*DATABASE_ERRORS, OSError) as error:
            raise fault(error, self.folder) from error
        self._is_open = True
        self._next_place = order.next_place
        if keys:
            super().write(keys)

    @staticmethod
    def open_readonly(
        folder: str | os.PathLike[str], *, codec: KeyCodec = TEXT_KEYS, lock_timeout: float = LOCK_TIMEOUT
    ) -> DiskReader:
        """The store as it is now, for those who change nothing on disk; see `DiskReader`."""
        return DiskReader(folder, codec=codec, lock_timeout=lock_timeout)

    @staticmethod
    def check(
        folder: str | os.PathLike[str], *, repair: bool = False, lock_timeout: float = LOCK_TIMEOUT
    ) -> list[Damage]:
        """Everything that is wrong with the store in `folder`, mended where asked; see `disk_check.py`."""
        from kvtier_cli.tiering.stores.disk_check import check_store

        return check_store(Path(folder).absolute(), repair=repair, lock_timeout=lock_timeout)

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        order = puts if recent is None else recent
        if not order and not deletes:
            return
        name_of, cache, first = self._codec.name_of, self._cache, self._next_place
        places: Mapping[BlockKey, int] = dict(zip(order, range(first, first + len(order)), strict=True))
        with self._job():
            if deletes:
                cache.remove(list(map(name_of, deletes)))
            cache.put(((name_of(key), places[key]) for key in puts), self._value_of)
            if len(order) > len(puts):
                new = set(puts)
                cache.renumber((place, name_of(key)) for key, place in places.items() if key not in new)
        super().write(puts, deletes, recent)
        self._next_place += len(order)
        if self._touched:
            for key in (*deletes, *order):
                self._touched.pop(key, None)

    def _value_of(self, name: str) -> bytes:
        return pack(name, payload_for(name, self.payload_bytes))

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        super().refresh(keys)
        end = self._next_place + len(keys)
        self._touched.update(zip(keys, range(self._next_place, end), strict=True))
        self._next_place = end

    def payload(self, key: BlockKey) -> bytes:
        """The bytes of a block. Raises DamagedValue (the text says how) where they are not what was written."""
        name = self._codec.name_of(key)
        try:
            value = self._cache.get(name)
        except DATABASE_ERRORS as error:
            raise unreadable(error, self.folder) from error
        if value is None:
            raise DamagedValue("its row is gone")
        return unpack(name, value)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        self._require_open()
        damaged: dict[BlockKey, str] = {}
        for key in keys:
            try:
                self.payload(key)
            except DamagedValue as damage:
                damaged[key] = str(damage)
        if damaged:
            self._drop(damaged)
        return damaged

    def _drop(self, damaged: Collection[BlockKey]) -> None:
        """Delete what is damaged; where even that is not possible the block is gone from memory, and is found damaged
        again by whoever opens the store next."""
        try:
            self.write((), damaged)
        except EnvironmentFault as error:
            if error.__cause__ is None or not is_damage(error.__cause__):
                raise
            super().write((), damaged)

    @contextmanager
    def _job(self) -> Iterator[None]:
        self._require_open()
        from diskcache import Timeout

        try:
            with self._cache.job():
                yield
        except (Timeout, *DATABASE_ERRORS, OSError) as error:
            raise fault(error, self.folder) from error
        except DamagedValue as damage:
            raise EnvironmentFault(f"the store {self.folder} is damaged: where a value goes, {damage}") from damage

    def _require_open(self) -> None:
        if not self._is_open:
            raise ManagerError(f"the store {self.folder} is closed")

    def close(self) -> None:
        """Write the places of touched and loaded blocks, in one transaction, and let go of the files. Closing twice
        is closing once."""
        if not self._is_open:
            return
        try:
            if self._touched:
                name_of = self._codec.name_of
                with self._job():
                    self._cache.renumber((place, name_of(key)) for key, place in self._touched.items())
        finally:
            self._is_open = False
            self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _make_folder(folder: Path) -> None:
    """A folder of the store's own that nobody else may look into."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise EnvironmentFault(f"{folder} is no folder: a store cannot be made there") from None
        if not (folder / DATABASE).exists() and any(folder.iterdir()):
            raise EnvironmentFault(
                f"{folder} is not empty and holds no store of kvtier's",
                hint="A store needs a folder of its own: name one that is empty or not there yet.",
            ) from None


def _inspect(folder: Path, lock_timeout: float) -> Order:
    """What the store holds, read before diskcache opens it, since diskcache trusts what it finds.

    Where a writer was killed, the files that its last job had written before its commit are removed.
    """
    if folder.stat().st_mode & 0o077:
        # Not every mount knows modes, and what is in the folder is not trusted anyway.
        with suppress(OSError):
            folder.chmod(0o700)
    if not (folder / DATABASE).exists():
        return Order([], 0)
    was_interrupted = has_log(folder)
    with locked(folder, lock_timeout=lock_timeout) as connection:
        refuse_foreign(connection, folder)
        order = read_order(connection)
        if was_interrupted:
            for filename in orphans(connection, folder):
                remove_value_file(folder, filename)
    return order
