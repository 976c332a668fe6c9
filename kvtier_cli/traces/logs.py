"""Tells a decision log from a trace by its first bytes, for those who read either. Opens no log."""

from __future__ import annotations

from pathlib import Path

from kvtier_cli.traces.source import KVLOG_MAGIC


def is_kvlog(path: str) -> bool:
    """Whether the file at `path` begins as a `.kvlog` does. False where it cannot be read."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return file.read(len(KVLOG_MAGIC)) == KVLOG_MAGIC
    except (OSError, ValueError):
        return False
