"""A request saved from the dashboard replays by itself to the outcome that was on show."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from kvtier_cli.replay.fixture import read_fixture
from kvtier_cli.replay.fixture_run import run_fixture
from tests.tui.screens import press, run_dashboard, settled
from tests.tui.shows import SKIPPED, chat_session
from tui.app import Dashboard
from tui.screens.prompt import Prompt


def test_w_saves_a_fixture_that_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "w")
        for _ in range(300):
            if isinstance(app.screen, Prompt):
                break
            await pilot.pause(0.02)
        await pilot.pause()
        await press(app, pilot, "enter")
        await settled(app, pilot)

    run_dashboard(steps)
    report = run_fixture(read_fixture(str(tmp_path / f"r{SKIPPED}.yaml")))
    assert (report.verdict, report.mismatches) == ("ok", ())


def test_saving_leaves_the_session_as_it_was() -> None:
    session = chat_session()
    before = session.snapshot.moment
    assert session.show.saved(SKIPPED)
    session.move(1)
    session.move(-1)
    assert session.run_until_idle().moment == before
