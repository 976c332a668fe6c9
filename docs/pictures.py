"""Draws the README's pictures from the program itself: `python docs/pictures.py` writes docs/*.svg anew."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[1]

TRACE, TOPOLOGY = "fixtures/chat.jsonl", "fixtures/demo.toml"

PICTURES = {
    "lookup": f"kvtier lookup --trace {TRACE} --request 284 --tiers storage:local --topology {TOPOLOGY}",
    "replay": f"kvtier replay {TRACE} --tiers storage:local --topology {TOPOLOGY}",
}

# The dark palette of the dashboard's design, on the sixteen colours that the command line uses.
THEME = TerminalTheme(
    (14, 18, 23),
    (216, 220, 226),
    [
        (14, 18, 23),
        (255, 90, 74),
        (39, 199, 124),
        (255, 176, 0),
        (61, 133, 255),
        (207, 155, 250),
        (120, 200, 210),
        (193, 198, 204),
    ],
    [
        (105, 113, 122),
        (255, 90, 74),
        (39, 199, 124),
        (232, 220, 120),
        (61, 133, 255),
        (222, 95, 195),
        (120, 200, 210),
        (255, 255, 255),
    ],
)


def draw(name: str, command: str, columns: int = 80) -> None:
    """Runs a command in the checkout and draws what a terminal of that width shows of it."""
    shown = subprocess.run(
        [sys.executable, "-m", "kvtier_cli.main", *shlex.split(command)[1:]],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(columns), "PYTHONPATH": str(CHECKOUT)},
    ).stdout
    with Path(os.devnull).open("w") as nowhere:
        # Two columns more: a reader's font may be a little wider than the one the picture is measured with.
        console = Console(record=True, width=columns + 2, file=nowhere, force_terminal=True, color_system="standard")
        console.print(Text.from_ansi(shown.rstrip("\n")), highlight=False)
        svg = console.export_svg(title=f"kvtier {name}", theme=THEME, unique_id=f"kvtier-{name}")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # a picture fetches nothing
    (CHECKOUT / "docs" / f"{name}.svg").write_text(svg)


DASHBOARD: dict[str, tuple[tuple[int, int], str, list[str]]] = {
    "dash": ((120, 40), "dark", []),
    "dash-filter": ((120, 40), "dark", ["f", "ctrl+u", *'[{"medum":"storage"}]']),
    "dash-compare": ((120, 40), "dark", ["c", "enter"]),
    "dash-light": ((80, 24), "light", []),
}
"""Name → size of the terminal, theme, and the keys that are pressed before the picture is taken."""


async def draw_dashboard(name: str, size: tuple[int, int], theme: str, keys: list[str]) -> None:
    """Runs the dashboard on the shipped demo, presses keys and draws what it shows."""
    from kvtier_cli.render.console import Output
    from tui.app import Dashboard
    from tui.session.opening import Asked, open_asked
    from tui.session.session import Session

    opened = open_asked(Asked())
    session = Session(opened.show, start=opened.start)
    session.run_until_idle()
    app = Dashboard(session, out=Output(color=True), theme=theme, asked=opened.asked)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.5)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.05)
        await pilot.pause(2.0 if "c" in keys[:1] else 0.5)
        svg = app.export_screenshot(title="kvtier dash")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # a picture fetches nothing
    svg = re.sub(r"terminal-\d+", f"kvtier-{name}", svg)
    (CHECKOUT / "docs" / f"{name}.svg").write_text(svg)


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))
    for name, command in PICTURES.items():
        draw(name, command)
    for name, (size, theme, keys) in DASHBOARD.items():
        asyncio.run(draw_dashboard(name, size, theme, keys))
