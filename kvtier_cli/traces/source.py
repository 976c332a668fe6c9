"""Where a trace is read from: a file, a pipe or stdin, as bytes that can be read more than once.

What the bytes mean is not decided here, beyond turning away what is plainly no text.
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
from typing import TYPE_CHECKING, BinaryIO

from kvtier_cli.errors import EnvironmentFault, InputError

if TYPE_CHECKING:
    from types import TracebackType

    from _typeshed import WriteableBuffer

STDIN = "-"
_SPOOL_BLOCK = 1 << 16
_JUNK_WINDOW = 1024
_NOT_TEXT = (
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\x00", "xz", "xz -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
)
KVLOG_MAGIC = b"\x93KVLOG\r\n"
"""How a decision log of our own begins: the one binary file of which it can be told what it is for."""
_OTHER_TEXT = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class TraceSource:
    """The bytes of one trace, opened once and readable any number of times, each time the same.

    A file counts as long as it was when it was opened: what a writer adds meanwhile is not read, so two passes see
    the same requests. Stdin (`-`), pipes and devices are copied to an unnamed temporary file first.

    Raises InputError for what is missing, a directory, unreadable, empty, compressed or binary, and
    EnvironmentFault where the temporary file cannot be written. Needs a POSIX system (`os.pread`).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        self.name = "stdin" if text == STDIN else text
        """How messages call it: the path as it was given, or `stdin`."""
        self.path: Path | None = None if text == STDIN else Path(text)
        fd = self._spool(_stdin_reader()) if text == STDIN else self._open_path(text)
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)
        self.size = os.fstat(fd).st_size
        """Bytes there are to read."""
        try:
            self._check_text()
        except BaseException:
            self.close()
            raise

    def open(self) -> BinaryIO:
        """A fresh stream from the first byte, independent of the others; it keeps the source open."""
        return io.BufferedReader(_Window(self, self._fd, self.size))

    def head(self, count: int = 1 << 16) -> bytes:
        """The first `count` bytes, or fewer if there are fewer."""
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
            copy = self._spool(lambda count: os.read(fd, count))
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return copy

    def _spool(self, read: Callable[[int], bytes]) -> int:
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
                if b"\0" in block:  # no text has one, and /dev/zero never ends
                    raise _binary(self.name)
                try:
                    spool.write(block)
                except OSError as error:
                    raise _spool_fault(self.name, error) from None
            try:
                spool.flush()
                return os.dup(spool.fileno())
            except OSError as error:
                raise _spool_fault(self.name, error) from None

    def _check_text(self) -> None:
        head = self.head(_JUNK_WINDOW)
        if not head:
            raise InputError("is empty", file=self.name, hint="Expected a trace: one request a line.")
        for magic, kind, command in _NOT_TEXT:
            if head.startswith(magic):
                raise InputError(
                    f"is compressed ({kind}), and compressed traces cannot be read",
                    file=self.name,
                    hint=f"Decompress it first: {command} FILE | kvtier … -",
                )
        if head.startswith(KVLOG_MAGIC):
            raise InputError(
                "is a decision log, what came of a replay; expected a trace",
                file=self.name,
                hint="Replay the trace that it was made from; docs/decision-log.md says how to read a log.",
            )
        for magic, encoding in _OTHER_TEXT:
            if head.startswith(magic):
                raise InputError(f"is {encoding} text; expected UTF-8", file=self.name)
        if b"\0" in head:
            raise _binary(self.name)


class _Window(io.RawIOBase):
    """The first `size` bytes of a descriptor, read at a position of its own, so that streams do not disturb others."""

    def __init__(self, owner: TraceSource, fd: int, size: int) -> None:
        super().__init__()
        self._owner = owner  # as long as a stream lives, its descriptor does
        self._fd = fd
        self._left = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self._owner.closed:  # the number of its descriptor may be another file's by now
            raise ValueError("read from a source that was closed")
        view = memoryview(buffer).cast("B")
        data = os.pread(self._fd, min(len(view), self._left), self._position)
        view[: len(data)] = data
        self._position += len(data)
        self._left -= len(data)
        return len(data)


def unreadable(error: OSError | ValueError, name: str) -> InputError:
    """The InputError for a file that the system would not open or read, in plain words."""
    if isinstance(error, ValueError):
        return InputError("no file can have this name", file=name.replace("\0", "\\0"))
    if error.errno in {errno.EACCES, errno.EPERM}:
        return InputError("may not be read: permission denied", file=name)
    return InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", file=name)


def _binary(name: str) -> InputError:
    return InputError("is binary data, not text", file=name, hint="Expected a trace: one JSON object a line, in UTF-8.")


def _spool_fault(name: str, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        f"{name} cannot be copied to a temporary file: {(error.strerror or str(error)).lower()}",
        hint="Make room in the temporary folder, or set TMPDIR to another.",
    )


def _stdin_reader() -> Callable[[int], bytes]:
    if sys.stdin is None:
        raise InputError("is closed", file="stdin")
    return sys.stdin.buffer.read


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
