"""The progress bar: on a terminal, for what takes a while, and nowhere else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.conftest import in_terminal, python_environment

WORK = """
import itertools, sys, types
from kvtier_cli.render import progress
from kvtier_cli.render.console import Output

clock = itertools.count(0.0, {step})  # seconds between two looks at the clock
progress.time = types.SimpleNamespace(monotonic=lambda: next(clock))
with progress.progress({total}, "reading [red]t\\x1b[0m.jsonl", {enabled}, unit={unit!r}, output={output}) as advance:
    for _ in range(10):
        advance(100_000)
print("result")
print("rich" in sys.modules)
"""


def code(
    *, step: float = 1.0, total: int | None = 1_000_000, enabled: bool = True, unit: str = "bytes", output: str = "None"
) -> list[str]:
    text = WORK.format(step=step, total=total, enabled=enabled, unit=unit, output=output)
    return [sys.executable, "-c", text]


def without_codes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_it_shows_how_far_how_fast_and_how_long_still() -> None:
    seen = without_codes(in_terminal(code(), {}))
    assert "reading [red]t\\x1b[0m.jsonl" in seen
    assert re.search(r"50% +0\.1 MB/s +\d:\d\d:\d\d +left", seen)


def test_without_a_known_end_it_shows_what_is_done_in_a_second() -> None:
    seen = without_codes(in_terminal(code(total=None, unit="requests"), {}))
    assert re.search(r"\d\d,\d\d\d requests/s", seen)
    assert "%" not in seen


def test_it_is_gone_when_the_work_is_done() -> None:
    last_erased = in_terminal(code(), {}).rpartition("\x1b[2K")[2]
    assert "reading" not in last_erased
    assert last_erased.endswith("result\r\nTrue\r\n")


def test_in_ascii_there_is_no_bar_but_all_figures() -> None:
    seen = without_codes(in_terminal(code(output="Output(unicode=False)"), {}))
    assert seen.isascii()
    assert "50%" in seen


@pytest.mark.parametrize("command", [code(step=0.001), code(enabled=False)], ids=["quick", "switched-off"])
def test_what_is_quick_or_switched_off_shows_nothing_and_loads_nothing(command: list[str]) -> None:
    assert in_terminal(command, {}) == "result\r\nFalse\r\n"


def test_a_pipe_never_gets_one() -> None:
    done = subprocess.run(code(), capture_output=True, env=python_environment(), check=True)
    assert (done.stdout, done.stderr) == (b"result\nFalse\n", b"")
