"""Where a tier's store lies: in the workspace, or anywhere else (another disk, a mount) behind a link in it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.stores.disk_faults import DATABASE
from kvtier_cli.workspace.faults import workspace_fault
from kvtier_cli.workspace.opened import Workspace


def place_store(space: Workspace, tier: str, place: Path) -> None:
    """Let a tier that has no store yet have it in the folder `place`, which is made if it is not there.

    A store that lies there already is taken as it is. Raises InputError where the tier has a store elsewhere, or
    `place` holds something else, or another tier's store; EnvironmentFault where it cannot be made.
    """
    link = space.store_folder(tier)
    target = place.absolute()
    if link.exists() and (not link.is_symlink() or (link / DATABASE).exists()):
        raise InputError(
            f"the tier {tier} has its store in {link.resolve()} already",
            hint="Move that folder yourself, and put a link in its place; or begin with another workspace.",
        )
    try:
        if target.exists() and (not target.is_dir() or (any(target.iterdir()) and not (target / DATABASE).exists())):
            raise InputError(f"{target} is not empty and holds no store of kvtier's")
        for other in space.topology.tiers:
            if other.name != tier and space.store_folder(other.name).resolve() == target.resolve():
                raise InputError(f"{target} has the store of the tier {other.name}")
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(target, target_is_directory=True)
    except OSError as error:
        raise workspace_fault(error, space.path, f"have a store in {target}") from error
