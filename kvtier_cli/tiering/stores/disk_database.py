"""The database of a store on disk as seen without diskcache: what belongs in it, and the order of its blocks.

A row of the table `Cache` is a block: `key` its name, `raw` 1, `tag` its place in the order of recency. Reading only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.stores.disk_faults import DATABASE, fault, sqlite_code
from kvtier_cli.tiering.stores.disk_values import FILE_FROM, HEADER_BYTES, value_files
from kvtier_cli.wording import shown

SETTINGS: dict[str, str | int] = {
    # Capacity is the tier's business: diskcache evicts nothing, expires nothing, counts nothing.
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    "statistics": 0,
    "tag_index": 0,
    "disk_min_file_size": FILE_FROM + HEADER_BYTES,
    "disk_pickle_protocol": 0,
    "sqlite_auto_vacuum": 1,
    "sqlite_cache_size": 8192,
    "sqlite_journal_mode": "wal",
    # A database that is cut while it is mapped ends the process without a word.
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 1,
}
"""All settings of diskcache's, none left to its defaults. It executes what it finds in the database: a store whose
settings are others is not opened."""

_COUNTERS = ("count", "size", "hits", "misses")

_OBJECTS = {
    ("table", "Settings"),
    ("table", "Cache"),
    ("index", "sqlite_autoindex_Settings_1"),
    ("index", "Cache_key_raw"),
    ("index", "Cache_expire_time"),
    ("trigger", "Settings_count_insert"),
    ("trigger", "Settings_count_delete"),
    ("trigger", "Settings_size_insert"),
    ("trigger", "Settings_size_update"),
    ("trigger", "Settings_size_delete"),
}

LAST_PLACE = 2**62
"""Places in the order are below this, so that counting on from the highest never ends."""

_OURS = "expire_time IS NULL AND raw = 1 AND typeof(key) = 'text'"
_AT_ONCE = f"SELECT count(*), group_concat(key, char(10)), group_concat(tag) FROM Cache NOT INDEXED WHERE {_OURS}"  # noqa: S608
_ROW_BY_ROW = f"SELECT key, tag FROM Cache NOT INDEXED WHERE {_OURS}"  # noqa: S608


class Order(NamedTuple):
    """The blocks that a store holds, least recent first, and the place that comes next."""

    names: list[str]
    next_place: int


def make_wary(connection: sqlite3.Connection) -> None:
    """Texts that are no UTF-8 come out with half surrogates, which no name has, instead of failing the query; and what
    the database itself defines is not trusted with functions."""
    connection.text_factory = _as_text
    connection.execute("PRAGMA trusted_schema = 0")


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def is_name(key: object, raw: object) -> bool:
    """Whether `key` is the name of a block: a text that was not pickled."""
    return raw == 1 and isinstance(key, str) and not any("\ud800" <= char <= "\udfff" for char in key)


def is_place(tag: object) -> bool:
    """Whether a row's tag is a place in the order."""
    return type(tag) is int and 0 <= tag < LAST_PLACE


def read_order(connection: sqlite3.Connection) -> Order:
    """The blocks in the database. Rows whose name is pickled or no text, and rows that expire, are not blocks of ours
    and are left out; one whose place is no number counts as the least recent."""
    if not has_table(connection, "Cache"):
        return Order([], 0)
    names, places = _read_at_once(connection) or _read_row_by_row(connection)
    if places != sorted(places):
        places_of = dict(zip(names, places, strict=True))
        names = sorted(names, key=places_of.__getitem__)
    return Order(names, max(places, default=-1) + 1)


def _read_at_once(connection: sqlite3.Connection) -> tuple[list[str], list[int]] | None:
    """Names and places as two long texts, in half the time that rows take; None where that does not come out."""
    try:
        count, names, places = connection.execute(_AT_ONCE).fetchone()
    except sqlite3.DataError:  # longer than SQLite's longest text
        return None
    if not count:
        return [], []
    if not names.isascii() and not is_name(names, 1):
        return None
    try:
        found = names.split("\n"), list(map(int, (places or "").split(",")))
    except ValueError:
        return None
    fits = count == len(found[0]) == len(found[1]) and is_place(min(found[1])) and is_place(max(found[1]))
    return found if fits else None


def _read_row_by_row(connection: sqlite3.Connection) -> tuple[list[str], list[int]]:
    rows = [(key, tag) for key, tag in connection.execute(_ROW_BY_ROW) if is_name(key, 1)]
    return [key for key, _ in rows], [tag if is_place(tag) else -1 for _, tag in rows]


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the database has a table of that name (a store that was killed while it was made may not)."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    return bool(connection.execute(query, (name,)).fetchone()[0])


def foreign_objects(connection: sqlite3.Connection) -> list[str]:
    """What is in the database and not diskcache's, as in "trigger t1"."""
    found = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
    return [f"{kind} {name}" for kind, name in found if (kind, name) not in _OBJECTS]


def foreign_settings(connection: sqlite3.Connection) -> list[tuple[object, object]]:
    """The rows of the table Settings that kvtier did not write: unknown keys, other values."""
    if not has_table(connection, "Settings"):
        return []
    rows = connection.execute("SELECT key, value FROM Settings").fetchall()
    return [(key, value) for key, value in rows if not _is_ours(key, value)]


def _is_ours(key: object, value: object) -> bool:
    if key in _COUNTERS:
        return type(value) is int
    return isinstance(key, str) and key in SETTINGS and value == SETTINGS[key] and type(value) is type(SETTINGS[key])


def refuse_foreign(connection: sqlite3.Connection, folder: Path) -> None:
    """EnvironmentFault where the database holds what diskcache would execute or trip over, and kvtier never wrote."""
    objects, settings = foreign_objects(connection), foreign_settings(connection)
    if not objects and not settings:
        return
    what = shown(objects[0]) if objects else f"the setting {shown(settings[0][0])} = {shown(settings[0][1])}"
    raise EnvironmentFault(
        f"the store {folder} is damaged, or another program's: {what} in its database is not kvtier's",
        hint="Nothing was read or changed. Name another folder, or see kvtier doctor.",
    )


def has_log(folder: Path) -> bool:
    """Whether there is a write-ahead log, if only an empty one: somebody has the store open, or was killed."""
    return (folder / f"{DATABASE}-wal").exists()


def has_changes_in_log(folder: Path) -> bool:
    """Whether changes wait in the write-ahead log that the database itself does not have yet."""
    return has_log(folder) and (folder / f"{DATABASE}-wal").stat().st_size > 0


def orphans(connection: sqlite3.Connection, folder: Path) -> list[str]:
    """The value files that no row names: a job was killed before its commit, or after it and before they went."""
    found = value_files(folder)
    if not found or not has_table(connection, "Cache"):
        return found
    named = {name for (name,) in connection.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL")}
    return [name for name in found if name not in named]


def connect(folder: Path, *, lock_timeout: float) -> sqlite3.Connection:
    """A connection that only reads, and leaves no file behind where that can be avoided.

    Without changes in a write-ahead log the database is opened as immutable (SQLite would make a log to read it). That
    takes no lock: the caller must see to it that nobody writes, or look at `stamp` afterwards.
    """
    if _is_unfinished(folder):
        return sqlite3.connect(":memory:")
    if not has_changes_in_log(folder):
        return _connect(folder, "immutable=1", lock_timeout)
    connection = _connect(folder, "readonly_shm=1", lock_timeout)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if sqlite_code(error) not in _NO_USABLE_INDEX:
            return connection
        # A copied store has no index of its log, and one killed early an unfinished one: SQLite makes it anew.
        connection.close()
        return _connect(folder, "readonly_shm=0", lock_timeout)
    return connection


_NO_USABLE_INDEX = (sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _is_unfinished(folder: Path) -> bool:
    """Whether somebody was killed while making the store, before there were tables. SQLite turns that back when it may
    write; what it had written of it until then is not worth a look."""
    try:
        with (folder / DATABASE).open("rb") as file:
            is_in_wal_mode = file.read(20)[18:] == b"\x02\x02"
    except OSError as error:
        raise fault(error, folder) from error
    return not is_in_wal_mode and (folder / f"{DATABASE}-journal").exists()


def _connect(folder: Path, how: str, lock_timeout: float) -> sqlite3.Connection:
    path = folder / DATABASE
    uri = f"{path.absolute().as_uri()}?mode=ro&{how}"
    try:
        path.stat()
        connection = sqlite3.connect(uri, uri=True, timeout=lock_timeout, isolation_level=None)
        make_wary(connection)
    except (sqlite3.Error, OSError) as error:
        raise fault(error, folder) from error
    return connection


def stamp(folder: Path) -> object:
    """Changes when the database does. Two equal stamps: nobody wrote in between."""
    found = (folder / DATABASE).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, has_changes_in_log(folder)


@contextmanager
def locked(folder: Path, *, lock_timeout: float) -> Iterator[sqlite3.Connection]:
    """A connection that keeps all other writers out, after `lock_timeout` seconds of waiting at most. Changes nothing.

    diskcache's own constructor waits a minute for a lock, so it is worth asking before.
    """
    with closing(sqlite3.connect(folder / DATABASE, timeout=lock_timeout, isolation_level=None)) as connection:
        make_wary(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")
