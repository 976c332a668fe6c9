"""One writer or many readers: the lock on a workspace, and who holds it.

The system's own lock on a file (flock), so that whoever is killed holds nothing any more, and readers need no right to
write. filelock's ReadWriteLock is a SQLite database: readers would have to write it, and its import takes as long as
opening a workspace of 100,000 blocks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.workspace.faults import workspace_fault
from kvtier_cli.workspace.layout import HOLDERS, LOCK

LOCK_TIMEOUT: Final = 2.0
"""Seconds to wait for a lock unless told otherwise."""

_POLL: Final = 0.02
_RECORD_BYTES: Final = 1000


class Holder(NamedTuple):
    """Who has the workspace: the command, its process, and when it began (seconds of the epoch)."""

    command: str
    pid: int
    since: float

    def words(self) -> str:
        """As in "`kvtier load` (pid 4121, since 12:04)"."""
        then = time.localtime(self.since)
        today = time.strftime("%Y-%m-%d", then) == time.strftime("%Y-%m-%d")
        since = time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", then)
        return f"`{self.command}` (pid {self.pid}, since {since})"


class WorkspaceLock:
    """Taken when made; `release` ends it, as does the end of the process, however that comes."""

    def __init__(self, folder: Path, *, write: bool, command: str, timeout: float = LOCK_TIMEOUT) -> None:
        """Raises EnvironmentFault where others have the workspace for longer than `timeout` seconds, naming them."""
        self._folder = folder
        self._record: int | None = None
        self._record_path: Path | None = None
        self._file = _open(folder, write=write)
        try:
            self._take(fcntl.LOCK_EX if write else fcntl.LOCK_SH, timeout)
            self._say_who(command)
        except BaseException:
            self.release()
            raise

    def _take(self, how: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(self._file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0:
                    raise _in_use(self._folder) from None
                time.sleep(min(_POLL, left))
            except OSError as error:
                raise workspace_fault(error, self._folder, "be locked") from error
            else:
                return

    def _say_who(self, command: str) -> None:
        """A file with the holder's name, locked while that is true. Where it cannot be written nobody is named."""
        folder = self._folder / HOLDERS
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            path = folder / f"{os.getpid()}-{self._file}"
            self._record = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._record_path = path
            fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._record, f"{os.getpid()} {time.time():.6f} {command}".encode()[:_RECORD_BYTES])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Release it when the block ends."""
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Let others in. Releasing twice is releasing once."""
        if self._record is not None:
            if self._record_path is not None:
                with suppress(OSError):
                    self._record_path.unlink()
            os.close(self._record)
            self._record = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _open(folder: Path, *, write: bool) -> int:
    path = folder / LOCK
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(path, flags | (os.O_RDWR if write else os.O_RDONLY))
        except FileNotFoundError:
            return os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise workspace_fault(error, folder, "be written" if write else "be read") from error


def _in_use(folder: Path) -> EnvironmentFault:
    found = [holder.words() for holder in holders(folder)]
    who = "another process" if not found else found[0] + (f" and {len(found) - 1} more" if len(found) > 1 else "")
    return EnvironmentFault(
        f"the workspace {folder} is in use by {who}", hint="Wait for it, or use another with --workspace."
    )


def holders(folder: Path) -> list[Holder]:
    """Who has the workspace now, as far as they could say so, the first one first."""
    found = []
    for path in _records(folder):
        holder = _read(path)
        if holder is not None:
            found.append(holder)
    return sorted(found, key=lambda holder: (holder.since, holder.pid))


def forget_the_dead(folder: Path) -> int:
    """Remove the names of those that were killed; returns how many they were."""
    gone = 0
    for path in _records(folder):
        if _read(path) is None:
            with suppress(OSError):
                path.unlink()
                gone += 1
    return gone


def _records(folder: Path) -> list[Path]:
    try:
        return [path for path in (folder / HOLDERS).iterdir() if path.is_file() and not path.is_symlink()]
    except OSError:
        return []


def _read(path: Path) -> Holder | None:
    """What a living holder wrote; None for one that is gone."""
    try:
        record = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(record, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return None
        else:
            return None
        pid, since, command = os.read(record, _RECORD_BYTES).decode("utf-8", "replace").split(" ", 2)
        return Holder(command, int(pid), float(since))
    except (OSError, ValueError):
        return None
    finally:
        os.close(record)


def timeout_of(text: str) -> float:
    """The seconds in a `--lock-timeout`: `2s`, `500ms`, `0`. Raises InputError."""
    from kvtier_cli.units import parse_time

    try:
        return parse_time(text)
    except InputError as error:
        raise InputError(f"--lock-timeout: {error.message}", hint=error.hint) from error
