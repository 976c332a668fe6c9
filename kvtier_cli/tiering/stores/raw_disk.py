"""diskcache, narrowed to what cannot execute anything: names are texts, values are bytes, all else is refused.

diskcache pickles what it has no column for, and unpickles what a row says is a pickle (CVE-2025-69872). `RawDisk`
overrides each method that does; `disk_values.py` reads the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import diskcache

from kvtier_cli.tiering.stores.disk_database import SETTINGS, make_wary
from kvtier_cli.tiering.stores.disk_values import (
    MODE_FILE,
    MODE_ROW,
    DamagedValue,
    remove_value_file,
    value_in_row,
    value_path,
)

_NAMES_AT_ONCE = 500
"""SQLite takes at least 999 values in one statement."""


class RawDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """The seam between rows and Python of one store. Never pickles, never unpickles, never leaves the folder.

    Files belong to jobs: one written in a job that fails is removed, and one that a job gives up is removed when the
    job is committed. (diskcache removes it before that, and a rollback then leaves a row without its file.)
    """

    def __init__(self, directory: str, **settings: Any) -> None:
        super().__init__(directory, **settings)
        self.folder = Path(directory)
        self.written: list[str] = []
        self.given_up: list[str] = []

    def put(self, key: object) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError(f"a store on disk names blocks by text, not by {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        if raw != 1 or type(key) is not str:
            raise DamagedValue("its name is pickled or no text, and is never read")
        return key

    def store(
        self, value: object, read: bool, key: object = diskcache.UNKNOWN
    ) -> tuple[int, int, str | None, bytes | None]:
        if type(value) is not bytes or read:
            raise TypeError(f"a store on disk takes bytes, not {type(value).__name__}")
        if len(value) < self.min_file_size:
            return 0, MODE_ROW, None, value
        filename, _ = self.filename(key, value)
        self.written.append(filename)
        path = self.folder / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        with value_path(self.folder, filename).open("xb") as file:
            file.write(value)
        return len(value), MODE_FILE, filename, None

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> bytes:
        if read:
            raise TypeError("a store on disk hands out bytes, no files")
        return value_in_row(self.folder, mode, filename, value)

    def remove(self, file_path: object) -> None:
        self.given_up.append(str(file_path))

    def settle(self, *, committed: bool) -> None:
        """The job is over: remove the files that no row names any more, or never came to name."""
        for filename in self.given_up if committed else self.written:
            remove_value_file(self.folder, filename)
        self.forget()

    def forget(self) -> None:
        """A job begins: the files of earlier ones are no concern."""
        self.written.clear()
        self.given_up.clear()


class BlockCache(diskcache.Cache):  # type: ignore[misc]  # diskcache has no types
    """A `diskcache.Cache` over `RawDisk` that evicts nothing by itself; a row's tag is its place in the order.

    Opening it trusts the Settings in the database: check them first (`disk_database.py`).
    """

    disk: RawDisk

    def __init__(self, folder: Path, *, lock_timeout: float) -> None:
        try:
            super().__init__(folder, timeout=lock_timeout, disk=RawDisk, **SETTINGS)
            make_wary(self._con)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def job(self) -> Iterator[None]:
        """One transaction, files included: all of what is written in it stays, or nothing.

        Raises diskcache.Timeout where it cannot begin, with the reason as its context.
        """
        disk = self.disk
        disk.forget()
        try:
            with self.transact():
                yield
        except BaseException:
            self._abandon()
            raise
        disk.settle(committed=True)

    def _abandon(self) -> None:
        """A commit that failed leaves its transaction open. And an interrupt may have come right after the commit: the
        rows then tell whose files these are. Where they cannot be asked, the files stay: an orphan does no harm."""
        connection = self._con
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        written = self.disk.written
        if written:
            rows = connection.execute("SELECT 1 FROM Cache WHERE filename = ?", (written[0],)).fetchall()
            self.disk.settle(committed=bool(rows))

    # `set` and `delete` would do, block by block; a job's blocks all at once take half the time.

    def put(self, blocks: Iterable[tuple[str, int]], value_of: Callable[[str], bytes]) -> None:
        """Part of a job: store blocks that are not there, as (name, place in the order).

        Raises sqlite3.IntegrityError for a name that is there.
        """
        disk, now = self.disk, time.time()
        self._con.executemany(
            "INSERT INTO Cache (key, raw, store_time, access_time, tag, size, mode, filename, value)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((*disk.put(name), now, now, place, *disk.store(value_of(name), False)) for name, place in blocks),
        )

    def remove(self, names: Sequence[str]) -> None:
        """Part of a job: delete blocks, their files at its end."""
        for start in range(0, len(names), _NAMES_AT_ONCE):
            part = names[start : start + _NAMES_AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT filename FROM Cache WHERE filename IS NOT NULL AND raw = 1 AND key IN ({marks})"  # noqa: S608
            for (filename,) in self._con.execute(query, part):
                self.disk.remove(filename)
        self._con.executemany("DELETE FROM Cache WHERE key = ? AND raw = 1", zip(names, strict=True))

    def renumber(self, places: Iterable[tuple[int, str]]) -> None:
        """Part of a job: give blocks other places in the order, as (place, name)."""
        self._con.executemany("UPDATE Cache SET tag = ? WHERE key = ? AND raw = 1", places)
