"""Replaying a trace: `kvtier replay` as a whole process against vLLM's own tiering manager, in one run.

    python -m benchmarks.replay [TRACE] [--peer-python PYTHON] [--topology FILE] [--rounds 5] [--json]

Ours is the command as a user starts it, from the start of Python to its last byte of JSON: reading, replaying, all
figures and outcomes. The peer is `peer_vllm.py` under the interpreter of an environment that has vLLM (see README.md),
and only the seconds of its loop count: not its start, its reading, its hashing. The two take turns and who begins
alternates; each runs once before, unmeasured. Seconds are the median of the rounds, the ratio is the median of each
round's. Nothing is claimed unless the figures of both sides are the same. The target is 10 times the peer's speed.

Exit status: 0 measured, 1 the figures differ or a side failed, 3 the trace or the peer is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec
from kvtier_cli.tiering.topology_file import topology_as_json

HERE = Path(__file__).resolve().parent
PEER_PYTHON = Path.home() / ".cache" / "kvtier-peers" / "vllm" / "bin" / "python"
RECORDINGS = Path(os.environ.get("KVTIER_RECORDINGS") or HERE.parents[1] / "shared" / "conformance")
TRACE = RECORDINGS.parent / "data" / "mooncake" / "conversation_trace.jsonl"
TARGET = 10
TRACE_TOKENS = 512


class Finished(NamedTuple):
    """A process that is over: what it printed, its seconds from start to end and on a processor, its peak in bytes."""

    output: Any
    seconds: float
    cpu_seconds: float
    peak: int


def run(command: Sequence[str]) -> Finished:
    """Runs a command that prints one JSON document. Raises RuntimeError, with what it said, where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(HERE.parent)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)  # the usage of this child alone
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode:
            err.seek(0)
            raise RuntimeError(f"{' '.join(command)}: status {process.returncode}: {err.read().decode().strip()}")
        unit = 1 if sys.platform == "darwin" else 1024
        return Finished(json.load(out), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def unequal(peer: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """The figures of the peer that ours does not have like that."""
    return [f"{name}: vLLM {value}, kvtier {ours.get(name)}" for name, value in peer.items() if ours.get(name) != value]


class Sides(NamedTuple):
    """The two command lines; `peer` is None where there is no vLLM."""

    ours: list[str]
    peer: list[str] | None


def measure(sides: Sides, rounds: int) -> dict[str, Any]:
    """Runs both sides `rounds` times, after once to warm up."""
    ours: list[Finished] = []
    peer: list[Finished] = []
    for number in range(-1, rounds):
        turns = [(ours, sides.ours), *([] if sides.peer is None else [(peer, sides.peer)])]
        for finished, command in turns if number % 2 == 0 else turns[::-1]:
            once = run(command)
            if number >= 0:
                finished.append(once)
    figures = ours[0].output["figures"]
    found: dict[str, Any] = {
        "rounds": rounds,
        "requests": figures["requests"],
        "blocks": figures["blocks"],
        "kvtier": {
            **_seconds([each.seconds for each in ours], figures["blocks"]),
            **_process(ours),
        },
        "target": TARGET,
    }
    if peer:
        loops = [each.output["seconds"] for each in peer]
        found["vllm"] = {
            **_seconds(loops, figures["blocks"]),
            **_process(peer),
        }
        found["ratio"] = statistics.median(theirs / mine.seconds for theirs, mine in zip(loops, ours, strict=True))
        found["differs"] = unequal(peer[0].output["figures"], figures)
    return found


def _seconds(taken: Sequence[float], blocks: int) -> dict[str, float]:
    middle = statistics.median(taken)
    return {"seconds": middle, "fastest": min(taken), "slowest": max(taken), "blocks_per_second": blocks / middle}


def _process(finished: Sequence[Finished]) -> dict[str, float]:
    return {
        "process_seconds": statistics.median(each.seconds for each in finished),
        "process_cpu_seconds": statistics.median(each.cpu_seconds for each in finished),
        "peak_bytes": max(each.peak for each in finished),
    }


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def report(found: Mapping[str, Any], trace: str) -> list[str]:
    """The result in lines."""
    lines = [
        f"{trace}: {found['requests']:,} requests, {found['blocks']:,} blocks; median of {found['rounds']}",
        found["machine"],
        _line("kvtier replay --json, whole process", found["kvtier"]),
    ]
    if "vllm" in found:
        lines += [
            _line("vLLM's manager, its loop alone", found["vllm"]),
            f"  kvtier is {found['ratio']:.1f} times as fast (target {found['target']})",
            "  whole processes, seconds on a processor: "
            f"kvtier {found['kvtier']['process_cpu_seconds']:.2f}, vLLM {found['vllm']['process_cpu_seconds']:.2f}",
            "  all figures that the peer has are the same"
            if not found["differs"]
            else f"  THE FIGURES DIFFER: {'; '.join(found['differs'])}",
        ]
    return lines


def _line(side: str, figures: Mapping[str, float]) -> str:
    spread = f"{figures['fastest']:.2f} to {figures['slowest']:.2f}"
    rate, peak = figures["blocks_per_second"], figures["peak_bytes"] / 2**20
    return f"  {side:36}{figures['seconds']:>6.2f} s ({spread}){rate:>11,.0f} blocks/s{peak:>7,.0f} MiB at most"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="kvtier replay against vLLM's tiering manager, in one run")
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help="Mooncake JSONL (default: %(default)s)")
    parser.add_argument("--peer-python", type=Path, default=PEER_PYTHON, help="has vLLM (default: %(default)s)")
    parser.add_argument("--topology", type=Path, help="TOML or JSON, capacities in blocks (default: the built-in one)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.trace.is_file():
        print(
            f"{options.trace} is not there: name a trace, such as Mooncake's conversation_trace.jsonl", file=sys.stderr
        )
        return 3
    has_peer = options.peer_python.is_file()
    if not has_peer:
        print(f"{options.peer_python} is not there: benchmarks/README.md says how to get the peer", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="kvtier-bench-") as folder:
        topology = options.topology or Path(folder) / "built-in.json"
        if options.topology is None:
            built_in = replace(BUILT_IN, block=BlockSpec(tokens=TRACE_TOKENS))
            topology.write_text(json.dumps(topology_as_json(built_in)), encoding="utf-8")
        chosen = [] if options.topology is None else ["--topology", str(topology)]
        ours = [sys.executable, "-m", "kvtier_cli.main", "replay", str(options.trace), *chosen, "--json"]
        peer = [str(options.peer_python), str(HERE / "peer_vllm.py"), str(options.trace), str(topology)]
        try:
            found = measure(Sides(ours, peer if has_peer else None), options.rounds)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    found["machine"] = machine()
    print(json.dumps(found) if options.json else "\n".join(report(found, options.trace.name)))
    if not has_peer:
        return 3
    return 1 if found["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
