"""`kvtier dash --web` in a real browser: Chromium opens the page, and keys play the replay and edit the filter.

The browser is driven through its DevTools protocol; what is on the screen is read from what the page is sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import python_environment

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 60

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@contextmanager
def running(command: list[str], **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program with all that it starts, which is gone in the end."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=python_environment(env),
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def until(look: Callable[[], Any]) -> Any:
    """What `look` finds, which may take a while."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            found = look()
        except OSError:
            found = None
        if found is not None:
            return found
        assert time.monotonic() < end
        time.sleep(0.05)


class Page:
    """A page of the browser. `seen` is all that its terminal was sent, as text without control sequences."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.seen = ""
        self.answers: dict[int, Any] = {}

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": params}))
        while number not in self.answers:
            await self._listen()
        return dict(self.answers.pop(number))

    async def _listen(self) -> None:
        message = json.loads((await asyncio.wait_for(self._socket.receive(), SECONDS)).data)
        if "id" in message:
            self.answers[message["id"]] = message.get("result", message)
        elif message["method"] == "Network.webSocketFrameReceived":
            frame = message["params"]["response"]
            if frame["opcode"] == 2:
                sent = b64decode(frame["payloadData"]).decode("utf-8", "replace")
                self.seen += re.sub(r"\x1b\[[0-9;?>$]*[A-Za-z]", "", sent)

    async def wait_for(self, text: str) -> None:
        """Until the text was drawn since the last wait."""
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} was not drawn: {self.seen[-2000:]!r}"
            await self._listen()
        self.seen = ""

    async def type(self, text: str) -> None:
        for letter in text:
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)

    async def press(self, key: str, code: int, text: str = "") -> None:
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **named)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_a_browser_plays_and_filters(tmp_path: Path) -> None:
    aiohttp = pytest.importorskip("aiohttp", reason="textual-serve is not installed")
    port, profile = free_port(), tmp_path / "profile"
    serve = [sys.executable, "-m", "kvtier_cli", "dash", "--tiers", "all", "--web", "--port", str(port)]
    url = f"http://127.0.0.1:{port}/"
    browse = [
        CHROMIUM or "", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--window-size=1300,800", f"--user-data-dir={profile}", "--remote-debugging-port=0",
        "about:blank",
    ]  # fmt: skip

    async def steps() -> None:
        debugging = until(lambda: _debugging_port(profile))
        with urllib.request.urlopen(f"http://127.0.0.1:{debugging}/json/list", timeout=10) as answer:
            target = next(each for each in json.load(answer) if each["type"] == "page")
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as connection,
        ):
            page = Page(connection)
            await page.ask("Network.enable")
            await page.ask("Page.enable")
            await page.ask("Page.navigate", url=url)
            await page.wait_for("38 of 40")
            await page.ask("Runtime.evaluate", expression="document.querySelector('.xterm-helper-textarea').focus()")
            await page.type(" ")
            await page.wait_for("Request r286")
            await page.type(" ")
            await page.wait_for("paused")
            await page.type(":")
            await page.wait_for("go to")
            await page.type("284")
            await page.press("Enter", 13, "\r")
            await page.wait_for("38 of 40")
            await page.type("f")
            await page.wait_for("replay from the start")
            for _ in "all":
                await page.press("Backspace", 8)
            await page.wait_for("there is no filter")
            await page.type("storage:local")
            await page.wait_for("SKIPPED")
            await page.press("Enter", 13, "\r")
            await page.wait_for("The filter skipped s3")
            picture = b64decode((await page.ask("Page.captureScreenshot"))["data"])
            assert picture.startswith(b"\x89PNG")
            assert len(picture) > 20_000  # an empty page has some 5,000
            await page.ask("Browser.close")

    with running(serve):
        until(lambda: urllib.request.urlopen(url, timeout=5).status)
        with running(browse):
            asyncio.run(asyncio.wait_for(steps(), 2 * SECONDS))


def _debugging_port(profile: Path) -> int | None:
    file = profile / "DevToolsActivePort"
    return int(file.read_text().split("\n")[0]) if file.exists() and "\n" in file.read_text() else None
