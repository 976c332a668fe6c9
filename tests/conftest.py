"""What all tests share: a clean environment, hypothesis profiles, the command line as users run it, the recordings."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
UPDATE_GOLDEN = os.environ.get("KVTIER_UPDATE_GOLDEN", "") not in ("", "0")
RECORDINGS = Path(os.environ.get("KVTIER_RECORDINGS") or CHECKOUT.parent / "shared" / "conformance")

_OURS = ("KVTIER_UPDATE_GOLDEN", "KVTIER_RECORDINGS")
_FOREIGN = (
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
    "TERM",
    "LC_ALL",
    "LC_CTYPE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
)

hypothesis.settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None)
hypothesis.settings.register_profile("soak", max_examples=5_000, deadline=None)
hypothesis.settings.load_profile("ci")


def pytest_configure() -> None:
    """Takes away what the user's shell says about kvtier and terminals: tests state what they depend on."""
    for name in list(os.environ):
        if name in _OURS:  # read above, and again by each worker of xdist
            continue
        if name.startswith(("KVTIER_", "_KVTIER", "TYPER_")) or name in _FOREIGN:
            del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"


@dataclass(frozen=True)
class Ran:
    """What a finished `kvtier` left behind."""

    stdout: str
    stderr: str
    status: int


class RunsKvtier(Protocol):
    """`kvtier("filter", "cpu")` runs that command line in a process of its own, with pipes for streams."""

    def __call__(
        self,
        *args: str,
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ran: ...


def python_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a Python that can import this checkout, with `env` on top."""
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})}


def _runs(module: str) -> RunsKvtier:
    def run(*args: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", module, *args],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=python_environment(env),
            cwd=cwd,
            timeout=120,
            check=False,
        )
        return Ran(done.stdout.decode(), done.stderr.decode(), done.returncode)

    return run


@pytest.fixture(scope="session")
def kvtier() -> RunsKvtier:
    """Runs `kvtier`."""
    return _runs("kvtier_cli.main")


@pytest.fixture(scope="session")
def probe() -> RunsKvtier:
    """Runs `kvtier` with the commands of `tests/probes` in the place of its own."""
    return _runs("tests.probes")


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of everything recorded from vLLM's manager; the project's own copy of a part needs no fixture."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no recordings in {RECORDINGS}; name their folder with KVTIER_RECORDINGS")
    return RECORDINGS


def in_terminal(command: Sequence[str], env: Mapping[str, str], *, columns: int = 80) -> str:
    """What a terminal of that width gets to see of a command whose streams are all connected to it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=python_environment({"TERM": "xterm", **env})
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    child.wait(timeout=60)
    return seen.decode()
