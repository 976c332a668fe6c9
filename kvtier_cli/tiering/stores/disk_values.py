"""How a block's payload lies on disk: a header with length and checksum in front, in a row or in a file of its own.

Knows neither SQLite nor diskcache. Whatever it reads is suspect: it is compared, and never interpreted.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import zlib
from pathlib import Path

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.payload import check

MODE_ROW = 1
MODE_FILE = 2
"""diskcache's modes "raw" and "binary": the only ones that are read. Its others are text, and pickles."""

FILE_FROM = 32 * 1024
"""Payloads of that many bytes, and longer ones, get a file of their own."""

_HEADER = struct.Struct(">4sB3xQI")
_MAGIC = b"KVTB"
_VERSION = 1
HEADER_BYTES = _HEADER.size

_FILE_NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")

_GONE = {errno.ENOENT: "is missing", errno.ENOTDIR: "is missing", errno.ELOOP: "is a link", errno.EIO: "is unreadable"}
_NO_HANDLES = (errno.EMFILE, errno.ENFILE)


class DamagedValue(Exception):
    """A stored block is not what was written; the text says what is wrong with it, as in "its file is missing"."""


def pack(name: str, payload: bytes) -> bytes:
    """`payload` behind its header: magic, version, length, and a checksum that covers the block's name too."""
    return _HEADER.pack(_MAGIC, _VERSION, len(payload), _checksum(name, payload)) + payload


def unpack(name: str, value: object) -> bytes:
    """The payload of block `name`, or DamagedValue. Checks length and checksum, and that it belongs to the name."""
    if type(value) is not bytes:
        raise DamagedValue("its value is no bytes")
    checksum = _check_header(value, len(value))
    payload = value[HEADER_BYTES:]
    if _checksum(name, payload) != checksum:
        raise DamagedValue("its bytes do not match their checksum")
    if not check(name, payload):
        raise DamagedValue("its bytes are not those of this block")
    return payload


def _checksum(name: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(name.encode("utf-8", "surrogatepass")))


def _check_header(head: bytes, total: int) -> int:
    """The checksum that the header at the front of `head` states, for a value of `total` bytes."""
    if len(head) < HEADER_BYTES:
        raise DamagedValue(f"its value is cut short: {total} bytes, less than a header")
    magic, version, length, checksum = _header(head)
    if magic != _MAGIC:
        raise DamagedValue("its value has no header of kvtier's")
    if version != _VERSION:
        raise DamagedValue(f"its value has format version {version}, this kvtier reads {_VERSION}")
    if total != HEADER_BYTES + length:
        how = "cut short" if total < HEADER_BYTES + length else "too long"
        raise DamagedValue(f"its value is {how}: {total} bytes, not {HEADER_BYTES + length}")
    return checksum


def _header(head: bytes) -> tuple[bytes, int, int, int]:
    return _HEADER.unpack_from(head)


def value_in_row(folder: Path, mode: object, filename: object, value: object) -> bytes:
    """The value (header and payload) that a row of the store in `folder` holds or points to, or DamagedValue."""
    if mode == MODE_FILE:
        return read_value_file(folder, filename)
    if mode != MODE_ROW:
        raise DamagedValue(f"its value has mode {mode!r}, a pickle or a text, which is never read")
    if filename is not None:
        raise DamagedValue("its value is in the row, and it names a file too")
    if type(value) is not bytes:
        raise DamagedValue("its value is no bytes")
    return value


def value_path(folder: Path, filename: object) -> Path:
    """Where a value file named in a row lies, or DamagedValue if that is not surely inside `folder`."""
    if not isinstance(filename, str) or not _FILE_NAME.fullmatch(filename):
        raise DamagedValue("its file has a name that kvtier never gives")
    path = folder / filename
    if path.parent.is_symlink() or path.parent.parent.is_symlink():
        raise DamagedValue("its file lies behind a link that leads elsewhere")
    return path


def read_value_file(folder: Path, filename: object) -> bytes:
    """The whole value file, or DamagedValue. Follows no link, waits at no pipe, reads no more than its header states.

    Raises EnvironmentFault where the file may well be good but cannot be opened now.
    """
    try:
        path = value_path(folder, filename)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _GONE:
            raise DamagedValue(f"its file {_GONE[error.errno]}") from error
        hint = "Raise the limit (ulimit -n)." if error.errno in _NO_HANDLES else None
        said = (error.strerror or "").lower()
        raise EnvironmentFault(f"{folder / str(filename)}: cannot be read: {said}", hint=hint) from error
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise DamagedValue("its file is no regular file")
        try:
            head = file.read(HEADER_BYTES)
            _check_header(head, found.st_size)
            return head + file.read(found.st_size - len(head))
        except OSError as error:
            raise DamagedValue(f"its file is unreadable: {(error.strerror or '').lower()}") from error


def value_files(folder: Path) -> list[str]:
    """The names of all value files in `folder`, as rows name them; foreign files and links are left out."""
    found = (
        path.relative_to(folder).as_posix()
        for upper in _folders(folder)
        for lower in _folders(upper)
        for path in lower.iterdir()
    )
    return [name for name in found if _FILE_NAME.fullmatch(name)]


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if len(path.name) == 2 and path.is_dir() and not path.is_symlink()]


def remove_value_file(folder: Path, filename: object) -> None:
    """Remove a value file and the folders that are empty then. What is not surely inside `folder` stays untouched."""
    try:
        path = value_path(folder, filename)
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()
    except (DamagedValue, OSError):
        return
