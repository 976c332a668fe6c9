"""Growth: memory and time of `kvtier replay` over ten million references, against those over a million.

    python -m benchmarks.growth [--references 10M] [--against 1M] [--capacity N]… [--rounds 1] [--json]

Both traces are the beginning of `kvtier synth --seed 1`. Three tiers of `--capacity` blocks each hold them: 100,000,
which both traces fill, so that growth alone is seen; then 1,000,000, which the shorter one does not fill, so that it
evicts nothing. A process each, from its start to its last byte of JSON; seconds are those on a processor, the least of
the rounds.

Exit status: 0 measured, 1 a side failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.replay import machine, run
from kvtier_cli.units import parse_count

MAX_RATIO = 1.2
MAX_MIB = 1024
CAPACITIES = (100_000, 1_000_000)

Found = dict[str, Any]


def measure(references: str, capacity: int, rounds: int, folder: Path) -> Found:
    """Makes a trace of so many references, replays it, and says what that took."""
    trace, topology = folder / f"{references}.jsonl", folder / "tiers.json"
    tiers = [{"name": name, "capacity": capacity} for name in ("nvme", "s3")]
    topology.write_text(json.dumps({"primary": {"capacity": capacity}, "tiers": tiers}), encoding="utf-8")
    kvtier = [sys.executable, "-m", "kvtier_cli.main"]
    made = run([*kvtier, "synth", "--references", references, "-o", str(trace), "--json"])
    done = [run([*kvtier, "replay", str(trace), "--topology", str(topology), "--json"]) for _ in range(rounds)]
    trace.unlink()
    made_figures, figures = made.output["figures"], done[0].output["figures"]
    seconds = min(each.cpu_seconds for each in done)
    return {
        "blocks": figures["blocks"],
        "distinct": made_figures["distinct_blocks"] / made_figures["blocks"],
        "resident": figures["resident"],
        "synth_cpu_seconds": made.cpu_seconds,
        "cpu_seconds": seconds,
        "microseconds_a_block": 1e6 * seconds / figures["blocks"],
        "peak_mib": max(each.peak for each in done) / 2**20,
    }


def report(found: Found) -> list[str]:
    """The result in lines."""
    lines = [f"three tiers of {found['capacity']:,} blocks"]
    for side in (found["against"], found["long"]):
        lines.append(
            f"  {side['blocks']:>11,} blocks, {side['distinct']:.1%} distinct: {side['cpu_seconds']:6.1f} s, "
            f"{side['microseconds_a_block']:.2f} us a block, {side['peak_mib']:,.0f} MiB at most "
            f"(made in {side['synth_cpu_seconds']:.1f} s)"
        )
    lines.append(
        f"  seconds a block: {found['ratio']:.2f} times (aim: at most {MAX_RATIO}); memory: at most {MAX_MIB} MiB"
    )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="memory and time of a long replay against a short one's")
    parser.add_argument("--references", default="10M")
    parser.add_argument("--against", default="1M")
    parser.add_argument("--capacity", type=parse_count, action="append", help="blocks of each tier; may be repeated")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = []
    for capacity in options.capacity or CAPACITIES:
        with tempfile.TemporaryDirectory(prefix="kvtier-bench-") as folder:
            try:
                short = measure(options.against, capacity, options.rounds, Path(folder))
                long = measure(options.references, capacity, options.rounds, Path(folder))
            except RuntimeError as error:
                print(error, file=sys.stderr)
                return 1
        ratio = long["microseconds_a_block"] / short["microseconds_a_block"]
        found.append({"capacity": capacity, "against": short, "long": long, "ratio": ratio})
        if not options.json:
            print("\n".join(report(found[-1])), flush=True)
    print(json.dumps({"machine": machine(), "found": found}) if options.json else machine())
    return 0


if __name__ == "__main__":
    sys.exit(main())
