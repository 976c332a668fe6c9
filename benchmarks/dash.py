"""The dashboard in a terminal of 200 by 60: the first picture, keys until they are drawn, and the replay behind it.

python -m benchmarks.dash [--trace FILE | --blocks N] [--keys N] [--json]

Without a trace one of a million references is made: requests of 25 blocks, ten of them seen before. The replay behind
the screen is measured in seconds on a processor, those of the screen included, against the same replay without one: the
clock says little on a machine that does other work, and one interpreter lock lets only one of both run anyway.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
ROWS, COLUMNS = 60, 200
CHILD = "--child"


def make_trace(path: Path, blocks: int) -> None:
    """A trace of that many references."""
    with path.open("w", encoding="utf-8") as file:
        new = 0
        for request in range(blocks // 25):
            first = (request * 7919) % max(request, 1) * 15
            ids = [*range(first, first + 10), *range(new, new + 15)] if request > 100 else list(range(new, new + 25))
            new += 15
            file.write(json.dumps({"timestamp": request, "input_length": 25 * 512, "hash_ids": ids}) + "\n")


def child(out: Path, trace: str) -> None:
    """The dashboard, telling in `out` how many seconds on a processor its replay took."""
    from kvtier_cli.render.console import Output
    from tui.run import run_dashboard
    from tui.session import session as module
    from tui.session.opening import Asked

    turn = module.Session.turn
    started: list[float] = []

    def timed(self: module.Session) -> bool:
        if not started:
            started.append(time.process_time())
        more = turn(self)
        if not more and self.snapshot.is_total and not out.exists():
            out.write_text(json.dumps({"seconds": time.process_time() - started[0]}))
        return more

    module.Session.turn = timed  # type: ignore[method-assign]
    run_dashboard(Asked(trace), Output(color=True))


def headless(trace: str) -> float:
    """Seconds on a processor of the same replay without a dashboard."""
    import gc

    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import BUILT_IN
    from kvtier_cli.traces.source import TraceSource

    gc.disable()
    started = time.process_time()
    with TraceSource(trace) as source:
        TraceRun([source], BUILT_IN).run()
    return time.process_time() - started


class Terminal:
    """A terminal with the dashboard in it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(CHECKOUT)}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)

    def until(self, text: str, seconds: float = 120.0) -> float:
        """Seconds until `text` was drawn."""
        started, seen = time.perf_counter(), b""
        while text.encode() not in seen:
            if time.perf_counter() - started > seconds:
                raise TimeoutError(f"{text!r} was not drawn")
            if select.select([self._ours], [], [], 1.0)[0]:
                seen = seen[-256:] + os.read(self._ours, 1 << 20)
        return time.perf_counter() - started

    def key(self, key: str, text: str) -> float:
        """Milliseconds from a key to the drawing of `text`."""
        os.write(self._ours, key.encode())
        return 1e3 * self.until(text)

    def drain(self, seconds: float) -> None:
        """Read what is drawn for that long."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if select.select([self._ours], [], [], 0.05)[0]:
                os.read(self._ours, 1 << 20)


def measure(trace: str, keys: int) -> dict[str, float]:
    """The figures."""
    found: dict[str, float] = {"headless_seconds": headless(trace)}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "replayed.json"
        started = time.perf_counter()
        terminal = Terminal([sys.executable, "-m", "benchmarks.dash", CHILD, str(out), trace])
        terminal.until("Request r0")
        found["first_picture_seconds"] = time.perf_counter() - started
        while not out.exists():
            terminal.drain(0.2)
        found["replayed_seconds"] = json.loads(out.read_text())["seconds"]
        terminal.drain(1.0)
        times = []
        for number in range(1, keys + 1):
            times.append(terminal.key("]", f"Request r{number}"))
            terminal.drain(0.05)
        found["key_median_ms"] = statistics.median(times)
        found["key_p95_ms"] = statistics.quantiles(times, n=20)[18]
        terminal.process.terminate()
        terminal.process.wait()
    found["speed_behind"] = found["headless_seconds"] / found["replayed_seconds"]
    return found


def main(arguments: Sequence[str]) -> int:
    """Measures and prints."""
    if arguments[:1] == [CHILD]:
        child(Path(arguments[1]), arguments[2])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trace", default=None)
    parser.add_argument("--blocks", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        trace = given.trace or str(Path(folder) / "made.jsonl")
        if given.trace is None:
            make_trace(Path(trace), given.blocks)
        found = measure(trace, given.keys)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:24}{value:10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
