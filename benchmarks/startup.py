"""Start-up: `kvtier` commands, whole processes, against a bare Python and a hello-world typer command, in one run.

python -m benchmarks.startup [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
HELLO = (
    "import typer\napp = typer.Typer()\n@app.command()\ndef main(name: str = 'x') -> None:\n    print(name)\napp()\n"
)


def median_ms(command: Sequence[str], rounds: int, folder: str) -> float:
    """The median of the wall times of a process that writes into a pipe, in milliseconds; one run before warms up."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, env=environment, check=True)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times[1:])


def measure(rounds: int) -> list[dict[str, object]]:
    """A row a command: its time, its peer's and the ratio, with the limit that the ratio is to keep."""
    kvtier = [str(Path(sys.executable).parent / "kvtier")]
    with tempfile.TemporaryDirectory() as folder:
        hello = Path(folder) / "hello.py"
        hello.write_text(HELLO)
        space = str(Path(folder) / "space")
        chat = str(CHECKOUT / "fixtures" / "chat.jsonl")
        subprocess.run([*kvtier, "init", "--workspace", space], check=True, capture_output=True)
        subprocess.run([*kvtier, "load", chat, "--workspace", space], check=True, capture_output=True)
        peers = {
            "python -c pass": median_ms([sys.executable, "-c", "pass"], rounds, folder),
            "hello-world typer": median_ms([sys.executable, str(hello)], rounds, folder),
        }
        rows = []
        for peer, limit, arguments in (
            ("python -c pass", 2.0, ["--version"]),
            ("hello-world typer", 1.5, ["--help"]),
            ("hello-world typer", 1.5, ["filter", "storage:local"]),
            ("hello-world typer", 4.0, ["lookup", "0", "1", "2", "--workspace", space]),
        ):
            ours = median_ms([*kvtier, *arguments], rounds, folder)
            shown = " ".join(arguments[:2])
            rows.append(
                {
                    "command": shown,
                    "ms": ours,
                    "peer": peer,
                    "peer_ms": peers[peer],
                    "ratio": ours / peers[peer],
                    "limit": limit,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.rounds)
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"  kvtier {row['command']:<24} {row['ms']:7.1f} ms   {row['peer']:<18} {row['peer_ms']:6.1f} ms   "
            f"ratio {row['ratio']:.2f} (at most {row['limit']})"
        )


if __name__ == "__main__":
    main()
