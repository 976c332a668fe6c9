"""`kvtier` as a process ends with its status, and leaves nothing unsaid."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import python_environment

SAYS_GOODBYE = """
import atexit, sys
import kvtier_cli.main
main = kvtier_cli.main.main
def with_more_to_say():
    atexit.register(lambda: sys.stdout.write("goodbye"))
    return main(sys.argv[1:])
kvtier_cli.main.main = with_more_to_say
sys.exit(kvtier_cli.main.program())
"""


@pytest.mark.parametrize(
    ("args", "status"),
    [(["--version"], 0), (["filter", "[{"], 2), (["filter", '[{"medium":"nvme"}]', "--strict"], 1), ([], 0)],
)
def test_whoever_wants_to_hear_of_the_exit_does(args: list[str], status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAYS_GOODBYE, *args],
        capture_output=True,
        text=True,
        env=python_environment(),
        check=False,
    )
    assert done.returncode == status
    assert done.stdout.endswith("goodbye")
    assert ("error:" in done.stderr) == (status == 2)
