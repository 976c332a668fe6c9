"""`kvtier load` that is killed or interrupted at any moment: no committed block is lost, and the workspace opens."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.checks import check_workspace
from kvtier_cli.workspace.found import make_workspace
from tests.conftest import python_environment
from tests.workspace.spaces import topology, trace

BLOCKS_A_REQUEST = 8


def long_trace(path: Path, requests: int, first: int) -> Path:
    """Prompts that share nothing with each other, nor with those of other traces."""
    start = first * BLOCKS_A_REQUEST
    return trace(
        path,
        [
            range(at, at + BLOCKS_A_REQUEST)
            for at in range(start, start + requests * BLOCKS_A_REQUEST, BLOCKS_A_REQUEST)
        ],
    )


def broken_off(space: Path, file: Path, how: signal.Signals, alive: float) -> tuple[dict[str, set[str]], int, str]:
    """What a load said it had committed, tier by tier, before it got a signal; its exit status and its last words."""
    command = [sys.executable, "-m", "tests.workspace.told_load", str(space), str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=python_environment()
    ) as load:
        assert load.stdout is not None
        said = load.stdout.readline()
        time.sleep(alive)
        load.send_signal(how)
        lines = (said + load.stdout.read()).split("\n")[:-1]
        assert load.stderr is not None
        words = load.stderr.read()
    committed: dict[str, set[str]] = {"nvme": set(), "s3": set()}
    for line in lines:
        tier, *keys = line.split(" ")
        if tier in committed:
            committed[tier].update(keys)
    return committed, load.returncode, words


def kill_and_look(tmp_path: Path, kills: int) -> None:
    space = tmp_path / "space"
    make_workspace(space, topology(primary=64, nvme=None))
    draw = random.Random(kills)
    everything: dict[str, set[str]] = {"nvme": set(), "s3": set()}
    for attempt in range(kills):
        file = long_trace(tmp_path / "t.jsonl", 5_000, first=attempt * 5_000)
        committed, status, _ = broken_off(space, file, signal.SIGKILL, draw.uniform(0, 0.5))
        assert status == -signal.SIGKILL, "it ended by itself: the trace is too short for this machine"
        with open_workspace(space) as opened:
            for tier in opened.tiers:
                everything[tier.name] |= committed[tier.name]
                held = set(map(str, tier.blocks()))
                assert everything[tier.name] <= held, "a committed block is gone"
                assert len(held - everything[tier.name]) in (0, BLOCKS_A_REQUEST), "half a job is there"
                assert tier.store.read(list(tier.blocks())) == {}
                everything[tier.name] |= held
        checks = list(check_workspace(space, repair=False, lock_timeout=1))
        assert [check for check in checks if not check.ok] == []


def test_every_committed_block_is_there_with_its_bytes_after_each_of_five_kills(tmp_path: Path) -> None:
    kill_and_look(tmp_path, 5)


@pytest.mark.soak
def test_and_after_each_of_fifty(tmp_path: Path) -> None:
    kill_and_look(tmp_path, 50)


def test_an_interrupted_load_says_so_and_keeps_the_cpu_tier_too(tmp_path: Path) -> None:
    space = tmp_path / "space"
    make_workspace(space, topology(primary=64, nvme=None))
    file = long_trace(tmp_path / "t.jsonl", 20_000, first=0)
    committed, status, words = broken_off(space, file, signal.SIGINT, 0.5)
    assert (status, words) == (ExitStatus.INTERRUPTED, "interrupted\n")
    with open_workspace(space) as opened:
        assert len(opened.run().manager.primary.resident) == 64
        assert opened.state.requests * BLOCKS_A_REQUEST == opened.state.blocks > 0
        for tier in opened.tiers:
            held = set(map(str, tier.blocks()))
            assert held >= committed[tier.name]
            assert len(held - committed[tier.name]) in (0, BLOCKS_A_REQUEST), "one may have been committed and not told"
    assert [
        check for check in check_workspace(space, repair=False, lock_timeout=1) if check.found and not check.ok
    ] == []
