"""Which workspace a command is about, and making one."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.workspace.layout import LOCK, STATE, TOPOLOGY

if TYPE_CHECKING:
    from kvtier_cli.tiering.topology import Topology

NAME: Final = ".kvtier"
"""The folder of a workspace that belongs to the folder it lies in."""


def find_workspace(given: str | None = None) -> Path:
    """The workspace that holds here: the `given` one, else the `.kvtier` of this folder or of the nearest one above,
    else the user's own. It may not be there yet."""
    if given is not None:
        if not given:
            raise InputError("the workspace has no name, expected a folder")
        return Path(given)
    here = Path(NAME)
    if here.is_dir():
        return here
    with suppress(FileNotFoundError):  # this folder was removed
        for folder in Path.cwd().parents:
            if (folder / NAME).is_dir():
                return folder / NAME
    return users_workspace()


def users_workspace() -> Path:
    """The workspace in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("kvtier", appauthor=False) / "workspace"


def is_workspace(path: Path) -> bool:
    """Whether there is a workspace in the folder `path`, a damaged one too."""
    try:
        return (path / STATE).exists() or (path / LOCK).exists()
    except PermissionError:
        return True  # who opens it is told what the matter is


def require_workspace(path: Path) -> None:
    """InputError where there is no workspace in `path`, with the way to make one."""
    if is_workspace(path):
        return
    if path == users_workspace():
        raise InputError(
            "there is no workspace here, and none of your own",
            hint="Make one here with kvtier init, or your own with kvtier load FILE.",
        )
    raise InputError(f"there is no workspace in {path}", hint=f"Make one with kvtier init --workspace {path}.")


def make_workspace(path: Path, topology: Topology) -> None:
    """An empty workspace for `topology` in `path`, mode 0700; whole or not at all.

    Raises InputError where there is something already, EnvironmentFault where it cannot be made.
    """
    if is_workspace(path):
        raise InputError(f"there is a workspace in {path} already", hint="Remove that folder to begin anew.")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is no folder")
    temporary: Path | None = None
    try:
        if path.is_dir() and any(path.iterdir()):
            raise InputError(f"{path} is not empty", hint="A workspace needs a folder of its own.")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{path.name}.", dir=path.parent))
        _fill(temporary, topology)
        temporary.replace(path)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise EnvironmentFault(f"the workspace {path} cannot be made: {said}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    with suppress(OSError):
        path.chmod(0o700)


def _fill(folder: Path, topology: Topology) -> None:
    from kvtier_cli.tiering.topology_write import topology_as_toml
    from kvtier_cli.workspace.state import State, write_state

    (folder / TOPOLOGY).write_text(topology_as_toml(topology), encoding="utf-8")
    os.close(os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    write_state(folder, State.empty())
