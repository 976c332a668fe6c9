"""Runs the dashboard with a pilot, on a session that has done its work; shows its screens as text with styles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby

import textual._wait
from rich.segment import Segment
from textual.pilot import Pilot

from kvtier_cli.render.console import Output
from tests.tui.shows import chat_session
from tui.app import Dashboard
from tui.session.opening import Asked
from tui.session.session import Session

Steps = Callable[[Dashboard, Pilot[None]], Awaitable[None]]

# How long the pilot looks whether the app is idle, after each key several times: 20 ms, unless it is told.
textual._wait.SLEEP_GRANULARITY = 0.005

NARROW, WIDE, HUGE = (80, 24), (120, 40), (200, 60)


def run_dashboard(
    steps: Steps,
    session: Session | None = None,
    *,
    size: tuple[int, int] = NARROW,
    theme: str = "dark",
    unicode: bool = True,
    keymap: dict[str, str] | None = None,
    asked: Asked | None = None,
    arrives: bool = True,
) -> None:
    """Show the session and take the steps, once the first picture is there; `arrives` False where none will be."""

    async def run() -> None:
        app = Dashboard(
            session or chat_session(),
            out=Output(color=True, unicode=unicode),
            theme=theme,
            keymap=keymap,
            asked=asked,
        )
        async with app.run_test(size=size) as pilot:
            if arrives:
                await settled(app, pilot)
            await steps(app, pilot)

    asyncio.run(run())


async def settled(app: Dashboard, pilot: Pilot[None]) -> None:
    """Wait until all orders are carried out and shown."""
    for _ in range(200):
        await pilot.pause()
        snapshot = app.session.snapshot
        arrived = snapshot.moment is not None and snapshot.moment.index == snapshot.cursor
        if arrived and not app.session.has_orders and app.is_up_to_date:
            await pilot.pause()
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the dashboard did not settle")


async def press(app: Dashboard, pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after another, and wait for what comes of them."""
    await pilot.press(*keys)
    await settled(app, pilot)


def lines_of(app: Dashboard) -> list[list[Segment]]:
    """The screen as it is drawn: a list of segments a line. Textual has nothing public for it."""
    return [list(strip) for strip in app.screen._compositor.render_strips()][: app.size.height]


def text_of(app: Dashboard) -> str:
    """The screen as text."""
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines_of(app))


def styled_text_of(app: Dashboard) -> str:
    """The screen as text, and behind each line its runs of styles: so many cells in which colours."""
    shown = []
    for line in lines_of(app):
        text = "".join(segment.text for segment in line).rstrip()
        runs = []
        for style, segments in groupby(line, key=_look):
            runs.append(f"{sum(segment.cell_length for segment in segments)} {style}")
        shown.append(f"{text}\n    | {'; '.join(runs)}")
    return "\n".join(shown) + "\n"


def _look(segment: Segment) -> str:
    style = segment.style
    if style is None:
        return "-"
    color = "-" if style.color is None else style.color.name
    background = "-" if style.bgcolor is None else style.bgcolor.name
    marks = "".join(mark for mark, on in (("b", style.bold), ("r", style.reverse), ("d", style.dim)) if on)
    return f"{color} on {background}{f' {marks}' if marks else ''}"
