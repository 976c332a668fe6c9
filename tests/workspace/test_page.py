"""What docs/workspace.md shows is what the program prints, command after command in one new folder.

KVTIER_UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import CHECKOUT, UPDATE_GOLDEN, python_environment

PAGE = CHECKOUT / "docs" / "workspace.md"
_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def printed(command: str, folder: Path) -> str:
    """What a shell shows of a command: both streams."""
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=python_environment({"COLUMNS": "80", "PATH": f"{folder / 'bin'}:/usr/bin:/bin"}),
        cwd=folder,
        timeout=60,
        check=False,
    )
    return done.stdout.decode()


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    (tmp_path / "fixtures").symlink_to(CHECKOUT / "fixtures")
    program = tmp_path / "bin" / "kvtier"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kvtier_cli.main "$@"\n')
    program.chmod(0o755)

    def rewritten(block: re.Match[str]) -> str:
        shown = [f"$ {command}\n{printed(command, tmp_path)}" for command in _COMMAND.findall(block[1])]
        return "```text\n" + "\n".join(shown) + "```"

    text = PAGE.read_text()
    found = _BLOCK.sub(rewritten, text)
    if UPDATE_GOLDEN:
        PAGE.write_text(found)
    else:
        assert found == text
