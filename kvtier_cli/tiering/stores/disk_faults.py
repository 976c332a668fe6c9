"""What SQLite, diskcache and the system say when a store on disk cannot be used, in plain words. Decides nothing."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.stores.disk_values import DamagedValue

DATABASE = "cache.db"
"""diskcache's name for the database of a store."""

_FULL = "is on a full disk"
_READ_ONLY = "may not be written"
_LOCKED = "is locked by another process"
_DAMAGED = "is damaged: its database cannot be read"
_FOREIGN_ROWS = "is damaged: its database has rows that kvtier did not write"
_HANDLES = "cannot be opened: too many files are open"

_HINTS = {
    _FULL: "Make room, then run it again: nothing of the unfinished job was kept.",
    _READ_ONLY: "Check who owns the folder and how it is mounted.",
    _LOCKED: "Wait for it to end, or allow more time with --lock-timeout.",
    _DAMAGED: "See what is lost with kvtier doctor, and mend it with kvtier doctor --repair.",
    _FOREIGN_ROWS: "See them with kvtier doctor, and remove them with kvtier doctor --repair.",
    _HANDLES: "Close some, or raise the limit (ulimit -n).",
}
_BY_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _FOREIGN_ROWS,
}
_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_ERROR,
)
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a statement may raise."""

_BY_ERRNO = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
}


def sqlite_code(error: BaseException) -> int:
    """SQLite's primary result code of an error, 0 where it has none."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_damage(error: BaseException) -> bool:
    """Whether an error, raised by a statement that suits a sound database, says that this one is not.

    Python cannot even read some of SQLite's messages when they quote a broken schema.
    """
    return sqlite_code(error) in _DAMAGE or isinstance(error, UnicodeDecodeError)


def fault(error: BaseException, folder: Path) -> EnvironmentFault:
    """`error`, raised while the store in `folder` was used, as the fault to raise in its place.

    The cause may be some errors further back: diskcache hides why a transaction could not begin, and a rollback that
    SQLite has done by itself fails with an error of its own.
    """
    chain = list(_causes(error))
    for cause in chain:
        if isinstance(cause, EnvironmentFault):
            return cause
        if sqlite_code(cause) == sqlite3.SQLITE_CANTOPEN:
            cause = _why_not_opened(folder) or cause
        words = _BY_SQLITE.get(sqlite_code(cause))
        if words is None and isinstance(cause, OSError):
            words = _BY_ERRNO.get(cause.errno or 0)
        if words is not None:
            return EnvironmentFault(f"the store {folder} {words}", hint=_HINTS[words])
    if any(is_damage(cause) for cause in chain):
        return EnvironmentFault(f"the store {folder} {_DAMAGED}", hint=_HINTS[_DAMAGED])
    first = next((cause for cause in chain if isinstance(cause, OSError | sqlite3.Error)), error)
    said = (isinstance(first, OSError) and first.strerror) or str(first) or type(first).__name__
    return EnvironmentFault(f"the store {folder} cannot be used: {said.lower()}")


def unreadable(error: BaseException, folder: Path) -> Exception:
    """`error`, raised while one row was read, as the exception to raise in its place: damage of that block, or a fault
    that says nothing about it."""
    if is_damage(error):
        return DamagedValue("its page in the database is corrupt")
    return fault(error, folder)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those it came from or was raised during, hidden ones too."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _why_not_opened(folder: Path) -> OSError | None:
    """What the system says about the database; SQLite only says that it could not open it."""
    handles: list[int] = []
    try:
        handles.append(os.open(folder / DATABASE, os.O_RDWR | os.O_CLOEXEC))
        # As many at once as SQLite has of a database: its log and the index of that, too, and the folder to sync.
        handles += [os.open(folder, os.O_RDONLY | os.O_CLOEXEC) for _ in range(3)]
    except OSError as error:
        return error
    finally:
        for handle in handles:
            os.close(handle)
    return None
