"""The dashboard in a real terminal, with real keys: tmux holds the terminal and tells what is on it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, python_environment

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

SECONDS = 60


class Tmux:
    """A tmux server of its own, which is gone when the test is."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self._folder = folder

    def run(self, *words: str) -> str:
        env = {**os.environ, "LANG": "C.UTF-8", "TMUX": ""}
        done = subprocess.run(
            ["tmux", "-u", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, env=env, timeout=30, check=False,
        )  # fmt: skip
        return done.stdout

    def start(self, *args: str, size: tuple[int, int], env: dict[str, str]) -> None:
        """`kvtier dash ARGS` in a terminal of that size; how it ended stays to be seen."""
        home = {"HOME": str(self._folder), "XDG_CONFIG_HOME": str(self._folder)}
        python = python_environment()["PYTHONPATH"]
        settings = [f"{name}={value}" for name, value in {"PYTHONPATH": python, **home, **env}.items()]
        command = ["env", *settings, sys.executable, "-m", "kvtier_cli", "dash", *args]
        line = f"{shlex.join(command)}; echo ended with $?; exec sleep 600"
        place = ["-x", str(size[0]), "-y", str(size[1]), "-c", str(self._folder)]
        self.run("new-session", "-d", "-s", "dash", *place, "sh", "-c", line)

    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "dash")

    def keys(self, *names: str) -> None:
        self.run("send-keys", "-t", "dash", *names)

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "dash", "-l", text)

    def wait_for(self, *texts: str, without: str = "\0") -> str:
        """Until all of the texts are on the screen, and `without` is not."""
        end = time.monotonic() + SECONDS
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and without not in screen:
                return screen
            assert time.monotonic() < end, f"{texts} did not come, or {without!r} stayed:\n{screen}"
            time.sleep(0.05)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    try:
        yield server
    finally:
        server.run("kill-server")


def test_from_the_demo_to_a_fixture_of_what_was_found(tmux: Tmux, tmp_path: Path) -> None:
    tmux.start("--tiers", "all", size=(80, 24), env={})
    tmux.wait_for("Request r284", "admitted", "38 of 40 served")
    tmux.keys("Space")
    tmux.wait_for("request 286/299")
    tmux.keys("Space")
    tmux.wait_for("paused")
    tmux.type(":")
    tmux.wait_for("go to")
    tmux.type("284")
    tmux.keys("Enter")
    tmux.wait_for("Request r284", "pass 2/2")
    tmux.type(",")
    tmux.wait_for("Request r284", "pass 1/2")
    tmux.type("f")
    tmux.wait_for("replay from the start")
    tmux.keys("C-u")
    tmux.wait_for("there is no filter")
    tmux.type("storage:local")
    tmux.wait_for("s3", "→SKIPPED")
    tmux.keys("Enter")
    tmux.wait_for("The filter skipped s3 at block 13, and s3 holds it.", "its locality REMOTE matches no entry")
    tmux.type("c")
    tmux.wait_for("compare with")
    tmux.keys("C-u")
    tmux.wait_for(" compare with\n")
    tmux.type("all")
    tmux.keys("Enter")
    tmux.wait_for("82 of 299 requests differ", "both replayed")
    tmux.keys("Escape")
    tmux.wait_for("Block 13: why it was not served")
    tmux.type("w")
    tmux.wait_for("write to", "r284.yaml")
    tmux.keys("Enter")
    tmux.wait_for("Written: r284.yaml")
    tmux.type("q")
    tmux.wait_for("ended with 0")
    assert "kv_load_tiers" in (tmp_path / "r284.yaml").read_text(encoding="utf-8")
    replayed = subprocess.run(
        [sys.executable, "-m", "kvtier_cli", "replay", str(tmp_path / "r284.yaml")],
        env=python_environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert replayed.returncode == 0


def test_a_terminal_that_shrinks_grows_and_knows_no_unicode(tmux: Tmux) -> None:
    """In the C locale, without colour, on a trace that ends in a bad line."""
    chat = (CHECKOUT / "fixtures" / "chat.jsonl").read_text().splitlines()[:40]
    broken = Path(tmux._folder) / "broken.jsonl"
    broken.write_text("\n".join([*chat, '{"hash_ids": "[red]\\u001b[31m"}']))
    tmux.start("broken.jsonl", size=(40, 12), env={"LC_ALL": "C", "PYTHONUTF8": "0", "NO_COLOR": "1"})
    screen = tmux.wait_for("broken.jsonl:41")
    assert screen.isascii()
    tmux.keys("Escape")
    screen = tmux.wait_for("Request r0", without="broken.jsonl:41")
    assert screen.isascii()
    tmux.type("+ ")
    tmux.wait_for("Request r3")
    tmux.run("resize-window", "-t", "dash", "-x", "20", "-y", "4")
    tmux.wait_for("too small")
    tmux.run("resize-window", "-t", "dash", "-x", "120", "-y", "40")
    screen = tmux.wait_for("Events", "request 39/", "paused", without="too small")
    assert screen.isascii()
    colours = {int(found) for found in re.findall(r"[34]8;5;(\d+)", tmux.run("capture-pane", "-e", "-p", "-t", "dash"))}
    assert min(colours) >= 232  # greys
    tmux.type("q")
    tmux.wait_for("ended with 0")
