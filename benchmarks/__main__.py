"""All benchmarks, one after another, each as `python -m benchmarks.NAME` runs it.

    python -m benchmarks                   all of them, with their defaults (`make bench`)
    python -m benchmarks NAME [OPTION…]    one of them, with its own options

Exit status: 1 if one of them was not measured or failed, 2 for an unknown name.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """The benchmarks there are: the modules of this folder but for the peers'."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith(("_", "peer_")))


def main(arguments: Sequence[str]) -> int:
    """Runs what was asked for."""
    if arguments and arguments[0] not in names():
        print(f"no benchmark {arguments[0]!r}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    failed = False
    for name in arguments[:1] or names():
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *arguments[1:]]
        failed |= subprocess.run(command, cwd=HERE.parent, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
