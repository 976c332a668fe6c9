"""`kvtier` in the process of the tests: for what does not depend on a process of its own, at a tenth of the time."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from kvtier_cli.main import main
from tests.conftest import Ran


def run_here(*args: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
    """Run a command line, with pipes for streams; as the fixture `kvtier` otherwise."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [io.TextIOWrapper(io.BytesIO(part), encoding="utf-8") for part in (data, b"", b"")]
    before = Path.cwd()
    if cwd is not None:
        os.chdir(cwd)
    try:
        with (
            mock.patch.dict(os.environ, env or {}),
            mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
        ):
            status = main(args)
    finally:
        os.chdir(before)
        gc.enable()  # a replay turns it off, and leaves the rest to the end of its process
    texts = []
    for stream in streams[1:]:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]  # a BytesIO
    return Ran(*texts, int(status))
