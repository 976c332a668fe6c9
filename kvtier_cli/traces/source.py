"""Where a trace is read from: a file, a pipe or stdin, as bytes that can be read more than once, unpacked.

What the bytes mean is not decided here.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import weakref
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.traces.compression import TraceFault, compression_of, unpacked

if TYPE_CHECKING:
    from types import TracebackType

    from _typeshed import WriteableBuffer

STDIN = "-"
_SPOOL_BLOCK = 1 << 16
_MAGIC_BYTES = 16
KVLOG_MAGIC = b"\x93KVLOG\r\n"
"""How a decision log of our own begins: no trace, and worth a hint of its own."""


class TraceSource:
    """The bytes of one trace, opened once and readable any number of times, each time the same.

    A file counts as long as it was when it was opened: what a writer adds meanwhile is not read, so two passes see
    the same requests. Stdin (`-`), pipes and devices are copied to an unnamed temporary file first. What is packed
    with gzip or zstd, by its first bytes, is unpacked while it is read.

    Raises InputError for what is missing, a directory, unreadable, empty, or compressed in another way, and
    EnvironmentFault where the temporary file cannot be written. Needs a POSIX system (`os.pread`).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        self.name = "stdin" if text == STDIN else text
        """How messages call it: the path as it was given, or `stdin`."""
        self.path: Path | None = None if text == STDIN else Path(text)
        fd = self._spool_stdin() if text == STDIN else self._open_path(text)
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)
        self.size = os.fstat(fd).st_size
        """Bytes of the file, packed as they are."""
        try:
            if not self.size:
                raise InputError("is empty", file=self.name, hint="Expected a trace: one request a line.")
            first = self._first(_MAGIC_BYTES)
            if first.startswith(KVLOG_MAGIC):
                raise InputError(
                    "is a decision log, what came of a replay; expected a trace",
                    file=self.name,
                    hint="Read it with kvtier explain LOG --request ID or kvtier compare LOG LOG, or give the trace.",
                )
            self.compression = compression_of(first, self.name)
            """"gzip", "zstd", or None for a file that is not packed."""
        except BaseException:
            self.close()
            raise

    def open(self) -> TraceStream:
        """A fresh stream from the first byte, independent of the others; it keeps the source open.

        Reading it raises TraceFault where what is packed is cut off or damaged, or the file got shorter.
        """
        return TraceStream(_Window(self, self._fd, self.size), self.compression, self.name)

    def head(self, count: int = 1 << 16) -> bytes:
        """The first `count` bytes, unpacked, or fewer if there are fewer or the rest cannot be unpacked."""
        if self.compression is None:
            return self._first(count)
        parts: list[bytes] = []
        with self.open() as stream:
            try:
                while count and (part := stream.piece(count)):
                    parts.append(part)
                    count -= len(part)
            except TraceFault:
                pass  # whoever reads on is told
        return b"".join(parts)

    def _first(self, count: int) -> bytes:
        try:
            return os.pread(self._fd, min(count, self.size), 0)
        except OSError as error:
            raise unreadable(error, self.name) from None

    def close(self) -> None:
        """Gives the file back. Needed only where the moment matters: it also happens when the source is dropped."""
        self._close()

    @property
    def closed(self) -> bool:
        """Whether the file was given back; streams still open on it then fail with a ValueError."""
        return not self._close.alive

    def __enter__(self) -> TraceSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_path(self, path: str) -> int:
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise InputError("no such file", file=path, hint=_near_file(path)) from None
        except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
            raise unreadable(error, path) from None
        try:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                raise InputError(
                    "is a directory; expected a file", file=path, hint="Name one of the files in it, or - for stdin."
                )
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return fd
            # A pipe, a device, or a file that says it is empty: those under /proc are not, only reading tells.
            copy = self._spool(lambda count: os.read(fd, count), is_device=stat.S_ISCHR(status.st_mode))
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return copy

    def _spool_stdin(self) -> int:
        if sys.stdin is None:
            raise InputError("is closed", file=self.name)
        read = sys.stdin.buffer.read
        try:
            is_device = stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
        except (OSError, ValueError, AttributeError):  # something else stands in its place
            is_device = False
        return self._spool(read, is_device=is_device)

    def _spool(self, read: Callable[[int], bytes], *, is_device: bool) -> int:
        """Copies all that `read` gives into a temporary file without a name; returns a descriptor of it."""
        import tempfile

        try:
            spool = tempfile.TemporaryFile(prefix="kvtier-")  # noqa: SIM115 (closed by the `with` below)
        except OSError as error:
            raise _spool_fault(self.name, error) from None
        with spool:
            while True:
                try:
                    block = read(_SPOOL_BLOCK)
                except OSError as error:
                    raise unreadable(error, self.name) from None
                if not block:
                    break
                if is_device and b"\0" in block:  # a terminal gives none, and /dev/zero never ends
                    raise InputError("is a device that gives binary data; expected a trace", file=self.name)
                try:
                    spool.write(block)
                except OSError as error:
                    raise _spool_fault(self.name, error) from None
            try:
                spool.flush()
                return os.dup(spool.fileno())
            except OSError as error:
                raise _spool_fault(self.name, error) from None


class TraceStream(io.BufferedReader):
    """The bytes of a source in order, unpacked."""

    def __init__(self, window: _Window, compression: str | None, name: str) -> None:
        self._window = window
        raw: io.RawIOBase = window
        if compression is not None:
            raw = unpacked(io.BufferedReader(window), compression, name)
        super().__init__(raw)
        self.piece: Callable[[int], bytes] = window.take if compression is None else self.read1
        """Gives some of the next bytes, at most as many as it is asked for and all that come before a fault; none at
        the end. Not to be mixed with other ways to read."""

    @property
    def consumed(self) -> int:
        """How many bytes of the file were taken so far, packed as they are."""
        return self._window.position


class _Window(io.RawIOBase):
    """The first `size` bytes of a descriptor, read at a position of its own, so that streams do not disturb others."""

    def __init__(self, owner: TraceSource, fd: int, size: int) -> None:
        super().__init__()
        self._owner = owner  # as long as a stream lives, its descriptor does
        self._fd = fd
        self._size = size
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.take(len(view))
        view[: len(data)] = data
        return len(data)

    def take(self, count: int) -> bytes:
        """The next bytes, at most `count`."""
        if self._owner.closed:  # the number of its descriptor may be another file's by now
            raise ValueError("read from a source that was closed")
        left = self._size - self.position
        try:
            data = os.pread(self._fd, min(count, left), self.position)
        except OSError as error:
            raise unreadable(error, self._owner.name) from None
        if left and count and not data:
            raise TraceFault("got shorter while it was read", file=self._owner.name, hint="Read it again.")
        self.position += len(data)
        return data


def unreadable(error: OSError | ValueError, name: str) -> InputError:
    """The InputError for a file that the system would not open or read, in plain words."""
    if isinstance(error, ValueError):
        return InputError("no file can have this name", file=name.replace("\0", "\\0"))
    if error.errno in {errno.EACCES, errno.EPERM}:
        return InputError("may not be read: permission denied", file=name)
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", file=name)


def _spool_fault(name: str, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        f"{name} cannot be copied to a temporary file: {(error.strerror or str(error)).lower()}",
        hint="Make room in the temporary folder, or set TMPDIR to another.",
    )


def _near_file(path: str) -> str | None:
    """A hint at the file of nearest name in the same folder, if there is one."""
    from difflib import get_close_matches

    wanted = Path(path)
    try:
        names = [entry.name for entry in islice(wanted.parent.iterdir(), 10_000)]
    except OSError:
        return None
    near = get_close_matches(wanted.name, names, 1)
    return f"Did you mean {wanted.parent / near[0]}?" if near else None
