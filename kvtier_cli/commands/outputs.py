"""Files that commands write: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from kvtier_cli.errors import EnvironmentFault, InputError


@contextmanager
def output_file(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and leaves no trace otherwise; `-` is stdout.

    A link stays, and what it points to is replaced. What is no regular file (a pipe, `/dev/null`) cannot be replaced:
    there the bytes go at once. Raises InputError where `path` is a folder or lies in none, EnvironmentFault where it
    cannot be written.
    """
    if path == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        given = Path(path)
        if given.is_dir():
            raise InputError("is a folder; expected a file to write", file=path or ".")
        whole = given.is_file() or not given.exists()
        stream: AbstractContextManager[BinaryIO] = _replacement(path) if whole else given.open("wb")
        with stream as file:
            yield file
    except BrokenPipeError:
        raise  # who reads has seen enough, as on stdout
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error


@contextmanager
def _replacement(path: str) -> Iterator[BinaryIO]:
    """A temporary file beside the one at `path` that takes its place, and its permissions, in the end."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InputError("lies in no folder that there is", file=path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            yield file
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
