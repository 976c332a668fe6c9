"""Files that commands write: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kvtier_cli.errors import EnvironmentFault, InputError


@contextmanager
def output_file(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends well, and leaves no trace otherwise; `-` is stdout.

    Raises InputError where `path` is a folder or lies in none, EnvironmentFault where it cannot be written.
    """
    if path == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.is_dir():
        raise InputError("is a folder; expected a file to write", file=path)
    if not target.parent.is_dir():
        raise InputError("lies in no folder that there is", file=path)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
                yield file
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
