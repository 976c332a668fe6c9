"""Every key does what the footer and the help say it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui.screens import HUGE, NARROW, WIDE, press, run_dashboard, settled, text_of
from tests.tui.shows import CHAT, SKIPPED, chat_session, session_on
from tui.app import Dashboard
from tui.bindings import ALL, COMPARE, FILTER, FOOTER, MAIN, MOVES, Key, shown
from tui.palette_commands import palette_commands
from tui.screens.chooser import Chooser
from tui.screens.compare import CompareScreen
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.screens.prompt import Prompt
from tui.screens.table import TableScreen
from tui.session.rows import Mark
from tui.widgets.blocks_pane import BlocksPane
from tui.widgets.filter_pane import FilterInput, FilterPane

Check = Callable[[Dashboard, Pilot[None]], Awaitable[None]]

FOUND = ("skip", "promotion", "eviction")
NOT_FOUND = (("denial", "denial"), ("give-up", "request given up"))


async def hit(app: Dashboard, pilot: Pilot[None], binding: str) -> None:
    """Press the first key of a binding."""
    key = next(key for key in ALL if key.id == binding)
    await press(app, pilot, key.keys.split(",")[0])


def cursor(app: Dashboard) -> int:
    return app.session.snapshot.cursor


async def playing(app: Dashboard, pilot: Pilot[None]) -> None:
    await hit(app, pilot, "next")
    assert cursor(app) == SKIPPED + 1
    await hit(app, pilot, "previous")
    assert cursor(app) == SKIPPED
    await hit(app, pilot, "faster")
    assert app.session.snapshot.speed == 16
    await hit(app, pilot, "slower")
    await hit(app, pilot, "slower")
    assert app.session.snapshot.speed == 4
    await hit(app, pilot, "play")
    assert app.session.snapshot.playing
    await hit(app, pilot, "play")
    assert not app.session.snapshot.playing


async def stepping(app: Dashboard, pilot: Pilot[None]) -> None:
    assert "pass 2/2" in text_of(app)
    await hit(app, pilot, "step-back")
    assert "pass 1/2" in text_of(app)
    assert "9 on the way" in text_of(app)
    await hit(app, pilot, "step")
    assert "pass 2/2" in text_of(app)
    await hit(app, pilot, "pass")
    assert "pass 1/2" in text_of(app)
    await hit(app, pilot, "pass")
    await hit(app, pilot, "step")
    assert cursor(app) == SKIPPED + 1
    await hit(app, pilot, "step-back")
    assert (cursor(app), "pass 2/2" in text_of(app)) == (SKIPPED, True)


async def jumping(app: Dashboard, pilot: Pilot[None]) -> None:
    rows = app.session.snapshot.rows
    assert rows is not None
    for name in FOUND:
        mark = Mark[name.upper()]
        await hit(app, pilot, f"next-{name}")
        assert cursor(app) == rows.find(mark, SKIPPED)
        at = cursor(app)
        await hit(app, pilot, f"previous-{name}")
        assert cursor(app) == rows.find(mark, at, backwards=True)
        app.session.seek(SKIPPED)
        await settled(app, pilot)
    for name, words in NOT_FOUND:
        await hit(app, pilot, f"next-{name}")
        assert f"no later {words}" in text_of(app)
        await hit(app, pilot, f"previous-{name}")
        assert f"no earlier {words}" in text_of(app)


async def finding(app: Dashboard, pilot: Pilot[None]) -> None:
    await hit(app, pilot, "find")
    await press(app, pilot, *"242", "enter")
    first = cursor(app)
    assert app.session.snapshot.block is not None
    assert app.block == app.session.snapshot.block
    await hit(app, pilot, "find-next")
    second = cursor(app)
    await hit(app, pilot, "find-previous")
    assert cursor(app) == first != second
    await hit(app, pilot, "go-to")
    await press(app, pilot, *"r97", "enter")
    assert cursor(app) == 97
    await hit(app, pilot, "go-to")
    await press(app, pilot, *"nobody", "enter")
    assert "no request nobody" in text_of(app)
    await hit(app, pilot, "find")
    await press(app, pilot, "escape")
    assert isinstance(app.screen, MainScreen)


async def moving(app: Dashboard, pilot: Pilot[None]) -> None:
    await hit(app, pilot, "right")
    assert app.block == 14
    assert "Block 14: why it was not served" in text_of(app)
    await hit(app, pilot, "left")
    await hit(app, pilot, "left")
    assert app.block == 12
    assert "Block 12: how it was served" in text_of(app)
    await hit(app, pilot, "bottom")
    assert app.block == 39
    await hit(app, pilot, "top")
    assert app.block == 0
    await hit(app, pilot, "page-down")
    assert app.block == 39
    await hit(app, pilot, "page-up")
    assert app.block == 0
    await press(app, pilot, "end")
    await hit(app, pilot, "g")
    await hit(app, pilot, "g")
    assert app.block == 0
    await hit(app, pilot, "down")
    assert cursor(app) == SKIPPED + 1
    await hit(app, pilot, "up")
    assert cursor(app) == SKIPPED
    await hit(app, pilot, "requests")
    await hit(app, pilot, "down")
    assert cursor(app) == SKIPPED + 1
    await press(app, pilot, "home")
    assert cursor(app) == 0
    await hit(app, pilot, "choose")
    assert cursor(app) == 0
    await press(app, pilot, "G")
    assert cursor(app) == 298
    await press(app, pilot, "pageup")
    assert 280 < cursor(app) < 298
    await press(app, pilot, "g", "g")
    assert cursor(app) == 0


async def panes(app: Dashboard, pilot: Pilot[None]) -> None:
    for name, words in (
        ("blocks", "Blocks of r284"),
        ("events", "Events"),
        ("jobs", "cpu slots: free 0"),
        ("plots", "Served by tier, of all blocks"),
        ("requests", "Requests"),
    ):
        await hit(app, pilot, name)
        assert words in text_of(app)
        assert app.focused is not None
        assert app.focused.id == name
    await hit(app, pilot, "blocks")
    await press(app, pilot, "down")
    assert (app.block, app.main and app.main.query_one(BlocksPane).cursor) == (14, 14)
    await hit(app, pilot, "next-pane")
    assert app.focused is not None
    other = app.focused.id
    await hit(app, pilot, "previous-pane")
    assert app.focused is not None
    assert app.focused.id == "blocks" != other
    await hit(app, pilot, "requests")
    before = text_of(app).count("\n r") + text_of(app).count("\n►r")
    await hit(app, pilot, "zoom")
    assert text_of(app).count("\n r") + text_of(app).count("\n►r") > before
    await hit(app, pilot, "zoom")
    assert text_of(app).count("\n r") + text_of(app).count("\n►r") == before


async def asking(app: Dashboard, pilot: Pilot[None]) -> None:
    await hit(app, pilot, "help")
    assert isinstance(app.screen, HelpScreen)
    await press(app, pilot, *"denied")
    assert "next denied promotion" in text_of(app)
    assert "play faster" not in text_of(app)
    await press(app, pilot, "escape")
    await hit(app, pilot, "tables")
    assert isinstance(app.screen, Chooser)
    await press(app, pilot, "escape")
    await hit(app, pilot, "copy")
    assert "--request r284 --tiers storage:local" in app.clipboard
    await hit(app, pilot, "presets")
    await press(app, pilot, "j", "enter")
    assert app.session.snapshot.filter.text == "deny"
    await hit(app, pilot, "open")
    assert isinstance(app.screen, Prompt)
    await press(app, pilot, "escape")
    await hit(app, pilot, "export")
    assert "SVG" in text_of(app)
    await press(app, pilot, "escape")
    assert isinstance(app.screen, MainScreen)


async def editing(app: Dashboard, pilot: Pilot[None]) -> None:
    pane = app.screen.query_one(FilterPane)
    await hit(app, pilot, "filter")
    await press(app, pilot, "ctrl+u", *"[]")
    assert "→SKIPPED" in text_of(app)
    assert "[] admits no secondary tier" in text_of(app)
    await hit(app, pilot, "filter-restore")
    assert (pane.editing, app.session.snapshot.filter.text) == (False, "storage:local")
    await hit(app, pilot, "filter")
    await press(app, pilot, "ctrl+u", *"storage")
    assert "→admitted" in text_of(app)
    assert "s3 holds 25 blocks more" in text_of(app)
    await hit(app, pilot, "filter-replay")
    assert (app.session.snapshot.filter.text, app.session.snapshot.filter.since) == ("storage", 0)
    await hit(app, pilot, "filter")
    await press(app, pilot, "ctrl+u", *"[1")
    await press(app, pilot, "enter")
    assert pane.editing  # it cannot be read, so it does not go away
    assert "column 3" in text_of(app)
    await press(app, pilot, "ctrl+u", *"deny")
    await hit(app, pilot, "filter-from-here")
    assert (app.session.snapshot.filter.text, app.session.snapshot.filter.since) == ("deny", SKIPPED)
    await hit(app, pilot, "filter")
    await hit(app, pilot, "filter-history")
    await hit(app, pilot, "filter-history")
    assert app.screen.query_one(FilterInput).value == "storage"
    await hit(app, pilot, "filter-history-on")
    assert app.screen.query_one(FilterInput).value == "deny"
    await press(app, pilot, "escape")


async def whole(app: Dashboard, pilot: Pilot[None]) -> None:
    for _ in range(200):
        comparison = app.session.comparison
        if comparison is not None and comparison.view.is_whole:
            break
        await pilot.pause(0.01)
    await settled(app, pilot)


async def comparing(app: Dashboard, pilot: Pilot[None]) -> None:
    await hit(app, pilot, "compare")
    await press(app, pilot, "enter")
    await whole(app, pilot)
    assert isinstance(app.screen, CompareScreen)
    assert "82 of 299 requests differ" in text_of(app)
    assert app.session.comparison is not None
    view = app.session.comparison.view
    at = list(view.differing).index(SKIPPED)
    await hit(app, pilot, "compare-next")
    assert app.session.comparison.view.cursor == view.differing[at + 1]
    await hit(app, pilot, "compare-previous")
    assert app.session.comparison.view.cursor == SKIPPED
    await hit(app, pilot, "compare-swap")
    assert app.session.comparison.view.sides[0].text == "all"
    await hit(app, pilot, "compare-sort")
    assert "in their order" in text_of(app)
    await hit(app, pilot, "compare-export")
    assert "the comparison with all figures" in text_of(app)
    await press(app, pilot, "escape")
    await hit(app, pilot, "compare-help")
    assert isinstance(app.screen, HelpScreen)
    await press(app, pilot, "escape")
    await hit(app, pilot, "compare-filter")
    await press(app, pilot, "ctrl+u", *"deny", "enter")
    await whole(app, pilot)
    assert app.session.comparison.view.sides[1].text == "deny"
    await hit(app, pilot, "compare-back")
    assert isinstance(app.screen, MainScreen)


SESSIONS: dict[str, tuple[Check, tuple[int, int]]] = {
    "playing": (playing, NARROW),
    "stepping": (stepping, NARROW),
    "jumping": (jumping, NARROW),
    "finding": (finding, NARROW),
    "moving": (moving, NARROW),
    "panes-narrow": (panes, NARROW),
    "panes-huge": (panes, HUGE),
    "asking": (asking, WIDE),
    "editing": (editing, WIDE),
    "comparing": (comparing, WIDE),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_keys_do_what_they_say(name: str) -> None:
    check, size = SESSIONS[name]
    run_dashboard(check, size=size)


@pytest.mark.parametrize("binding", ["quit", "compare-quit"])
def test_quit_always_works(binding: str) -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        if binding == "compare-quit":
            await press(app, pilot, "c", "enter")
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running or app._exit

    run_dashboard(steps)


def test_ctrl_c_first_stops_the_replay_and_then_quits() -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        app.session.toggle_play()
        await settled(app, pilot)
        await pilot.press("ctrl+c")
        await settled(app, pilot)
        assert not app.session.snapshot.playing
        assert not app._exit
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app._exit

    run_dashboard(steps)


def test_no_binding_is_left_out_above() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    jumps = {f"{way}-{name}" for name in (*FOUND, *dict(NOT_FOUND)) for way in ("next", "previous")}
    named = {key.id for key in ALL if f'"{key.id}"' in source}
    elsewhere = {"save-fixture"}  # see test_saving
    assert {key.id for key in ALL} - named - jumps - elsewhere == set()


def test_every_command_of_the_palette_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        titles = [command.title for command in palette_commands(app)]
        assert len(titles) == len(set(titles))
        for title in titles:
            if title == "Quit":
                continue
            command = next(command for command in palette_commands(app) if command.title == title)
            command.callback()
            await settled(app, pilot)
            while not isinstance(app.screen, MainScreen):
                await pilot.press("escape")
                await pilot.pause()
            if app.screen_is_editing:
                await pilot.press("escape")
            app.session.pause()
        await settled(app, pilot)

    trace = tmp_path / "short.jsonl"
    trace.write_text("".join(Path(CHAT).read_text().splitlines(keepends=True)[:20]))
    run_dashboard(steps, chat_session(trace=str(trace), start=3))


@pytest.mark.parametrize("keys", [[*MAIN, *MOVES], FILTER, [*COMPARE, *MOVES]], ids=["main", "filter", "compare"])
def test_no_key_does_two_things_on_one_screen(keys: list[Key]) -> None:
    names = [name for key in keys for name in key.keys.split(",")]
    assert len(names) == len(set(names))


def test_at_most_eight_keys_stand_in_a_footer_of_80_columns() -> None:
    for table in (MAIN, FILTER, COMPARE):
        footer = [key for key in table if key.footer]
        assert len(footer) <= 8
        assert sum(len(shown(key, {})) + len(key.footer) + 3 for key in footer) <= 80
    assert {key.id for key in MAIN if key.footer} == set(FOOTER)


def test_keys_can_be_remapped_by_their_ids() -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "x")
        assert cursor(app) == SKIPPED + 1
        await press(app, pilot, "right_square_bracket")
        assert cursor(app) == SKIPPED + 1
        assert "[ x request" in text_of(app)

    run_dashboard(steps, keymap={"next": "x"})


def test_a_table_is_sorted_searched_and_leads_to_a_request() -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "t", "enter")
        assert isinstance(app.screen, TableScreen)
        await press(app, pilot, "o", "o", "o", "r")
        assert text_of(app).splitlines()[2].split()[2] == "54"  # the most that was served
        await press(app, pilot, "slash", *"filtered s3", "enter")
        assert "of 299)" in text_of(app)
        await press(app, pilot, "enter")
        assert isinstance(app.screen, MainScreen)
        assert "filtered" in app.session.snapshot.listing.row(cursor(app)).note

    run_dashboard(steps, size=WIDE)


@pytest.mark.parametrize("name", ["tiers", "resident", "jobs", "events"])
def test_the_other_tables_open(name: str) -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        from tui.show_tables import show_table

        show_table(app, name)
        for _ in range(100):
            if isinstance(app.screen, TableScreen):
                break
            await pilot.pause(0.02)
        await pilot.pause()
        assert {"tiers": "nvme", "resident": "nvme, s3", "jobs": "store", "events": "skip"}[name] in text_of(app)
        screen: Screen[object] = app.screen
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is not screen

    run_dashboard(steps, size=WIDE)


def test_what_was_exported_is_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        for down, suffix, start in ((0, "svg", b"<svg"), (1, "txt", b" kvtier"), (2, "json", b"{")):
            await press(app, pilot, "e", *["down"] * down, "enter")
            await pilot.pause()
            await press(app, pilot, "enter")
            assert (tmp_path / f"kvtier-284.{suffix}").read_bytes().startswith(start)
        await press(app, pilot, "e", "enter")
        await pilot.pause()
        await press(app, pilot, "enter")
        assert "is there already" in text_of(app)
        await press(app, pilot, "escape")

    run_dashboard(steps)


def test_the_mouse_chooses_blocks_requests_and_keys() -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await pilot.click("#request", offset=(40, 3))
        await settled(app, pilot)
        assert app.block == 5
        await pilot.click("#requests", offset=(10, 2))
        await settled(app, pilot)
        assert cursor(app) != SKIPPED
        await pilot.click("#keys", offset=(2, 0))
        await settled(app, pilot)
        assert app.session.snapshot.playing
        app.session.pause()

    run_dashboard(steps)


def test_another_file_is_opened_and_one_that_cannot_be_leaves_all_as_it_was(tmp_path: Path) -> None:
    from kvtier_cli.shipped import shipped_fixture

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        app.open_file(str(tmp_path / "nothing.jsonl"))
        await settled(app, pilot)
        assert "chat.jsonl" in text_of(app)
        app.open_file(str(shipped_fixture("tier-skip.yaml")))
        await settled(app, pilot)
        assert "tier-skip.yaml" in text_of(app)
        assert "line 19" in text_of(app)

    run_dashboard(steps, size=WIDE)


def test_a_fixture_has_ops_and_a_request_that_waits() -> None:
    from kvtier_cli.shipped import shipped_fixture

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        app.session.seek(5)
        await settled(app, pilot)
        assert "Block 0 is on its way" in text_of(app)
        await press(app, pilot, "full_stop", "full_stop")
        assert "op 7/11" in text_of(app)
        await press(app, pilot, "c")
        assert "only replays of traces can be compared" in text_of(app)

    run_dashboard(steps, session_on(shipped_fixture("tier-skip.yaml")))


def test_a_fault_is_told_and_what_is_intact_stays(tmp_path: Path) -> None:
    from tui.session.opening import Asked

    path = tmp_path / "broken.jsonl"
    lines = Path(CHAT).read_text().splitlines()[:30]
    path.write_text("\n".join([*lines[:20], '{"hash_ids": "[red]"}', *lines[20:]]))

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        for _ in range(100):
            if "cannot be read" in text_of(app):
                break
            await pilot.pause(0.02)
        assert "broken.jsonl:21" in text_of(app)
        assert "everything before it is intact" in text_of(app)
        await press(app, pilot, "escape")
        await press(app, pilot, "right_square_bracket")
        assert cursor(app) == 1
        app.reopen(skip_bad=True)
        await settled(app, pilot)
        for _ in range(100):
            if app.session.snapshot.is_total:
                break
            await pilot.pause(0.02)
        assert (app.session.snapshot.fault, app.session.snapshot.known) == (None, 30)

    from tui.session.opening import open_asked
    from tui.session.session import Session

    opened = open_asked(Asked(str(path)))
    run_dashboard(steps, Session(opened.show, start=0), asked=opened.asked, size=WIDE)


def test_strings_from_files_are_text(tmp_path: Path) -> None:
    file = tmp_path / "red.yaml"
    file.write_text(
        "topology: {primary: {capacity: 2}, tiers: [{name: '[red]x[/]', medium: storage}]}\n"
        "ops:\n  - {op: seed, tier: '[red]x[/]', blocks: ['[b]b1']}\n"
        "  - {op: request, id: '[link]r', kv_load_tiers: []}\n"
        "  - {op: lookup, id: '[link]r', block: '[b]b1'}\n"
    )

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        app.session.seek(2)
        await settled(app, pilot)
        assert "[red]x[/]" in text_of(app)
        assert "[link]r" in text_of(app)
        await press(app, pilot, "1")
        assert "[b]b1" in text_of(app)
        await press(app, pilot, "t", "down", "enter")
        assert "[red]x[/]" in text_of(app)

    run_dashboard(steps, session_on(file), size=WIDE)


def test_it_is_resized_at_any_time() -> None:
    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        for size in ((200, 60), (20, 4), (40, 12), (300, 80), (120, 40), (81, 25)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await settled(app, pilot)
        assert "Request r284" in text_of(app)
        assert "try  f then storage" not in text_of(app)
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        await settled(app, pilot)
        assert "try  f then storage" in text_of(app)

    run_dashboard(steps, chat_session())
