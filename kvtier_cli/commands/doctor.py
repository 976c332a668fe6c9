"""`kvtier doctor`: whether the installation and the workspace are sound, and mending what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.options import shared
from kvtier_cli.commands.workspace_options import LOCK_TIMEOUT, LockTimeoutOption, WorkspaceOption
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from kvtier_cli.workspace.checks import Check

EXAMPLES = (
    "kvtier doctor",
    "kvtier doctor --workspace /mnt/fast/kv --repair",
)
WITHOUT = ("no_progress",)


def command(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be: remove damage, keep all else.")] = False,
    workspace: WorkspaceOption = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
) -> int:
    """Check the installation and the workspace: versions, the lock, every block. Exit with 1 if something is wrong."""
    options = shared(ctx)
    from kvtier_cli.commands.installation import check_installation
    from kvtier_cli.workspace.found import find_workspace, is_workspace

    path: Path | None = find_workspace(workspace)
    checks = list(check_installation())
    if path is not None and is_workspace(path):
        checks += _workspace_checks(path, repair=repair, lock_timeout=lock_timeout)
    elif workspace is not None:
        raise InputError(f"there is no workspace in {path}", hint=f"Make one with kvtier init --workspace {path}.")
    else:
        path = None
    ok = all(check.ok for check in checks)
    if options.json:
        from kvtier_cli.render.doctor_view import doctor_as_json
        from kvtier_cli.render.json_out import write

        write("doctor", doctor_as_json(path, checks))
    else:
        from kvtier_cli.render.doctor_view import doctor_lines

        for line in doctor_lines(path, checks, options.stdout(), repair=repair):
            print(line)
    return ExitStatus.DONE if ok else ExitStatus.NO


def _workspace_checks(path: Path, *, repair: bool, lock_timeout: str) -> list[Check]:
    from kvtier_cli.workspace.checks import check_workspace
    from kvtier_cli.workspace.lock import WorkspaceLock, timeout_of

    seconds = timeout_of(lock_timeout)
    lock = WorkspaceLock(path, write=repair, command="kvtier doctor", timeout=seconds)
    with lock.held():
        return list(check_workspace(path, repair=repair, lock_timeout=seconds))
