"""`kvtier load` that prints each block when its job is committed, for the tests that kill it.

`python -m tests.workspace.told_load WORKSPACE TRACE`
"""

from __future__ import annotations

import sys
from typing import Any

from kvtier_cli.main import main
from kvtier_cli.tiering.stores.disk import DiskStore


def tell(store: DiskStore, puts: list[str], *args: Any, **kwargs: Any) -> None:
    """Write a job, then print a line with the store's folder and the job's blocks."""
    write(store, puts, *args, **kwargs)
    print(store.folder.name, *puts, flush=True)


if __name__ == "__main__":
    write = DiskStore.write
    DiskStore.write = tell  # type: ignore[method-assign, assignment]  # the same, and it tells
    sys.exit(main(["load", "--workspace", *sys.argv[1:], "-q"]))
