"""`kvtier load` into two tiers on disk against `diskcache.Cache` itself, on one disk, in one run.

    python -m benchmarks.workspace TRACE.jsonl [--payload 64] [--rounds 3] [--folder DIR] [--json]

kvtier's side is the whole process: start, reading the trace, every decision, both stores, the snapshot. The tiers have
no limit, so that each ends with all blocks of the trace. The peer puts the same blocks, under the same keys, with
payloads made beforehand, into two caches, 64 in each `transact`; starting Python and making the keys is not in its
time. It runs with diskcache's own settings (but for the size limit), and once more with those of kvtier's stores, which
need no index for evictions. The sides take turns, and who begins alternates. A rate is blocks put into a tier a second,
a ratio the median of each round's. The target is 0.8 of diskcache as it comes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import diskcache

from benchmarks.replay import TRACE
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.text_keys import TextKeys
from kvtier_cli.tiering.payload import payload_for
from kvtier_cli.tiering.stores.disk_database import SETTINGS
from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.workspace.found import make_workspace

BLOCKS_A_JOB = 64
TARGET = 0.8
CHECKOUT = Path(__file__).resolve().parents[1]
TIERS = tuple(replace(tier, capacity=None) for tier in BUILT_IN.tiers)

Side = Callable[[Path], float]


def keys_of(trace: str) -> list[str]:
    """The distinct blocks of a trace, in order of first sight, as a workspace names them."""
    table = BlockTable()
    with TraceSource(trace) as source:
        for request in read_trace(source):
            table.keys(request.hash_ids)
    return TextKeys(table).keys(range(len(table)))


def kvtier(trace: str, payload_bytes: int) -> Side:
    """Seconds that the process `kvtier load` takes."""

    def run(folder: Path) -> float:
        make_workspace(folder, replace(BUILT_IN, tiers=TIERS))
        command = [sys.executable, "-m", "kvtier_cli.main", "load", trace, "--json"]
        command += ["--workspace", str(folder), "--payload", str(payload_bytes)]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment())
        return time.perf_counter() - start

    return run


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT)}


def peer(keys: Sequence[str], payload_bytes: int, **settings: Any) -> Side:
    """Seconds that two `diskcache.Cache` with these settings take."""
    payloads = [payload_for(key, payload_bytes) for key in keys]

    def run(folder: Path) -> float:
        start = time.perf_counter()
        for tier in TIERS:
            with diskcache.Cache(folder / tier.name, **settings) as cache:
                for first in range(0, len(keys), BLOCKS_A_JOB):
                    with cache.transact():
                        for index in range(first, min(first + BLOCKS_A_JOB, len(keys))):
                            cache.set(keys[index], payloads[index])
        return time.perf_counter() - start

    return run


def measure(trace: str, payload_bytes: int, rounds: int, folder: Path | None) -> dict[str, Any]:
    """Runs all sides `rounds` times."""
    keys = keys_of(trace)
    sides: dict[str, Side] = {
        "kvtier load": kvtier(trace, payload_bytes),
        "diskcache": peer(keys, payload_bytes, size_limit=SETTINGS["size_limit"]),
        "diskcache, settings of the stores": peer(keys, payload_bytes, **SETTINGS),
    }
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory(prefix="kvtier-bench-", dir=folder) as place:
        for number in range(rounds):
            order = list(sides) if number % 2 == 0 else list(sides)[::-1]
            for side in order:
                where = Path(place) / "stores"
                seconds[side].append(sides[side](where))
                shutil.rmtree(where)
    ours = seconds["kvtier load"]
    stored = len(keys) * len(TIERS)
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "trace": Path(trace).name,
        "blocks": stored,
        "payload_bytes": payload_bytes,
        "rounds": rounds,
        "seconds": {side: statistics.median(times) for side, times in seconds.items()},
        "blocks_a_second": {side: stored / statistics.median(times) for side, times in seconds.items()},
        "ratio": {
            side: statistics.median(their / our for our, their in zip(ours, times, strict=True))
            for side, times in seconds.items()
        },
        "target": TARGET,
    }


def main() -> int:
    """Prints both sides; 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", nargs="?", default=str(TRACE), help="Mooncake JSONL (default: %(default)s)")
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = measure(args.trace, args.payload, args.rounds, args.folder)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['machine']}; {found['blocks']:,} blocks of {found['payload_bytes']} bytes, {args.rounds} rounds")
        for side, rate in found["blocks_a_second"].items():
            ratio = "" if side == "kvtier load" else f"   kvtier load has {found['ratio'][side]:.2f} of it"
            print(f"  {side:34} {found['seconds'][side]:7.2f} s {rate:10,.0f} blocks/s{ratio}")
    return int(found["ratio"]["diskcache"] < TARGET)


if __name__ == "__main__":
    sys.exit(main())
