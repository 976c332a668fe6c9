"""What the decision log costs: `kvtier replay` with `--log OUT.kvlog` against the same without, and against vLLM.

    python -m benchmarks.decision_log [TRACE] [--peer-python PYTHON] [--rounds 5] [--json]

Both are the command as a user starts it, whole processes that print all figures; the file lies in a temporary folder.
They take turns, and so does the peer if it is there (`benchmarks.replay` says what counts of it); each runs once
before, unmeasured. Seconds are medians, ratios the medians of each round's. The target is 6 times the peer's speed.

Exit status: 0 measured, 1 the figures differ or a side failed, 3 the trace or the peer is not there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.replay import HERE, PEER_PYTHON, TRACE, TRACE_TOKENS, Finished, machine, run, unequal
from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec
from kvtier_cli.tiering.topology_file import topology_as_json

TARGET = 6


def measure(sides: Mapping[str, list[str]], rounds: int) -> dict[str, list[Finished]]:
    """Runs all sides `rounds` times in turn, after once to warm up."""
    finished: dict[str, list[Finished]] = {name: [] for name in sides}
    for number in range(-1, rounds):
        for name in list(sides)[:: 1 if number % 2 else -1]:
            once = run(sides[name])
            if number >= 0:
                finished[name].append(once)
    return finished


def report(finished: Mapping[str, list[Finished]], size: int) -> dict[str, Any]:
    """The result as data."""
    plain, logged = finished["plain"], finished["logged"]
    figures = plain[0].output["figures"]
    found: dict[str, Any] = {
        "machine": machine(),
        "blocks": figures["blocks"],
        "plain": _side([each.seconds for each in plain], plain),
        "logged": {**_side([each.seconds for each in logged], logged), "log_bytes": size},
        "cost": statistics.median(
            with_.seconds / without.seconds for with_, without in zip(logged, plain, strict=True)
        ),
        "cpu_cost": statistics.median(
            with_.cpu_seconds / without.cpu_seconds for with_, without in zip(logged, plain, strict=True)
        ),
        "differs": unequal(figures, logged[0].output["figures"]),
    }
    if "vllm" in finished:
        peer = finished["vllm"]
        loops = [each.output["seconds"] for each in peer]
        found["vllm"] = _side(loops, peer)
        found["ratio"] = statistics.median(theirs / mine.seconds for theirs, mine in zip(loops, logged, strict=True))
        found["target"] = TARGET
        found["differs"] += unequal(peer[0].output["figures"], figures)
    return found


def _side(seconds: Sequence[float], finished: Sequence[Finished]) -> dict[str, float]:
    return {
        "seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(each.cpu_seconds for each in finished),
        "peak_bytes": max(each.peak for each in finished),
    }


def lines(found: Mapping[str, Any], trace: str) -> list[str]:
    """The result for people."""
    told = [f"{trace}: {found['blocks']:,} blocks", found["machine"]]
    for side, words in (("plain", "without a log"), ("logged", "with --log OUT.kvlog"), ("vllm", "vLLM's loop alone")):
        if side in found:
            each = found[side]
            told.append(f"  {words:22}{each['seconds']:>6.2f} s{each['peak_bytes'] / 2**20:>7,.0f} MiB at most")
    told.append(
        f"  the log ({found['logged']['log_bytes']:,} bytes) takes {found['cost']:.2f} times as long, "
        f"{found['cpu_cost']:.2f} times on a processor"
    )
    if "ratio" in found:
        told.append(f"  with it kvtier is {found['ratio']:.1f} times as fast as vLLM (target {found['target']})")
    told.append(
        f"  THE FIGURES DIFFER: {'; '.join(found['differs'])}" if found["differs"] else "  all figures are the same"
    )
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="kvtier replay with a decision log against without")
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help="Mooncake JSONL (default: %(default)s)")
    parser.add_argument("--peer-python", type=Path, default=PEER_PYTHON, help="has vLLM (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.trace.is_file():
        print(f"{options.trace} is not there: name a trace in Mooncake's shape", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="kvtier-bench-") as folder:
        log, topology = Path(folder) / "log.kvlog", Path(folder) / "built-in.json"
        topology.write_text(json.dumps(topology_as_json(replace(BUILT_IN, block=BlockSpec(tokens=TRACE_TOKENS)))))
        ours = [sys.executable, "-m", "kvtier_cli.main", "replay", str(options.trace), "--json"]
        sides = {"plain": ours, "logged": [*ours, "--log", str(log)]}
        has_peer = options.peer_python.is_file()
        if has_peer:
            sides["vllm"] = [str(options.peer_python), str(HERE / "peer_vllm.py"), str(options.trace), str(topology)]
        else:
            print(f"{options.peer_python} is not there: benchmarks/README.md says how to get the peer", file=sys.stderr)
        try:
            found = report(measure(sides, options.rounds), log.stat().st_size)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    print(json.dumps(found) if options.json else "\n".join(lines(found, options.trace.name)))
    if not has_peer:
        return 3
    return 1 if found["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
