"""The dashboard in a terminal of 200 by 60: the first picture, keys until they are drawn, and the replay behind it.

python -m benchmarks.dash [--trace FILE | --blocks N] [--keys N] [--json]

Without a trace one of a million references is made: requests of 25 blocks, ten of them seen before. The peers, in the
same run: a Textual application that shows a number which a key counts up, and the same replay without a screen. The
replay behind the screen is measured twice, without keys, by the clock and in seconds on a processor, those of the
screen included; the clock says little on a machine that does other work. Keys are measured while it runs and after it.
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
from collections.abc import Callable, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
ROWS, COLUMNS = 60, 200
CHILD = "--child"
SEEKS = 40

NOTHING = """
from textual.app import App
from textual.widgets import Static
class Counter(App):
    count = 0
    def compose(self):
        yield Static("count 0.")
    def on_key(self):
        self.count += 1
        self.query_one(Static).update(f"count {self.count}.")
Counter().run()
"""
"""The peer."""


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
    """The dashboard, telling in `out` how many seconds its replay took."""
    from kvtier_cli.render.console import Output
    from tui.run import run_dashboard
    from tui.session import session as module
    from tui.session.opening import Asked

    turn = module.Session.turn
    started: list[tuple[float, float]] = []

    def timed(self: module.Session) -> bool:
        if self.snapshot.moment is not None and not started:  # the first picture is another figure
            started.append((time.perf_counter(), time.process_time()))
        more = turn(self)
        if not more and self.snapshot.is_total and not out.exists():
            clock, processor = started[0]
            took = {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}
            part = out.with_suffix(".part")
            part.write_text(json.dumps(took))
            part.rename(out)
        return more

    module.Session.turn = timed  # type: ignore[method-assign]
    run_dashboard(Asked(trace), Output(color=True))


def headless(trace: str) -> dict[str, float]:
    """Seconds of the same replay without a dashboard."""
    import gc

    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import BUILT_IN
    from kvtier_cli.traces.source import TraceSource

    gc.disable()
    clock, processor = time.perf_counter(), time.process_time()
    with TraceSource(trace) as source:
        TraceRun([source], BUILT_IN).run()
    return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}


def seeks(trace: str) -> list[float]:
    """Milliseconds from an order to go to a request, in a trace that is replayed, until its story is there."""
    import gc
    import random

    from tui.session.opening import Asked, open_asked
    from tui.session.session import Session

    gc.disable()
    session = Session(open_asked(Asked(trace)).show)
    total = session.run_until_idle().total
    gc.freeze()  # as the dashboard does
    gc.enable()
    places, times = random.Random(1), []
    for _ in range(SEEKS):
        session.seek(places.randrange(total))
        started = time.perf_counter()
        session.turn()
        while session.snapshot.moment is None or session.snapshot.moment.index != session.snapshot.cursor:
            session.turn()
        times.append(1e3 * (time.perf_counter() - started))
    return times


def in_a_process(work: Callable[[str], object], trace: str) -> str:
    """What `work` comes to in a process of its own, as JSON."""
    name = work.__name__
    code = f"import json, sys; from benchmarks.dash import {name}; print(json.dumps({name}(sys.argv[1])))"
    command = [sys.executable, "-c", code, trace]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT).stdout


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

    def keys(self, key: str, text: str, count: int, first: int = 1) -> list[float]:
        """Milliseconds of each of so many keys, which draw `text` with a number from `first` on."""
        times = []
        for number in range(first, first + count):
            times.append(self.key(key, f"{text}{number}"))
            self.drain(0.05)
        return times

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self._ours)

    def drain(self, seconds: float) -> None:
        """Read what is drawn for that long."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if select.select([self._ours], [], [], 0.05)[0]:
                os.read(self._ours, 1 << 20)


def measure(trace: str, keys: int) -> dict[str, float]:
    """The figures."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        _measure_peer(found, keys)
        alone = json.loads(in_a_process(headless, trace))
        for keyed in (False, True):
            out = Path(folder) / f"replayed-{keyed}.json"
            started = time.perf_counter()
            terminal = Terminal([sys.executable, "-m", "benchmarks.dash", CHILD, str(out), trace])
            terminal.until("Request r0")
            first = time.perf_counter() - started
            found["first_picture_seconds"] = min(first, found.get("first_picture_seconds", first))
            during: list[float] = []
            while not out.exists():
                if keyed:
                    during += terminal.keys("]", "Request r", 1, len(during) + 1)
                else:
                    terminal.drain(0.1)
            if keyed:
                _add_times(found, "key_while_replaying", during)
                terminal.drain(0.5)
                _add_times(found, "key_after", terminal.keys("]", "Request r", keys, len(during) + 1))
            else:
                for name, seconds in json.loads(out.read_text()).items():
                    found[f"headless_{name}_seconds"] = alone[name]
                    found[f"replayed_{name}_seconds"] = seconds
                    found[f"speed_behind_{name}"] = alone[name] / seconds
            terminal.end()
        _add_times(found, "seek", json.loads(in_a_process(seeks, trace)))
    return found


def _measure_peer(found: dict[str, float], keys: int) -> None:
    started = time.perf_counter()
    peer = Terminal([sys.executable, "-c", NOTHING])
    peer.until("count 0.")
    found["peer_first_picture_seconds"] = time.perf_counter() - started
    peer.drain(0.5)
    _add_times(found, "peer_key", [peer.key("]", f"count {number}.") for number in range(1, keys + 1)])
    peer.end()


def _add_times(found: dict[str, float], name: str, times: Sequence[float]) -> None:
    found[f"{name}_median_ms"] = statistics.median(times)
    found[f"{name}_p95_ms"] = statistics.quantiles(times, n=20)[18] if len(times) > 1 else times[0]
    found[f"{name}_count"] = len(times)


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
            print(f"{name:28}{value:10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
