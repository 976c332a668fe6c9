"""The embedded manager as a library: its public names, and what importing them costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_cli import tiering
from tests.conftest import python_environment


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=python_environment()
    )
    return done.stdout


@pytest.mark.parametrize("name", tiering.__all__)
def test_every_public_name_can_be_imported_and_tells_what_it_is(name: str) -> None:
    value = getattr(tiering, name)
    assert getattr(value, "__module__", "kvtier_cli.tiering").startswith(
        ("kvtier_cli.tiering", "typing", "collections")
    )


def test_the_public_names_are_sorted_and_stand_once() -> None:
    assert tiering.__all__ == sorted(set(tiering.__all__))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(tiering.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(guarded.test) == "TYPE_CHECKING"
    seen = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(tiering.__all__)


def test_a_star_import_gives_them_all() -> None:
    assert fresh("from kvtier_cli.tiering import *; print(TieringManager.__name__, BUILT_IN.name)") == (
        "TieringManager built-in topology\n"
    )


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module .* has no attribute 'Manager'"):
        tiering.Manager  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Manager'"):
        from kvtier_cli.tiering import Manager  # noqa: F401


def loaded_by(code: str) -> list[str]:
    listing = (
        "import json, sys; print(json.dumps([name for name in sys.modules if name.startswith('kvtier_cli.tier')]))"
    )
    return list(json.loads(fresh(f"{code}; {listing}")))


def test_importing_the_package_imports_none_of_its_modules() -> None:
    assert loaded_by("import kvtier_cli.tiering") == ["kvtier_cli.tiering"]


def test_a_name_imports_only_what_it_needs() -> None:
    assert loaded_by("from kvtier_cli.tiering import Medium") == ["kvtier_cli.tiering", "kvtier_cli.tiering.model"]
    manager = loaded_by("from kvtier_cli.tiering import TieringManager")
    assert not {name for name in manager if name.endswith(("_file", "_shape", "_write", ".disk"))}


def test_the_example_in_the_packages_docstring_runs_as_written() -> None:
    assert tiering.__doc__ is not None
    example = [line[4:] for line in tiering.__doc__.splitlines() if line.startswith("    ")]
    *setup, last = "\n".join(example).splitlines()
    call, _, answer = last.partition("#")
    code = "\n".join([*setup, f"print({call.strip()})"])
    assert fresh(code).strip() == answer.strip()
