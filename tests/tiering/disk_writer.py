"""Writes jobs into a store for as long as it lives, and prints the number of each one that is committed.

For the tests that kill it: `python -m tests.tiering.disk_writer FOLDER PAYLOAD_BYTES FIRST_JOB`.
"""

from __future__ import annotations

import sys
from itertools import count

from kvtier_cli.tiering.stores.disk import DiskStore

BLOCKS_A_JOB = 32
JOBS_HELD = 8


def blocks_of(job: int) -> list[str]:
    """The blocks that a job writes."""
    return [f"job {job} block {index}" for index in range(BLOCKS_A_JOB)]


def main(folder: str, payload_bytes: str, first: str) -> None:
    """Each job evicts what exceeds the tier's capacity, as a tier does."""
    store = DiskStore(folder, payload_bytes=int(payload_bytes))
    for job in count(int(first)):
        excess = len(store.index) + BLOCKS_A_JOB - JOBS_HELD * BLOCKS_A_JOB
        store.write(blocks_of(job), store.oldest(max(0, excess)))
        print(job, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
