"""The screens as they look: text with styles at three sizes and in all themes, pictures of three of them.

KVTIER_UPDATE_GOLDEN=1 writes them anew; look at them before you commit.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from tests.conftest import CHECKOUT, UPDATE_GOLDEN
from tests.tui.screens import HUGE, NARROW, WIDE, press, run_dashboard, settled, styled_text_of
from tui.app import Dashboard

FOLDER = CHECKOUT / "tests" / "tui" / "snapshots"
PINNED = "8.2.8"

pytestmark = pytest.mark.skipif(textual.__version__ != PINNED, reason=f"the snapshots are those of Textual {PINNED}")


def assert_snapshot(name: str, text: str) -> None:
    """`text` is what stands in the snapshot `name`; where it is not, what was found is put beside it."""
    path = FOLDER / name
    found = path.with_name(f"{path.stem}.found{path.suffix}")
    if UPDATE_GOLDEN:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if path.exists() and path.read_text(encoding="utf-8") == text:
        found.unlink(missing_ok=True)
        return
    found.write_text(text, encoding="utf-8")
    raise AssertionError(f"{name} looks otherwise: compare with {found.name}; KVTIER_UPDATE_GOLDEN=1 accepts it")


def picture_of(app: Dashboard) -> str:
    """The screen as SVG, without what differs from run to run."""
    return re.sub(r"terminal-\d+", "terminal-0", app.export_screenshot(title="kvtier dash"))


MAIN = {
    "main-80x24": (NARROW, "dark", True),
    "main-120x40": (WIDE, "dark", True),
    "main-200x60": (HUGE, "dark", True),
    "light-80x24": (NARROW, "light", True),
    "light-120x40": (WIDE, "light", True),
    "light-200x60": (HUGE, "light", True),
    "colour-blind-80x24": (NARROW, "colour-blind", True),
    "colour-blind-120x40": (WIDE, "colour-blind", True),
    "colour-blind-200x60": (HUGE, "colour-blind", True),
    "terminal-80x24": (NARROW, "terminal", True),
    "terminal-120x40": (WIDE, "terminal", True),
    "terminal-200x60": (HUGE, "terminal", True),
    "ascii-80x24": (NARROW, "dark", False),
    "small-40x12": ((40, 12), "dark", True),
    "too-small-20x4": ((20, 4), "dark", True),
}


@pytest.mark.parametrize("name", MAIN)
def test_the_main_screen(name: str) -> None:
    size, theme, unicode = MAIN[name]

    async def look(app: Dashboard, pilot: Pilot[None]) -> None:
        assert_snapshot(f"{name}.txt", styled_text_of(app))

    run_dashboard(look, size=size, theme=theme, unicode=unicode)


def test_without_colour_the_symbols_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(app: Dashboard, pilot: Pilot[None]) -> None:
        assert_snapshot("no-color-80x24.txt", styled_text_of(app))

    run_dashboard(look)


KEYS = {
    "filter-being-edited": ["f", "ctrl+u", *'[{"medum":"storage"}]'],
    "compare": ["c", "enter"],
    "help": ["question_mark"],
    "blocks": ["1"],
    "pass-1": ["comma"],
    "presets": ["F"],
}


@pytest.mark.parametrize("name", KEYS)
def test_a_screen_after_some_keys(name: str) -> None:
    async def look(app: Dashboard, pilot: Pilot[None]) -> None:
        for key in KEYS[name]:
            await press(app, pilot, key)
        for _ in range(100):
            comparison = app.session.comparison
            if comparison is None or comparison.view.is_whole:
                break
            await pilot.pause(0.02)
        await settled(app, pilot)
        assert_snapshot(f"{name}-120x40.txt", styled_text_of(app))

    run_dashboard(look, size=WIDE)


PICTURES: dict[str, tuple[tuple[int, int], list[str]]] = {
    "main-80x24": (NARROW, []),
    "main-120x40": (WIDE, []),
    "main-200x60": (HUGE, []),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture(name: str) -> None:
    size, keys = PICTURES[name]

    async def look(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, *keys)
        assert_snapshot(f"{name}.svg", picture_of(app))

    run_dashboard(look, size=size)


def test_snapshots_that_nobody_compares_are_gone() -> None:
    expected = {f"{name}.txt" for name in MAIN} | {f"{name}-120x40.txt" for name in KEYS}
    expected |= {f"{name}.svg" for name in PICTURES} | {"no-color-80x24.txt"}
    assert {path.name for path in Path(FOLDER).iterdir() if ".found." not in path.name} == expected
