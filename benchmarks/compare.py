"""Comparing two filters: `kvtier compare` against two runs of `kvtier replay`, whole processes, in one run.

    python -m benchmarks.compare [TRACE] [--tiers all --tiers storage:local] [--rounds 5] [--json]

The two replays run one after the other, as somebody would who had no `compare`; their seconds are added. The sides take
turns and who begins alternates; each runs once before, unmeasured. Seconds are the median of the rounds, the ratio is
the median of each round's. Nothing is claimed unless the figures of both sides are the same. The target is at most 1.3
times the two replays' time: what a comparison adds is the look at which requests differ.

Exit status: 0 measured, 1 the figures differ or a side failed, 3 the trace is not there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.replay import TRACE, Finished, machine, run

TARGET = 1.3
FILTERS = ("all", "storage:local")


def measure(trace: str, filters: Sequence[str], rounds: int) -> dict[str, Any]:
    """Runs both sides `rounds` times, after once to warm up."""
    kvtier = [sys.executable, "-m", "kvtier_cli.main"]
    compare = [*kvtier, "compare", trace, "--json", *(part for each in filters for part in ("--tiers", each))]
    replays = [[*kvtier, "replay", trace, "--json", "--tiers", each] for each in filters]
    ours: list[Finished] = []
    theirs: list[list[Finished]] = []
    for number in range(-1, rounds):
        if number % 2:
            once = run(compare)
            both = [run(command) for command in replays]
        else:
            both = [run(command) for command in replays]
            once = run(compare)
        if number >= 0:
            ours.append(once)
            theirs.append(both)
    seconds = [sum(each.seconds for each in both) for both in theirs]
    cpu_seconds = [sum(each.cpu_seconds for each in both) for both in theirs]
    together = ours[0].output
    return {
        "rounds": rounds,
        "filters": list(filters),
        "compare": _process(
            [each.seconds for each in ours], [each.cpu_seconds for each in ours], max(each.peak for each in ours)
        ),
        "replays": _process(seconds, cpu_seconds, max(each.peak for both in theirs for each in both)),
        "ratio": statistics.median(mine.seconds / both for mine, both in zip(ours, seconds, strict=True)),
        "cpu_ratio": statistics.median(mine.cpu_seconds / both for mine, both in zip(ours, cpu_seconds, strict=True)),
        "target": TARGET,
        "requests_differ": together["totals"]["requests_differ"],
        "differs": [
            variant["name"]
            for variant, alone in zip(together["variants"], theirs[0], strict=True)
            if variant["figures"] != alone.output["figures"]
        ],
    }


def _process(taken: Sequence[float], on_processor: Sequence[float], peak: int) -> dict[str, float]:
    return {
        "seconds": statistics.median(taken),
        "fastest": min(taken),
        "slowest": max(taken),
        "cpu_seconds": statistics.median(on_processor),
        "peak_bytes": peak,
    }


def report(found: Mapping[str, Any], trace: str) -> list[str]:
    """The result in lines."""
    lines = [
        f"{trace}, {' and '.join(found['filters'])}: {found['requests_differ']:,} requests differ; "
        f"median of {found['rounds']}",
        found["machine"],
        _line("kvtier compare --json", found["compare"]),
        _line("kvtier replay --json, twice", found["replays"]),
        f"  the comparison takes {found['ratio']:.2f} of the time (target at most {found['target']}), "
        f"{found['cpu_ratio']:.2f} of that on a processor",
    ]
    told = f"  THE FIGURES DIFFER: {', '.join(found['differs'])}" if found["differs"] else "  all figures are the same"
    return [*lines, told]


def _line(side: str, figures: Mapping[str, float]) -> str:
    spread = f"{figures['fastest']:.2f} to {figures['slowest']:.2f}"
    cpu, peak = figures["cpu_seconds"], figures["peak_bytes"] / 2**20
    return f"  {side:30}{figures['seconds']:>6.2f} s ({spread}){cpu:>7.2f} s on a processor{peak:>6,.0f} MiB at most"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="kvtier compare against two replays, in one run")
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help="a trace (default: %(default)s)")
    parser.add_argument("--tiers", action="append", help=f"filters, two or more (default: {' and '.join(FILTERS)})")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.trace.is_file():
        print(
            f"{options.trace} is not there: name a trace, such as Mooncake's conversation_trace.jsonl", file=sys.stderr
        )
        return 3
    try:
        found = measure(str(options.trace), options.tiers or FILTERS, options.rounds)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    found["machine"] = machine()
    print(json.dumps(found) if options.json else "\n".join(report(found, options.trace.name)))
    return 1 if found["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
