"""What the documentation shows is what the program prints: each console block is run as it is written.

A block starts with ```console; a line `$ kvtier …` (with `\\` at its end it goes on) is run at 80 columns in a folder
that has all that the checkout has, and keeps what a page's commands write; the lines up to the next `$` or the block's
end are all that it prints. KVTIER_UPDATE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, UPDATE_GOLDEN, python_environment

PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (kvtier(?:.*\\\n)*.*)\n", re.MULTILINE)


def _print(command: str, folder: Path) -> str:
    """What a shell shows of a command: both streams, and the exit status where it is not 0."""
    beside = folder / "checkout"
    if not beside.exists():
        beside.mkdir()
        for path in CHECKOUT.iterdir():
            (beside / path.name).symlink_to(path)
    program = folder / "kvtier"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kvtier_cli.main "$@"\n')
    program.chmod(0o755)
    environment = python_environment({"COLUMNS": "80"})
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=beside,
        timeout=60,
        check=False,
    )
    status = f"(exit status {ran.returncode})\n" if ran.returncode else ""
    return ran.stdout.decode() + status


def _examples(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what is written below it."""
    starts = list(_COMMAND.finditer(block))
    ends = [match.start() for match in starts[1:]] + [len(block)]
    for match, end in zip(starts, ends, strict=True):
        yield match[1], block[match.end() : end]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_console_block_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text()

    def rewritten(block: re.Match[str]) -> str:
        shown = "".join(f"$ {command}\n{_print(command, tmp_path)}\n" for command, _ in _examples(block[1]))
        return f"```console\n{shown.rstrip()}\n```"

    if UPDATE_GOLDEN:
        page.write_text(_BLOCK.sub(rewritten, text))
        return
    for block in _BLOCK.finditer(text):
        for command, shown in _examples(block[1]):
            assert _print(command, tmp_path).rstrip() == shown.rstrip(), command


def test_the_readme_answers_questions_with_real_output() -> None:
    commands = [
        command for block in _BLOCK.finditer((CHECKOUT / "README.md").read_text()) for command, _ in _examples(block[1])
    ]
    for name in ("filter", "lookup", "replay"):
        assert any(command.startswith(f"kvtier {name} ") for command in commands)


def _library_examples() -> list[tuple[str, str]]:
    return [(page.name, example) for page in PAGES for example in _PYTHON.findall(page.read_text())]


@pytest.mark.parametrize(("page", "example"), _library_examples())
def test_the_library_examples_print_what_they_say(page: str, example: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        env=python_environment(),
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    told = re.findall(r"^(?:print\(.*\)  )?# (.*)$", example, re.MULTILINE)
    assert told, page
    assert (ran.stdout.splitlines(), ran.stderr) == (told, "")
