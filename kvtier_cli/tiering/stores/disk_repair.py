"""Mends a store on disk: a new database with the sound rows alone takes the place of the old one, in one step.

What is wrong is found by `disk_check.py`. Until that step the old database stays as it is, so that a repair that fails
has changed nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.stores.disk_check import Damage, Findings, rows_of
from kvtier_cli.tiering.stores.disk_database import connect, has_changes_in_log, is_place, make_wary, orphans
from kvtier_cli.tiering.stores.disk_faults import DATABASE, DATABASE_ERRORS, fault, is_damage
from kvtier_cli.tiering.stores.disk_values import remove_value_file
from kvtier_cli.tiering.stores.raw_disk import BlockCache

_WORKSHOP = ".repair"
_INSERT = """INSERT OR IGNORE INTO Cache (key, raw, store_time, access_time, tag, size, mode, filename, value)
             VALUES (?, 1, 0, 0, ?, ?, ?, ?, ?)"""


def repair_store(folder: Path, findings: Findings, *, lock_timeout: float) -> list[Damage]:
    """Mend what `findings` says of the store in `folder`: its damages, each with whether it is mended now.

    All sound blocks stay, in their order. Of a database that cannot be read nothing is mended, and nothing changed.
    """
    if not findings.is_readable:
        return findings.damages
    try:
        only_files = all(damage.kind == "file" for damage in findings.damages)
        if not only_files:
            _replace_database(folder, findings.bad_rows, lock_timeout)
        with closing(connect(folder, lock_timeout=lock_timeout)) as connection:
            for filename in orphans(connection, folder):
                remove_value_file(folder, filename)
    except (*DATABASE_ERRORS, OSError) as error:
        if is_damage(error):
            return findings.damages
        raise fault(error, folder) from error
    return [replace(damage, mended=True) for damage in findings.damages]


def _replace_database(folder: Path, bad_rows: set[int], lock_timeout: float) -> None:
    workshop = folder / _WORKSHOP
    shutil.rmtree(workshop, ignore_errors=True)
    try:
        with closing(sqlite3.connect(folder / DATABASE, timeout=lock_timeout, isolation_level=None)) as guard:
            make_wary(guard)
            # The old log must be gone: SQLite would apply it to the new database.
            guard.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            guard.execute("BEGIN IMMEDIATE")
            if has_changes_in_log(folder):
                raise EnvironmentFault(
                    f"the store {folder} is in use by another process; repair it when that has ended"
                )
            _rebuild(folder, workshop, bad_rows, lock_timeout)
            (workshop / DATABASE).replace(folder / DATABASE)
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                (folder / f"{DATABASE}{ending}").unlink()
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _rebuild(folder: Path, workshop: Path, bad_rows: set[int], lock_timeout: float) -> None:
    """A database in `workshop` with all rows that can be read but the bad ones. Value files stay where they are."""
    workshop.mkdir(mode=0o700)
    BlockCache(workshop, lock_timeout=lock_timeout).close()
    with (
        closing(connect(folder, lock_timeout=lock_timeout)) as old,
        closing(sqlite3.connect(workshop / DATABASE, isolation_level=None)) as new,
    ):
        new.execute("BEGIN")
        new.executemany(_INSERT, _sound_rows(old, bad_rows))
        new.execute("COMMIT")


def _sound_rows(connection: sqlite3.Connection, bad_rows: set[int]) -> Iterator[tuple[object, ...]]:
    for row in rows_of(connection):
        if row.rowid not in bad_rows:
            place = row.tag if is_place(row.tag) else 0
            yield row.key, place, row.size, row.mode, row.filename, row.value
