"""What `kvtier doctor` checks of the installation: Python, SQLite, the packages. Knows no workspace."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from kvtier_cli import __version__
from kvtier_cli.workspace.checks import Check

_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)\s*(?P<bounds>[<>=!~,\d.\s]*)(?P<rest>;.*)?")
_BOUND: Final = re.compile(r"(>=|<)\s*(\d+(?:\.\d+)*)")

PACKAGES: Final = (
    "typer>=0.26,<0.29",
    "rich>=13.9",
    "msgspec>=0.19",
    "PyYAML>=6.0.2",
    "diskcache>=5.6.3,<6",
    "platformdirs>=4",
    "numpy>=1.26",
    "textual>=8.2,<9",
)
"""What kvtier needs, as its package states it."""

_SQLITE: Final = (3, 31)
_PYTHON: Final = (3, 11)


def check_installation() -> Iterator[Check]:
    """kvtier itself, Python, SQLite, then each package."""
    yield Check("kvtier", True, __version__)
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check(
        "python", sys.version_info[:2] >= _PYTHON, python, "" if sys.version_info[:2] >= _PYTHON else "install 3.11"
    )
    fits = sqlite3.sqlite_version_info >= _SQLITE
    yield Check("sqlite", fits, sqlite3.sqlite_version, "" if fits else "install a Python with SQLite 3.31 or later")
    for requirement in PACKAGES:
        yield check_package(requirement)


def check_package(requirement: str) -> Check:
    """Whether a package is installed in a version that `requirement` (`typer>=0.26,<0.29`) allows."""
    match = _REQUIREMENT.fullmatch(requirement)
    assert match is not None  # noqa: S101 - ours
    name, bounds = match["name"], match["bounds"]
    advice = f"pip install '{requirement}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, False, "is not installed", advice)
    found = _numbers(version)
    for sign, bound in _BOUND.findall(bounds):
        if (found < _numbers(bound)) is (sign == ">="):
            return Check(name, False, f"{version}, expected {bounds.strip()}", advice)
    return Check(name, True, version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
