"""The dashboard's memory stays flat, however long it plays: a minute here, ten in the soak."""

from __future__ import annotations

import gc
from pathlib import Path
from time import monotonic

import pytest
from textual.pilot import Pilot

from tests.tui.screens import WIDE, run_dashboard
from tui.app import Dashboard

_STATM = Path("/proc/self/statm")
_PAGE_KIB = 4
_ALLOWED_KIB = 4 * 1024
"""What the bounded caches of lines may still take after half a minute; without bounds it would be that in seconds."""


def resident_kib() -> int:
    """The memory of this process, in KiB."""
    gc.collect()
    return int(_STATM.read_text().split()[1]) * _PAGE_KIB


async def play_through(app: Dashboard, pilot: Pilot[None]) -> None:
    """From the first request to the last."""
    app.session.seek(0)
    app.session.toggle_play()
    last = app.session.snapshot.total - 1
    has_begun = False
    for _ in range(6_000):
        await pilot.pause(0.02)
        snapshot = app.session.snapshot
        has_begun = has_begun or snapshot.playing
        if has_begun and snapshot.cursor == last and not snapshot.playing:
            return
    raise AssertionError("the play did not reach the end")


@pytest.mark.skipif(not _STATM.exists(), reason="the memory of a process is read from /proc")
@pytest.mark.parametrize(
    "seconds", [pytest.param(60, id="a minute"), pytest.param(600, id="ten minutes", marks=pytest.mark.soak)]
)
def test_it_stays_flat_while_the_demo_is_played_again_and_again(seconds: int) -> None:
    async def play(app: Dashboard, pilot: Pilot[None]) -> None:
        app.session.change_speed(100)
        app.session.change_speed(-1)  # the fastest at which every request has its turn
        start, rounds, before = monotonic(), 0, None
        while monotonic() - start < seconds:
            await play_through(app, pilot)
            rounds += 1
            if before is None and monotonic() - start > min(seconds / 2, 60):
                before = resident_kib()
        assert before is not None
        grown = resident_kib() - before
        assert rounds > seconds / 20
        assert grown < _ALLOWED_KIB, f"{grown:,} KiB more after {rounds} rounds"

    run_dashboard(play, size=WIDE)
