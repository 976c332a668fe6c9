"""Small text files (filters, topologies) as text, with a limit and plain words for what goes wrong. Not for traces."""

from __future__ import annotations

import os

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

LIMIT = 64 * 1024 * 1024
"""Bytes: a filter of a hundred thousand entries has some five million."""


def read_text_file(path: str, what: str, *, limit: int = LIMIT) -> str:
    """The text of the file (or pipe) at `path`, `what` being what is expected there ("a filter", "a topology").

    UTF-8, a byte-order mark is left out. Raises InputError for what is missing, no file, unreadable or too long.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path may be /dev/fd/63
            data = file.read(limit + 1)
    except ValueError as error:
        raise InputError(f"{shown(path)} is no path of a file: it holds a null byte") from error
    except OSError as error:
        if os.path.isdir(path):  # noqa: PTH112
            raise InputError(f"is a folder, expected a file with {what}", file=path) from error
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", file=path) from error
    return decode_text(data, path, limit=limit)


def decode_text(data: bytes, name: str, *, limit: int = LIMIT) -> str:
    """`data` as UTF-8 text; `name` is what errors call its source."""
    if len(data) > limit:
        raise InputError(f"is longer than {limit // 1024 // 1024} MiB, the most that is read", file=name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        # The line's beginning decoded without a fault: `error.start` is the first.
        column = len(data[data.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        message = f"is not UTF-8 text: unexpected byte 0x{data[error.start]:02x}"
        raise InputError(message, file=name, line=line, column=column) from error
