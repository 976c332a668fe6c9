"""What the system says when a workspace cannot be used, in plain words. What stores say is `stores/disk_faults.py`."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from kvtier_cli.errors import EnvironmentFault

_WORDS: Final = {
    errno.ENOSPC: ("the disk is full", "Make room, then run it again."),
    errno.EDQUOT: ("your share of the disk is full", "Make room, then run it again."),
    errno.EROFS: ("it is mounted read-only", "Check how the folder is mounted."),
    errno.EACCES: ("permission denied", "Check who owns the folder."),
    errno.EPERM: ("permission denied", "Check who owns the folder."),
    errno.EMFILE: ("too many files are open", "Close some, or raise the limit (ulimit -n)."),
    errno.ENFILE: ("too many files are open", "Close some, or raise the limit (ulimit -n)."),
}


def workspace_fault(error: OSError, folder: Path, what: str) -> EnvironmentFault:
    """`error` as the fault to raise in its place; `what` could not be done, as in "be written"."""
    said, hint = _WORDS.get(error.errno or 0, ((error.strerror or str(error)).lower(), None))
    return EnvironmentFault(f"the workspace {folder} cannot {what}: {said}", hint=hint)
