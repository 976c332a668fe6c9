"""Compressed traces, unpacked as they are read. Told by their first bytes, whatever the file is called.

At most one piece of what is packed is unpacked at a time, so that a file that unpacks to terabytes costs time, never
memory.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from kvtier_cli.errors import EnvironmentFault, InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Unpack = Callable[[int], bytes]
"""Gives some unpacked bytes, at most as many as it is asked for; none at the end."""

_ZSTD_PIECE = 1 << 10
"""Bytes of zstd given to the decoder at a time. It unpacks all of them at once, each byte to 32 KiB at most."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_REFUSED = (
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\x00", "xz", "xz -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
)


class TraceFault(InputError):
    """What is wrong with a trace as a whole, not with one record of it: no reading continues past it."""


def compression_of(head: bytes, name: str) -> str | None:
    """ "gzip", "zstd" or None, by the first bytes of a file. Raises InputError for compression that is not read."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD) or (head[1:4] == _ZSTD_SKIPPABLE and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    for magic, kind, command in _REFUSED:
        if head.startswith(magic):
            raise InputError(
                f"is compressed ({kind}); of compressed traces only gzip and zstd are read",
                file=name,
                hint=f"Decompress it first: {command} FILE | kvtier … -",
            )
    return None


def unpacked(raw: BinaryIO, kind: str, name: str) -> io.RawIOBase:
    """The bytes that `raw`, a stream of "gzip" or "zstd", holds. `name` is the file in messages.

    Reading raises TraceFault where the stream is cut off or damaged, after all that comes before. Raises
    EnvironmentFault for zstd where its package is missing.
    """
    return _Unpacked(_gzip(raw) if kind == "gzip" else _zstd(raw), kind, name)


class _Unpacked(io.RawIOBase):
    def __init__(self, unpack: Unpack, kind: str, name: str) -> None:
        super().__init__()
        self._unpack = unpack
        self._kind = kind
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._unpack(len(view))
        except EOFError:
            raise TraceFault(
                f"its {self._kind} data are cut off",
                file=self._name,
                hint="If the trace is still being written or copied, wait for that to end.",
            ) from None
        except _Damaged as error:
            raise TraceFault(f"its {self._kind} data are damaged: {error}", file=self._name) from None
        view[: len(data)] = data
        return len(data)


class _Damaged(Exception):
    """What the decoder says of data that it cannot unpack."""


def _gzip(raw: BinaryIO) -> Unpack:
    import gzip

    # One reading of it gives one piece: what is unpacked before a fault is not lost with it.
    read = gzip.GzipFile(fileobj=raw, mode="rb").read1

    def unpack(count: int) -> bytes:
        try:
            return read(count)
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _Damaged(_plain(error)) from None

    return unpack


def _zstd(raw: BinaryIO) -> Unpack:
    try:
        import zstandard
    except ImportError:
        raise EnvironmentFault(
            "reading a zstd trace needs the package zstandard", hint="Install it: pip install 'kvtier[formats]'"
        ) from None
    decoder = zstandard.ZstdDecompressor()
    frame = decoder.decompressobj()
    within = False  # a frame has begun and has not ended
    packed = b""
    ready = memoryview(b"")

    def unpack(count: int) -> bytes:
        nonlocal frame, within, packed, ready
        while not ready:
            packed = packed or raw.read(_ZSTD_PIECE)
            if not packed:
                if within:
                    raise EOFError
                return b""
            try:
                ready = memoryview(frame.decompress(packed))
            except zstandard.ZstdError as error:
                raise _Damaged(_plain(error)) from None
            within = not frame.eof
            packed = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = decoder.decompressobj()
        data, ready = ready[:count], ready[count:]
        return bytes(data)

    return unpack


def _plain(error: Exception) -> str:
    """The decoder's own words, without its numbers and its name."""
    text = str(error).rpartition(": ")[2].lower()
    return text.removeprefix("zstd decompress error: ")
