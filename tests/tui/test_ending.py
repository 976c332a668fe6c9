"""The dashboard ends whenever it is asked to: while screens open, while they close, while the replay reports."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from tests.tui.screens import WIDE, run_dashboard, settled
from tui.app import Changed, Dashboard
from tui.widgets.legend import Legend

CHARACTERS = {"question_mark": "?", "slash": "/"}


def test_a_replay_that_reports_while_the_screen_is_taken_down_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = []

    def report(pane: Legend) -> None:
        app = pane.app
        assert isinstance(app, Dashboard)
        app.session.run_until_idle()
        reported.append(app.session.snapshot.serial)
        app.post_message(Changed())

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        app.session.on_change = None
        app.session.move(1)
        monkeypatch.setattr(Legend, "on_unmount", report, raising=False)

    run_dashboard(steps)
    assert reported


@pytest.mark.parametrize("key", ["question_mark", "slash", "e", "f", "t", "c", "ctrl+p"])
@pytest.mark.parametrize(
    ("then", "shown"),
    [
        (("escape", "escape", "escape"), True),
        (("escape", "escape", "escape"), False),
        (("enter", "enter", "escape"), True),
        (("pagedown", "pageup", "escape"), True),
    ],
    ids=["left", "left-before-the-first-picture", "answered-twice", "paged"],
)
def test_keys_that_come_faster_than_what_they_open_do_no_harm(key: str, then: tuple[str, ...], shown: bool) -> None:
    """As they do when they are pasted, or typed while the machine is busy."""

    async def paste(app: Dashboard, pilot: Pilot[None]) -> None:
        if shown:
            await settled(app, pilot)
        for name in (key, *then):
            event = events.Key(name, CHARACTERS.get(name, name if len(name) == 1 else None))
            event.set_sender(app)
            assert app._driver is not None
            app._driver.send_message(event)
        await settled(app, pilot)
        assert app.main is not None

    run_dashboard(paste, size=WIDE, arrives=False)
