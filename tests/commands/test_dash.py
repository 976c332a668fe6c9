"""`kvtier dash` from a shell: what it needs, what it says where it cannot run, and that it runs in a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, RunsKvtier, python_environment

CHAT = str(CHECKOUT / "fixtures" / "chat.jsonl")


def test_without_a_terminal_it_names_the_commands_to_use_instead(kvtier: RunsKvtier) -> None:
    ran = kvtier("dash", CHAT)
    assert (ran.status, ran.stdout) == (3, "")
    assert "needs a terminal" in ran.stderr
    assert "kvtier replay FILE" in ran.stderr


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["--theme", "lihgt"], 2, 'did you mean "light"?'),
        (["-", "--tiers", "-"], 2, "both come from stdin"),
        (["-", "--web"], 2, "cannot read a trace from stdin"),
        (["--port", "0"], 2, "port"),
        (["t", "--format", "moncake"], 2, 'Did you mean "mooncake"?'),
    ],
)
def test_a_wrong_command_line_is_said(kvtier: RunsKvtier, args: list[str], status: int, said: str) -> None:
    ran = kvtier("dash", *args)
    assert ran.status == status
    assert said in ran.stderr


def test_a_dumb_terminal_is_none(tmp_path: Path) -> None:
    terminal = Terminal(home=tmp_path, term="dumb")
    assert terminal.status() == 3
    assert b"this one is dumb" in terminal.seen


class Terminal:
    """A terminal with `kvtier dash` in it."""

    def __init__(self, *args: str, stdin: Path | None = None, home: Path, term: str = "xterm-256color") -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        env = python_environment({"TERM": term, "HOME": str(home), "XDG_CONFIG_HOME": str(home)})
        command = [sys.executable, "-m", "kvtier_cli.main", "dash", *args]
        given = theirs if stdin is None else os.open(stdin, os.O_RDONLY)
        self.process = subprocess.Popen(
            command,
            stdin=given,
            stdout=theirs,
            stderr=theirs,
            env=env,
            cwd=home,
            start_new_session=True,
            preexec_fn=lambda: _take_terminal(theirs),  # noqa: PLW1509 - the tests have no threads
        )
        os.close(theirs)
        if stdin is not None:
            os.close(given)
        self.seen = b""

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Read until `text` was drawn."""
        end = time.monotonic() + seconds
        while text.encode() not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} was not drawn in {seconds} s: {self.seen[-2000:]!r}"
            if not select.select([self._ours], [], [], left)[0]:
                continue
            try:
                self.seen += os.read(self._ours, 65536)
            except OSError:
                break

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def status(self) -> int:
        """How it ended; what it still draws is read, so that it can."""
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._ours, 65536)
                except OSError:
                    break
        status = self.process.wait(timeout=30)
        os.close(self._ours)
        return status


def _take_terminal(descriptor: int) -> None:
    """Makes the terminal that of the new session, as a shell's is: /dev/tty is it."""
    import fcntl

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def test_in_a_terminal_it_opens_on_the_demo_and_quits(tmp_path: Path) -> None:
    terminal = Terminal(home=tmp_path)
    terminal.wait_for("The filter skipped s3 at block 13")
    terminal.type("q")
    assert terminal.status() == 0


def test_a_trace_from_stdin_leaves_the_keys_to_the_terminal(tmp_path: Path) -> None:
    terminal = Terminal("-", stdin=Path(CHAT), home=tmp_path)
    terminal.wait_for("r0")
    terminal.type("]")
    terminal.wait_for("Request r1")
    terminal.type("q")
    assert terminal.status() == 0


def test_what_cannot_be_opened_leaves_the_terminal_alone(tmp_path: Path) -> None:
    terminal = Terminal("nothing.jsonl", home=tmp_path)
    assert terminal.status() == 2
    assert b"no such file" in terminal.seen
    assert b"\x1b[?1049h" not in terminal.seen


def test_a_browser_gets_it_from_the_loopback(tmp_path: Path) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "kvtier_cli.main", "dash", CHAT, "--web", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=python_environment())
    try:
        end = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
                    assert page.status == 200
                    assert b"kvtier dash" in page.read()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.1)
    finally:
        process.terminate()
        process.wait(timeout=30)
