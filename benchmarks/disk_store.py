"""Storing blocks on disk: kvtier's `DiskStore` against `diskcache.Cache` itself, on one disk, in one run.

    python -m benchmarks.disk_store [--blocks 100000] [--payload 64] [--rounds 5] [--folder DIR] [--json]

Both sides store the same blocks, 64 a job, each job one transaction, into new folders beside each other; they take
turns, and who begins alternates. The peer stores payloads made beforehand, once with diskcache's own settings (but for
the size limit) and once with those of the store, which evicts nothing and needs no index for it. The store's time has
its payloads, checksums and order in it. A rate is blocks a second, the median of the rounds; a ratio is the median of
each round's ratio. The target is 0.8.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import diskcache

from kvtier_cli.tiering.payload import payload_for
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.tiering.stores.disk_database import SETTINGS

BLOCKS_A_JOB = 64
TARGET = 0.8

Side = Callable[[Path, Sequence[str], int], float]


def kvtier(folder: Path, names: Sequence[str], payload_bytes: int) -> float:
    """Seconds that a `DiskStore` takes, its closing included."""
    store = DiskStore(folder, payload_bytes=payload_bytes)
    start = time.perf_counter()
    for first in range(0, len(names), BLOCKS_A_JOB):
        store.write(names[first : first + BLOCKS_A_JOB])
    store.close()
    return time.perf_counter() - start


def peer(**settings: Any) -> Side:
    """A `diskcache.Cache` with these settings."""

    def run(folder: Path, names: Sequence[str], payload_bytes: int) -> float:
        cache = diskcache.Cache(folder, **settings)
        payloads = [payload_for(name, payload_bytes) for name in names]
        start = time.perf_counter()
        for first in range(0, len(names), BLOCKS_A_JOB):
            with cache.transact():
                for index in range(first, min(first + BLOCKS_A_JOB, len(names))):
                    cache.set(names[index], payloads[index])
        cache.close()
        return time.perf_counter() - start

    return run


SIDES: dict[str, Side] = {
    "kvtier": kvtier,
    "diskcache": peer(size_limit=SETTINGS["size_limit"]),
    "diskcache, settings of the store": peer(**SETTINGS),
}


def measure(blocks: int, payload_bytes: int, rounds: int, folder: Path | None) -> dict[str, Any]:
    """Runs all sides `rounds` times."""
    names = [hashlib.sha256(str(index).encode()).hexdigest() for index in range(blocks)]
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="kvtier-bench-", dir=folder) as place:
        for number in range(rounds):
            order = list(SIDES) if number % 2 == 0 else list(SIDES)[::-1]
            for side in order:
                where = Path(place) / "store"
                seconds[side].append(SIDES[side](where, names, payload_bytes))
                shutil.rmtree(where)
    ours = seconds["kvtier"]
    return {
        "blocks": blocks,
        "payload_bytes": payload_bytes,
        "blocks_a_job": BLOCKS_A_JOB,
        "rounds": rounds,
        "machine": f"{platform.machine()}, Python {platform.python_version()}, {platform.system()}",
        "blocks_per_second": {side: round(blocks / statistics.median(taken)) for side, taken in seconds.items()},
        "ratios": {
            side: round(statistics.median(theirs / mine for theirs, mine in zip(taken, ours, strict=True)), 2)
            for side, taken in seconds.items()
            if side != "kvtier"
        },
        "target": TARGET,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="DiskStore against diskcache itself, in one run")
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--payload", type=int, default=64, help="bytes a block")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to store; the system's folder for temporary files otherwise")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    result = measure(options.blocks, options.payload, options.rounds, options.folder)
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{result['blocks']:,} blocks of {result['payload_bytes']:,} bytes, {BLOCKS_A_JOB} a job, {result['machine']}"
    )
    for side, rate in result["blocks_per_second"].items():
        ratio = result["ratios"].get(side)
        against = "" if ratio is None else f"   kvtier is at {ratio:.2f} of it (target {TARGET})"
        print(f"  {side:34}{rate:>10,} blocks/s{against}")


if __name__ == "__main__":
    main()
