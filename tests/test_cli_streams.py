"""What reaches stdout, stderr and a terminal, whatever state they are in: order, colour, closed pipes, full disks."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_cli.errors import ExitStatus
from tests.conftest import Ran, RunsKvtier, in_terminal, python_environment

ESC = "\x1b"
FULL = b"error: reading or writing failed: no space left on device\n"
PROBES = (sys.executable, "-m", "tests.probes")


def test_results_come_before_warnings_where_both_streams_are_one() -> None:
    done = subprocess.run(
        [*PROBES, "probe", "result-then-remarks"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=python_environment(),
        check=False,
    )
    assert done.stdout.decode() == "result\nnote: a note\nwarning: a warning\n"


def test_quiet_keeps_the_result_and_the_warning(probe: RunsKvtier) -> None:
    assert probe("probe", "result-then-remarks", "-q") == Ran("result\n", "warning: a warning\n", 0)


def test_a_reader_that_stops_early_is_no_error() -> None:
    child = _start("flood")
    assert child.stdout is not None
    assert child.stdout.readline().startswith(b"a line")
    child.stdout.close()
    assert child.stderr is not None
    assert (child.stderr.read(), child.wait(timeout=60)) == (b"", ExitStatus.DONE)
    child.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["probe", "show"], ["probe", "flood"], ["--version"], ["--help"]])
def test_a_full_disk_behind_stdout_is_told(args: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROBES, *args],
            stdout=full,
            stderr=subprocess.PIPE,
            env=python_environment(),
            check=False,
        )
    assert (done.stderr, done.returncode) == (FULL, ExitStatus.ENVIRONMENT)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_do_no_harm(closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" probe show {closed}', "sh", *PROBES],
        capture_output=True,
        env=python_environment(),
        check=False,
    )
    assert (done.stderr, done.returncode) == (b"", ExitStatus.DONE)


def test_text_that_the_terminal_cannot_encode_is_escaped(probe: RunsKvtier) -> None:
    assert probe("probe", "odd-text", env={"PYTHONIOENCODING": "ascii"}).stdout.startswith("\\u043a\\u043b")
    assert probe("probe", "odd-text").stdout == "ключ \\udc80 …\n"


def test_an_interrupt_ends_with_130_and_one_word() -> None:
    child = _start("wait")
    assert child.stdout is not None
    assert child.stdout.readline() == b"waiting\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (err, child.returncode) == (b"interrupted\n", ExitStatus.INTERRUPTED)


def _start(what: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROBES, "probe", what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=python_environment(),
    )


@pytest.mark.parametrize(
    ("args", "env", "coloured"),
    [
        ([], {"TERM": "xterm"}, True),
        (["--no-color"], {"TERM": "xterm"}, False),
        ([], {"TERM": "xterm", "NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
    ],
)
def test_errors_are_coloured_on_a_terminal_that_wants_it(args: list[str], env: dict[str, str], coloured: bool) -> None:
    output = in_terminal([*PROBES, "probe", "wrong-input", *args], env)
    assert output == (f"{ESC}[1;31merror:{ESC}[0m wrong\r\n" if coloured else "error: wrong\r\n")
