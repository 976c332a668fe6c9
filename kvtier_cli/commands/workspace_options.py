"""The options by which commands find and open a workspace. Prints nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kvtier_cli.workspace import Workspace

WorkspaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        envvar="KVTIER_WORKSPACE",
        help="The workspace; without it .kvtier here or in a folder above, else your own.",
        show_default=False,
    ),
]

LockTimeoutOption = Annotated[
    str,
    typer.Option("--lock-timeout", metavar="TIME", help="How long to wait for others that have the workspace."),
]
LOCK_TIMEOUT = "2s"


def opened(given: str | Path | None, command: str, *, write: bool, lock_timeout: str) -> Workspace:
    """The workspace that `--workspace` names or that is found, open; `command` is what others are told who wait."""
    from kvtier_cli.workspace import find_workspace, open_workspace
    from kvtier_cli.workspace.lock import timeout_of

    path = given if isinstance(given, Path) else find_workspace(given)
    return open_workspace(path, write=write, command=command, lock_timeout=timeout_of(lock_timeout))
