"""Where the fixtures that come with kvtier are: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

from kvtier_cli.errors import EnvironmentFault, InputError

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder() -> Path:
    """The folder of the shipped fixtures. Raises EnvironmentFault where the installation lacks it."""
    installed = _PACKAGE / "fixtures"
    if installed.is_dir():
        return installed
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "fixtures").is_dir():
        return checkout / "fixtures"
    raise EnvironmentFault("the shipped fixtures are missing from this installation", hint="Install kvtier again.")


def shipped_fixture(name: str) -> Path:
    """The file of the shipped fixture `name` (a path inside the folder, as in `denied-promotion.yaml`).

    Raises InputError for a name that is not shipped, with the nearest that is.
    """
    folder = shipped_folder()
    known = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    if name not in known:
        from kvtier_cli.wording import nearest

        near = nearest(name, known)
        suggestion = f' Did you mean "{near}"?' if near else ""
        raise InputError(f'no fixture "{name}" is shipped.{suggestion}', hint=f"They are in {folder}.")
    return known[name]
