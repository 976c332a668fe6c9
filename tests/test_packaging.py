"""What an installation brings: the package, its types, the fixtures; never the tests. And where fixtures are found."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from kvtier_cli import __version__, shipped
from kvtier_cli.errors import EnvironmentFault, InputError
from tests.conftest import CHECKOUT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", str(folder)]
    done = subprocess.run([*command, str(CHECKOUT)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kvtier installed from its wheel."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def python(installed: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs Python over the installation, far from the checkout."""
    env = {"PYTHONPATH": str(installed), "PATH": ""}
    command = [sys.executable, *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=installed, timeout=60, check=False)


def test_the_wheel_has_the_whole_package_and_every_fixture(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "kvtier_cli").rglob("*.py")}
    fixtures = {f"kvtier_cli/{path.relative_to(CHECKOUT).as_posix()}" for path in _fixture_files()}
    assert sources | fixtures | {"kvtier_cli/py.typed"} <= names


def _fixture_files() -> list[Path]:
    return [path for path in (CHECKOUT / "fixtures").rglob("*") if path.is_file()]


def test_the_wheel_has_neither_tests_nor_benchmarks(wheel: Path) -> None:
    folders = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert folders <= {"kvtier_cli", "tui", f"kvtier-{__version__}.dist-info"}


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = f"kvtier-{__version__}.dist-info"
    about = email.message_from_bytes(archive.read(f"{folder}/METADATA"))
    assert (about["Version"], about["License-Expression"]) == (__version__, "Apache-2.0")
    assert b"Apache License" in archive.read(f"{folder}/licenses/LICENSE")
    assert b"kvtier = kvtier_cli.main:program" in archive.read(f"{folder}/entry_points.txt")


def test_an_installation_finds_its_own_fixtures(installed: Path) -> None:
    code = "from kvtier_cli.shipped import shipped_fixture; print(shipped_fixture('README.md'))"
    done = python(installed, "-c", code)
    assert (done.stdout.strip(), done.stderr) == (str(installed / "kvtier_cli" / "fixtures" / "README.md"), "")


def test_an_installation_runs(installed: Path) -> None:
    assert python(installed, "-m", "kvtier_cli", "--version").stdout == f"kvtier {__version__}\n"
    done = python(installed, "-m", "kvtier_cli", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_checkout_finds_the_fixtures_beside_the_package() -> None:
    assert shipped.shipped_fixture("README.md") == CHECKOUT / "fixtures" / "README.md"


@pytest.mark.parametrize("name", ["READNE.md", "../pyproject.toml", "/etc/passwd", ".", ""])
def test_what_is_not_shipped_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is shipped"):
        shipped.shipped_fixture(name)


def test_the_nearest_shipped_name_is_told() -> None:
    with pytest.raises(InputError, match=re.escape('Did you mean "README.md"?')):
        shipped.shipped_fixture("READNE.md")


def test_missing_fixtures_are_a_fault_of_the_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "kvtier_cli")
    (tmp_path / "fixtures").mkdir()  # somebody else's: no checkout of kvtier around it
    with pytest.raises(EnvironmentFault, match="missing"):
        shipped.shipped_folder()


def test_the_oldest_python_is_said_alike_everywhere() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["requires-python"] == ">=3.11"
    assert project["tool"]["ruff"]["target-version"] == "py311"
    assert project["tool"]["mypy"]["python_version"] == "3.11"
    assert "sys.version_info < (3, 11)" in (CHECKOUT / "Makefile").read_text(encoding="utf-8")
