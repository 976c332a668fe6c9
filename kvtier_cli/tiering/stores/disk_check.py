"""Finds everything that is wrong with a store on disk: the database, its settings, each block, the files.

Looks only; `disk_repair.py` mends what is found. Nothing that a row says is done: a pickle is not loaded, a file
outside the folder neither read nor deleted.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.stores.disk_database import (
    connect,
    foreign_settings,
    has_log,
    has_table,
    is_name,
    is_place,
    orphans,
    stamp,
)
from kvtier_cli.tiering.stores.disk_faults import DATABASE, DATABASE_ERRORS, fault, is_damage
from kvtier_cli.tiering.stores.disk_values import DamagedValue, unpack, value_in_row
from kvtier_cli.wording import shown

_COMPLAINTS = 10
_SCHEMA = "SELECT type, name, sql FROM sqlite_master"
_COLUMNS = "rowid, key, raw, tag, expire_time, size, mode, filename, value"
_ALL_ROWS = f"SELECT {_COLUMNS} FROM Cache NOT INDEXED ORDER BY rowid"  # noqa: S608
_ONE_ROW = f"SELECT {_COLUMNS} FROM Cache NOT INDEXED WHERE rowid = ?"  # noqa: S608
_ROWIDS = (
    "SELECT rowid FROM Cache INDEXED BY Cache_key_raw ORDER BY key",
    "SELECT rowid FROM Cache INDEXED BY Cache_key_raw ORDER BY key DESC",
    "SELECT rowid FROM Cache NOT INDEXED ORDER BY rowid DESC",
)


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong. `kind` is database, schema, setting, block or file; `subject` names what it is about (a
    block, a setting, a file; text from the store, to be shown as plain text), `reason` says what is wrong with it.

    `mended`: it has been, a damaged block by removing it. `harmless`: no block is lost by it.
    """

    kind: str
    subject: str
    reason: str
    mended: bool = False
    harmless: bool = False


class Row(NamedTuple):
    """A row of the table Cache, as far as kvtier uses it."""

    rowid: int
    key: object
    raw: object
    tag: object
    expire_time: object
    size: object
    mode: object
    filename: object
    value: object


@dataclass(slots=True)
class Findings:
    """What a check found. The rows with the ids `bad_rows` are no blocks, or damaged ones; where the database is not
    `is_readable` nothing of it can be saved."""

    damages: list[Damage] = field(default_factory=list)
    bad_rows: set[int] = field(default_factory=set)
    is_readable: bool = True

    def add(self, kind: str, subject: str, reason: str, *, harmless: bool = False) -> None:
        """Note a damage."""
        self.damages.append(Damage(kind, subject, reason, harmless=harmless))


def check_store(folder: Path, *, repair: bool, lock_timeout: float) -> list[Damage]:
    """What is wrong with the store in `folder`; nothing for a store that is as it should be.

    With `repair` what can be mended is: damaged blocks are removed, all others are kept, in their order. The caller
    keeps writers away. Raises EnvironmentFault where there is no store, or it cannot be opened (which is no damage).
    """
    if not (folder / DATABASE).exists():
        raise EnvironmentFault(f"{folder} holds no store of kvtier's")
    before = stamp(folder)
    findings = find_damage(folder, lock_timeout=lock_timeout)
    if findings.damages and stamp(folder) != before:
        raise EnvironmentFault(f"the store {folder} is being written; check it when the writer has ended")
    if repair and findings.damages:
        from kvtier_cli.tiering.stores.disk_repair import repair_store

        return repair_store(folder, findings, lock_timeout=lock_timeout)
    return findings.damages


def find_damage(folder: Path, *, lock_timeout: float) -> Findings:
    """Looks at the whole store: each page, each row, each payload."""
    findings = Findings()
    with closing(connect(folder, lock_timeout=lock_timeout)) as connection:
        try:
            _check_database(connection, findings)
            _check_rows(connection, folder, findings)
            _check_files(connection, folder, findings)
        except (*DATABASE_ERRORS, OSError) as error:
            if not is_damage(error):
                raise fault(error, folder) from error
            findings.is_readable = False
            said = str(error) if isinstance(error, sqlite3.Error) else "malformed database schema"
            findings.add("database", DATABASE, f"cannot be read, nothing of it can be saved: {said}")
    return findings


def _check_database(connection: sqlite3.Connection, findings: Findings) -> None:
    found = {(kind, name): sql for kind, name, sql in connection.execute(_SCHEMA)}
    if not found:
        return  # killed before anything was written
    expected = _expected_schema()
    for (kind, name), sql in found.items():
        if (kind, name) not in expected:
            findings.add("schema", f"{kind} {name}", "is not kvtier's")
        elif sql != expected[kind, name]:
            findings.add("schema", f"{kind} {name}", "is not as kvtier makes it")
    for kind, name in expected.keys() - found.keys():
        findings.add("schema", f"{kind} {name}", "is missing: the next writer makes it", harmless=True)
    for key, value in foreign_settings(connection):
        findings.add("setting", str(key), f"is not kvtier's, or has another value: {shown(value)}")
    try:
        complaints = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_COMPLAINTS})")]
    except DATABASE_ERRORS as error:
        if not is_damage(error):
            raise
        complaints = [str(error)]
    if complaints != ["ok"]:
        more = ", and more" if len(complaints) > 1 else ""
        findings.add("database", DATABASE, f"has corrupt pages: {complaints[0].strip().splitlines()[-1]}{more}")


@cache
def _expected_schema() -> dict[tuple[str, str], str]:
    """What diskcache itself makes of an empty folder."""
    from kvtier_cli.tiering.stores.raw_disk import BlockCache

    with tempfile.TemporaryDirectory(prefix="kvtier-") as name:
        BlockCache(Path(name), lock_timeout=1.0).close()
        with closing(sqlite3.connect(Path(name) / DATABASE)) as connection:
            return {(kind, object_name): sql for kind, object_name, sql in connection.execute(_SCHEMA)}


def _check_rows(connection: sqlite3.Connection, folder: Path, findings: Findings) -> None:
    for row in rows_of(connection, findings):
        subject = row.key if isinstance(row.key, str) else f"row {row.rowid}"
        try:
            check_row(row, folder)
        except DamagedValue as damage:
            findings.bad_rows.add(row.rowid)
            findings.add("block", subject, str(damage))
        else:
            if not is_place(row.tag):
                reason = "its place in the order is no number: it counts as the least recent"
                findings.add("block", subject, reason, harmless=True)


def check_row(row: Row, folder: Path) -> None:
    """DamagedValue where a row is no block, or its payload is not what was written."""
    if not is_name(row.key, row.raw) or not isinstance(row.key, str):
        raise DamagedValue("its name is pickled or no text, and is never read")
    if row.expire_time is not None:
        raise DamagedValue("it expires, and kvtier's blocks never do")
    unpack(row.key, value_in_row(folder, row.mode, row.filename, row.value))


def rows_of(connection: sqlite3.Connection, findings: Findings | None = None) -> Iterator[Row]:
    """All rows that can be read, in the order of their ids; how many others there are is noted in `findings`."""
    if not has_table(connection, "Cache"):
        return
    last: int | None = None
    try:
        for values in connection.execute(_ALL_ROWS):
            row = Row(*values)
            last = row.rowid
            yield row
        return
    except DATABASE_ERRORS as error:
        if not is_damage(error):
            raise
    lost = 0
    for rowid in sorted(_known_rowids(connection)):
        if last is None or rowid > last:
            try:
                values = connection.execute(_ONE_ROW, (rowid,)).fetchone()
            except DATABASE_ERRORS:
                values = None
            if values is None:
                lost += 1
            else:
                yield Row(*values)
    if findings is not None:
        findings.add("database", DATABASE, f"{lost or 'some'} of its rows cannot be read: their blocks are lost")


def _known_rowids(connection: sqlite3.Connection) -> set[int]:
    """The ids of rows behind a corrupt page, from the index and from the table's other end, as far as each goes."""
    rowids: set[int] = set()
    for query in _ROWIDS:
        try:
            for (rowid,) in connection.execute(query):
                rowids.add(rowid)
        except DATABASE_ERRORS as error:
            if not is_damage(error):
                raise
    return rowids


def _check_files(connection: sqlite3.Connection, folder: Path, findings: Findings) -> None:
    reason = "no block has this file"
    if has_log(folder):
        reason += ": a writer was killed, the next one removes it"
    try:
        found = orphans(connection, folder)
    except DATABASE_ERRORS as error:
        if not is_damage(error):
            raise
        return  # which files are named is not certain; a repair looks again
    for filename in found:
        findings.add("file", filename, reason, harmless=True)
