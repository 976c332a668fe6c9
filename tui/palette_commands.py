"""The commands of the palette: everything that has a key, the themes, the tables, the presets of filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.app import SystemCommand
from textual.command import CommandPalette
from textual.css.query import NoMatches

from tui import asking, themes
from tui.bindings import MAIN
from tui.screens.leaving import LeftOnce
from tui.show_tables import show_table
from tui.tables import TABLES

if TYPE_CHECKING:
    from tui.app import Dashboard

_NOT_ALONE = ("previous one", "find the next", "find the previous")


class Palette(CommandPalette, LeftOnce[None]):
    """Textual's, which keys may reach before its list is laid out, or when it is being taken down."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):  # there is no page to go to yet
            super()._action_command_list(action)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        with suppress(NoMatches):  # there is no list any more
            await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]


def palette_commands(app: Dashboard) -> Iterable[SystemCommand]:
    """What applies now: where the comparison or a table is on top, only what is common to all screens."""
    main = app.main
    if main is not None and app.screen is main:
        for key in MAIN:
            if key.words not in _NOT_ALONE:
                name = f"{key.words[:1].upper()}{key.words[1:]}"
                yield SystemCommand(name, f"key {app.key_names(key.id)}", _runs(app, key.action))
        for table, words in TABLES.items():
            yield SystemCommand(f"Table: {table}", words, partial(show_table, app, table))
        for choice in asking.presets(app.session.snapshot.topology, app.used_filters):
            yield SystemCommand(
                f"Filter: {choice.name}", choice.words, partial(app.apply_filter, choice.answer, "start")
            )
    for name in themes.PALETTES:
        yield SystemCommand(f"Theme: {name}", "the colours", partial(setattr, app, "theme", f"kvtier-{name}"))


def _runs(app: Dashboard, action: str) -> Callable[[], None]:
    async def run() -> None:
        if app.main is not None:
            await app.main.run_action(action)

    def later() -> None:
        app.call_later(run)

    return later
