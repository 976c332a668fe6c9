"""A writer that is killed at any moment loses no committed block and leaves a store that opens."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvtier_cli.tiering.stores.disk import DiskStore
from tests.conftest import python_environment
from tests.tiering.disk_writer import JOBS_HELD, blocks_of


def killed_writer(folder: Path, payload_bytes: int, first: int, alive: float) -> int:
    """The last job that a writer reported as committed before it was killed, `alive` seconds after its first."""
    command = [sys.executable, "-m", "tests.tiering.disk_writer", str(folder), str(payload_bytes), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=python_environment()) as writer:
        assert writer.stdout is not None
        said = writer.stdout.readline()
        time.sleep(alive)
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split("\n")[:-1]
    assert writer.returncode == -signal.SIGKILL
    return int([said, *rest][-1])


def kill_and_look(folder: Path, kills: int, payload_bytes: int) -> None:
    draw = random.Random(payload_bytes)
    first = 0
    for _ in range(kills):
        reported = killed_writer(folder, payload_bytes, first, draw.uniform(0, 0.15))

        reader = DiskStore.open_readonly(folder)
        seen = list(reader.least_recent_first())
        reader.close()
        assert [damage for damage in DiskStore.check(folder) if not damage.harmless] == []

        with DiskStore(folder) as store:
            blocks = list(store.least_recent_first())
            assert blocks == seen
            last = int(str(blocks[-1]).split()[1])
            assert last in (reported, reported + 1), "a committed job is gone, or half a job is there"
            assert blocks == [
                block for job in range(max(0, last + 1 - JOBS_HELD), last + 1) for block in blocks_of(job)
            ]
            assert store.read(blocks) == {}
        assert DiskStore.check(folder) == []
        first = last + 1


@pytest.mark.parametrize("payload_bytes", [64, 40_000], ids=["payloads in rows", "payloads in files"])
def test_every_committed_block_is_there_with_its_bytes_after_each_of_five_kills(
    tmp_path: Path, payload_bytes: int
) -> None:
    kill_and_look(tmp_path / "store", 5, payload_bytes)


def test_the_files_of_a_job_that_was_killed_before_its_commit_are_nobodys_and_go(tmp_path: Path) -> None:
    folder, killed = tmp_path / "store", tmp_path / "killed"
    with DiskStore(folder, payload_bytes=40_000) as store, store._job():
        store._cache.set("b1", bytes(50_000))
        shutil.copytree(folder, killed)
    assert [(damage.kind, damage.harmless) for damage in DiskStore.check(killed)] == [("file", True)]
    assert "a writer was killed, the next one removes it" in DiskStore.check(killed)[0].reason
    DiskStore(killed).close()
    assert list(killed.rglob("*.val")) == []
    assert DiskStore.check(killed) == []


@pytest.mark.soak
@pytest.mark.parametrize("payload_bytes", [64, 40_000], ids=["payloads in rows", "payloads in files"])
def test_and_after_each_of_fifty(tmp_path: Path, payload_bytes: int) -> None:
    kill_and_look(tmp_path / "store", 50, payload_bytes)
