"""Opens the tables over what is on show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.screens.chooser import Choice, Chooser
from tui.tables import TABLES, events_table, jobs_table, requests_table, resident_table, tiers_table

if TYPE_CHECKING:
    from tui.app import Dashboard


def ask_table(app: Dashboard) -> None:
    """Which one."""

    def chosen(name: str | None) -> None:
        if name is not None:
            show_table(app, name)

    app.push_screen(Chooser("Tables", [Choice(name, name, words) for name, words in TABLES.items()]), chosen)


def show_table(app: Dashboard, name: str) -> None:
    """The table of that name."""
    snapshot = app.session.snapshot
    moment = snapshot.moment
    if name == "requests":
        app.show_table(requests_table(snapshot))
    elif moment is None:
        app.notify("The replay is not there yet.", markup=False)
    elif name == "resident":
        show = app.session.show

        def look() -> None:
            blocks = show.resident()
            app.from_session(app.show_table, resident_table(blocks))

        app.in_session(look)
    else:
        made = {"tiers": tiers_table, "jobs": jobs_table, "events": events_table}[name]
        app.show_table(made(moment))
