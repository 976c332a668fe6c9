"""What the screen says is what the commands say; and odd input, faults and sizes leave it readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.conftest import RunsKvtier
from tests.tui.screens import HUGE, NARROW, WIDE, press, run_dashboard, settled, text_of
from tests.tui.shows import CHAT, SKIPPED, chat_session, demo_topology
from tui.app import Dashboard
from tui.screens.fault import FaultScreen
from tui.session.opening import Asked, open_asked
from tui.session.session import Session

DEMO = ("--topology", demo_topology().name, "--tiers", "storage:local", "--json")
WORDS = {"primary": "ready in cpu", "promoted": "hit, promoted into the CPU tier", "filtered": "SKIPPED"}


async def until_fault(app: Dashboard, pilot: Pilot[None]) -> None:
    for _ in range(200):
        if isinstance(app.screen, FaultScreen):
            break
        await pilot.pause(0.01)
    await pilot.pause()
    assert isinstance(app.screen, FaultScreen)


def test_the_figures_on_the_screen_are_those_of_replay(kvtier: RunsKvtier) -> None:
    figures: dict[str, Any] = json.loads(kvtier("replay", CHAT, *DEMO).stdout)["figures"]
    rates = {name: rate["value"] for name, rate in figures["rates"].items()}

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        lines = text_of(app).splitlines()
        for tier, row in (("cpu", 0), ("nvme", 1), ("s3", 2)):
            head = next(at for at, line in enumerate(lines) if line.startswith(" tier "))
            line = lines[head + 1 + row]
            assert line.split()[0] == tier
            held = figures["resident"]["primary" if tier == "cpu" else tier]
            assert f" {held:,}/" in line
            asked = rates[f"{tier}_of_asked"]
            assert ("-" if asked is None else f"{asked:.1%}") in line.split()
            assert f"{rates[f'{tier}_of_all']:.1%}" in line.split()
        timeline = "\n".join(lines[1:3])
        assert f"{rates['served_of_all'] * 100:.1f}" in timeline
        assert f"{figures['lost_to_filter']:,} blocks" in timeline

    run_dashboard(steps, chat_session(start=298), size=HUGE)


def test_each_block_on_the_screen_is_as_explain_tells_it(kvtier: RunsKvtier) -> None:
    told = json.loads(kvtier("explain", CHAT, "--request", str(SKIPPED), *DEMO).stdout)

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        assert told["summary"]["text"].split(". ")[0] in text_of(app)
        symbols = {"primary": "■", "promoted": "▲", "filtered": "Ø", "unreached": "·"}
        row = next(line for line in text_of(app).splitlines() if line.startswith(" = "))
        cells = "".join(cell for cell in row if cell in symbols.values())
        assert cells == "".join(symbols[block["outcome"]] for block in told["blocks"])
        for keys, block in (((), 13), (("home",), 0), ((*["right"] * 4,), 4)):
            await press(app, pilot, *keys)
            assert f"Block {block}: " in text_of(app)
            assert f"({told['blocks'][block]['block']})" in text_of(app)
            assert WORDS[told["blocks"][block]["outcome"]] in text_of(app)

    run_dashboard(steps, size=WIDE)


LONG = "x" * 10_000
ODD = ("[red]", "[/]", "\x1b[31m", LONG, "\u202e")


@pytest.mark.parametrize("size", [(40, 12), NARROW, HUGE], ids=str)
def test_odd_names_are_text_on_every_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    names = ["[red]s3[/]", LONG]
    topology = tmp_path / "[bold]tiers.json"
    tiers = [{"name": name, "medium": "storage", "locality": "remote", "capacity": 9} for name in names]
    topology.write_text(json.dumps({"primary": {"capacity": 4}, "tiers": tiers}))
    trace = tmp_path / "[link=x]trace.jsonl"
    lines = []
    for number, odd in enumerate(ODD * 2):
        request = {"request_id": f"{odd}{number}", "hash_ids": [1, 2, 3 + number], "timestamp": number}
        lines.append(json.dumps({**request, "input_length": 1536, "output_length": 1}))
    trace.write_text("\n".join(lines) + "\n")

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        for keys in ((), ("]",), ("]",), ("]",), ("1",), ("3",), ("z",), ("z",), ("y",), ("?",), ("t", "enter")):
            await press(app, pilot, *keys)
            shown = text_of(app)
            assert "\x1b" not in shown
            assert "\u202e" not in shown
            assert len(shown.splitlines()) <= size[1]
        await press(app, pilot, "escape", "escape")

    from kvtier_cli.tiering.topology_file import load_topology

    opened = open_asked(Asked(str(trace), topology=load_topology(str(topology))))
    session = Session(opened.show, start=0)
    session.run_until_idle()
    run_dashboard(steps, session, asked=opened.asked, size=size)


def test_a_trace_of_one_request_has_no_other(tmp_path: Path) -> None:
    trace = tmp_path / "one.jsonl"
    trace.write_text(Path(CHAT).read_text().splitlines()[0])

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "]", "space", "[", "s", ".", "G", "g", "g")
        assert "request 0/1" in text_of(app)
        assert "no later request" in text_of(app) or "Request r0" in text_of(app)

    run_dashboard(steps, chat_session(trace=str(trace), start=0))


def test_a_trace_whose_first_line_is_bad_says_so_and_quits(tmp_path: Path) -> None:
    trace = tmp_path / "bad.jsonl"
    trace.write_text('{"hash_ids": 1, "timestamp": 0, "input_length": 1, "output_length": 1}\n')

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await until_fault(app, pilot)
        assert "bad.jsonl:1" in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("space", "right", "s", "1", "3", "c", "escape", "q")
        await pilot.pause()
        assert app._exit

    opened = open_asked(Asked(str(trace)))
    run_dashboard(steps, Session(opened.show, start=0), asked=opened.asked, arrives=False)


def test_a_fault_of_kvtier_is_shown_and_quitting_works(monkeypatch: pytest.MonkeyPatch) -> None:
    session = chat_session()

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        monkeypatch.setattr(type(session.show), "moment", lambda *_: {}["[red]gone"])
        await pilot.press("]")
        await until_fault(app, pilot)
        assert "A fault of kvtier" in text_of(app)
        assert "KeyError: '[red]gone'" in text_of(app)
        monkeypatch.undo()
        await press(app, pilot, "escape")
        assert f"Request r{SKIPPED}" in text_of(app)
        await press(app, pilot, "]")
        assert f"Request r{SKIPPED + 1}" in text_of(app)
        await pilot.press("q")
        await pilot.pause()
        assert app._exit

    run_dashboard(steps, session)


def test_what_comes_before_a_bad_line_is_played_all_the_same(tmp_path: Path) -> None:
    trace = tmp_path / "broken.jsonl"
    trace.write_text("\n".join([*Path(CHAT).read_text().splitlines()[:5], '{"hash_ids": 1}']))

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        await until_fault(app, pilot)
        await press(app, pilot, "escape")
        await press(app, pilot, "plus", "plus", "plus", "space")
        for _ in range(200):
            if app.session.snapshot.cursor == 4 and not app.session.snapshot.playing:
                break
            await pilot.pause(0.01)
        await settled(app, pilot)
        assert "request 4/" in text_of(app)
        assert not isinstance(app.screen, FaultScreen)

    opened = open_asked(Asked(str(trace)))
    run_dashboard(steps, Session(opened.show, start=0), asked=opened.asked)


def test_where_only_ascii_can_be_shown_every_screen_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def steps(app: Dashboard, pilot: Pilot[None]) -> None:
        asked = (("1",), ("comma",), ("f", "ctrl+u", *"[]"), ("escape",), ("y",), ("F",), ("escape",))
        more = (("question_mark",), ("escape",), ("t", "enter"), ("escape",), ("e",), ("escape",), ("c", "enter"))
        for keys in (*asked, *more, ("ctrl+p",)):
            await press(app, pilot, *keys)
            odd = [line for line in text_of(app).splitlines() if not line.isascii()]
            assert odd == [], keys

    run_dashboard(steps, size=WIDE, unicode=False)
