"""Which third-party packages a layer may import, and what commands do not load. Our own layers: see import-linter."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_cli import main
from kvtier_cli.traces.formats import FORMATS
from tests.conftest import CHECKOUT, python_environment

MODULES = sorted(module for package in ("kvtier_cli", "tui") for module in (CHECKOUT / package).rglob("*.py"))

ALLOWED: dict[str, set[str]] = {
    "kvtier_cli": {"msgspec"},
    "kvtier_cli/tiering": {"msgspec", "yaml"},
    "kvtier_cli/tiering/policies": set(),
    "kvtier_cli/tiering/stores": {"diskcache"},
    "kvtier_cli/tiering/vllm": set(),
    "kvtier_cli/traces": {"msgspec", "yaml", "zstandard", "pyarrow", "numpy"},
    "kvtier_cli/replay": {"msgspec", "yaml", "numpy", "pyarrow"},
    "kvtier_cli/analysis": {"numpy", "distributed", "dask"},
    "kvtier_cli/live": {"msgspec", "zmq"},
    "kvtier_cli/workspace": {"msgspec", "platformdirs"},
    "kvtier_cli/render": {"rich", "msgspec"},
    "kvtier_cli/commands": {"typer", "textual_serve"},  # dash looks whether it is there
    "tui": {"rich", "textual", "textual_serve", "platformdirs"},
    "tui/session": {"numpy"},
    "tui/widgets": {"rich", "textual"},
    "tui/screens": {"rich", "textual"},
}
"""Folder → packages that its modules may import, inside functions too. Only `stores/disk.py` may have diskcache."""

STARTS_WITHOUT = {"rich", "numpy", "textual", "diskcache", "zmq", "dask", "distributed", "pyarrow", "pydantic"}


RUN = "import sys; from kvtier_cli.main import main; sys.exit(main())"
"""As the installed script does it; `-m` would load modules of its own."""


def imported_packages(source: str) -> set[str]:
    """The top-level names of what a module imports absolutely, anywhere in it but for type checkers only."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def third_party(names: set[str]) -> set[str]:
    return names - sys.stdlib_module_names - {"kvtier_cli", "tui"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_a_layer_imports_only_the_packages_it_is_for(module: Path) -> None:
    folder = module.parent.relative_to(CHECKOUT).as_posix()
    assert folder in ALLOWED, f"say in ALLOWED what {folder} may import"
    assert third_party(imported_packages(module.read_text(encoding="utf-8"))) <= ALLOWED[folder]


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not() -> None:
    source = "import os\ndef f():\n    import numpy.linalg\nif TYPE_CHECKING:\n    import rich\nfrom . import x\n"
    assert imported_packages(source) == {"os", "numpy"}


def modules_of(code: str, *args: str) -> set[str]:
    """The modules a Python has loaded when it is done with `code`, its streams being pipes."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *args],
        capture_output=True,
        text=True,
        env=python_environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr.splitlines()[-1]
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def loaded_by(*args: str) -> set[str]:
    """What `kvtier` with these arguments loads besides what every Python does."""
    return modules_of(RUN, *args) - modules_of("pass")


def test_version_loads_nothing_but_the_entry_point() -> None:
    assert loaded_by("--version") == {"__future__", "kvtier_cli", "kvtier_cli.main"}


def test_help_loads_no_command() -> None:
    loaded = loaded_by("--help")
    assert loaded & {module for module, _ in main.COMMANDS.values()} == set()
    assert loaded & (STARTS_WITHOUT | {"yaml", "msgspec"}) == set()


@pytest.mark.parametrize("args", [["filter", "storage:local,cpu"], ["filter", '[{"medum":"storage"}]', "--json"]])
def test_filter_into_a_pipe_loads_only_what_it_needs(args: list[str]) -> None:
    assert loaded_by(*args) & (STARTS_WITHOUT | {"yaml"}) == set()


def test_a_replay_needs_numpy_only_for_a_log_and_pyarrow_only_for_parquet(tmp_path: Path) -> None:
    replay = ["replay", str(CHECKOUT / "fixtures" / "chat.jsonl")]
    assert loaded_by(*replay) & (STARTS_WITHOUT | {"yaml"}) == set()
    assert loaded_by(*replay, "--log", str(tmp_path / "l.csv")) & {"numpy", "pyarrow", "rich"} == {"numpy"}


@pytest.mark.parametrize(
    "args", [["synth", "--requests", "3"], ["convert", str(CHECKOUT / "fixtures" / "chat.jsonl"), "-"]]
)
def test_traces_are_made_and_converted_with_nothing_heavy(args: list[str]) -> None:
    loaded = loaded_by(*args)
    assert loaded & (STARTS_WITHOUT | {"yaml", "zstandard", "gzip"}) == set()
    assert not any(module.startswith(("kvtier_cli.tiering.manager", "kvtier_cli.replay")) for module in loaded)


def test_telling_a_format_loads_no_reader() -> None:
    tell = "import sys; from kvtier_cli.traces.detect import *; from kvtier_cli.traces.source import TraceSource\n"
    tell += "with TraceSource(sys.argv[1]) as source: print(detect_format(source).name, file=sys.stderr)"
    readers = {f"kvtier_cli.traces.{form.reader.partition(':')[0]}" for form in FORMATS.values()}
    assert modules_of(tell, str(CHECKOUT / "fixtures" / "chat.jsonl")) & readers == set()


def test_topology_needs_yaml_only_for_yaml(tmp_path: Path) -> None:
    toml = tmp_path / "kvtier.toml"
    toml.write_text("version = 1\n")
    assert loaded_by("topology", "check", str(toml)) & (STARTS_WITHOUT | {"yaml"}) == set()


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    assert loaded_by(name, "--help") & (STARTS_WITHOUT | {"yaml"}) == set()
