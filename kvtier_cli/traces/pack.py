"""Packs traces as they are written: gzip or zstd, by the end of the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from kvtier_cli.errors import EnvironmentFault

_ZSTD_LEVEL = 10


@contextmanager
def packed(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """A stream whose bytes go to `stream` packed as `name` says: `….gz` gzip, `….zst` zstd, any other as they are.

    What is packed holds no name and no time: the same bytes pack to the same. Raises EnvironmentFault for zstd where
    its package is missing.
    """
    end = name.lower()
    if end.endswith(".gz"):
        import gzip

        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stream, mtime=0) as file:
            yield cast("BinaryIO", file)
    elif end.endswith((".zst", ".zstd")):
        try:
            import zstandard
        except ImportError:
            raise EnvironmentFault(
                "writing a zstd trace needs the package zstandard", hint="Install it: pip install 'kvtier[formats]'"
            ) from None
        with zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(stream, closefd=False) as writer:
            yield writer
    else:
        yield stream
