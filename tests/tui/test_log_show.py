"""A decision log in the dashboard shows what the replay that wrote it did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from tests.conftest import RunsKvtier
from tests.tui.shows import CHAT, SKIPPED, chat_session, demo_topology, session_on
from tui.session.opening import Asked, open_asked
from tui.session.rows import Mark
from tui.session.session import Session
from tui.session.views import Kind


@pytest.fixture(scope="module")
def logged(kvtier: RunsKvtier, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session on the log of the chat trace under `storage:local`."""
    path = tmp_path_factory.mktemp("log") / "chat.kvlog"
    topology = demo_topology().name
    ran = kvtier("replay", CHAT, "--topology", topology, "--tiers", "storage:local", "--log", str(path))
    assert ran.status == 0, ran.stderr
    return session_on(path)


def test_its_rows_are_those_of_the_replay(logged: Session) -> None:
    live = chat_session().snapshot.rows
    rows = logged.snapshot.rows
    assert rows is not None
    assert live is not None
    assert logged.snapshot.kind is Kind.LOG
    assert [rows.row(at) for at in range(rows.count)] == [live.row(at) for at in range(live.count)]
    assert rows.lost_sums == live.lost_sums
    assert rows.find(Mark.SKIP, 100) == live.find(Mark.SKIP, 100)


@pytest.mark.parametrize("number", [0, 97, SKIPPED])
def test_a_request_is_told_as_the_replay_told_it(logged: Session, number: int) -> None:
    live = chat_session(start=number).snapshot.moment
    logged.seek(number)
    moment = logged.run_until_idle().moment
    assert live is not None
    assert moment is not None
    assert moment.story is not None
    assert live.story is not None
    for block, other in zip(moment.story.blocks, live.story.blocks, strict=True):
        assert (block.name, block.outcome, block.tier, block.cells) == (
            other.name,
            other.outcome,
            other.tier,
            other.cells,
        )
    assert moment.story.stop is not None
    assert live.story.stop is not None
    assert replace(moment.story.stop, tries=live.story.stop.tries) == live.story.stop  # a log does not count tries
    assert moment.story.lost_to_filter == live.story.lost_to_filter


def test_blocks_and_requests_are_found(logged: Session) -> None:
    logged.seek(0)
    logged.find("242")
    first = logged.run_until_idle().cursor
    live = chat_session(start=0)
    live.find("242")
    assert live.run_until_idle().cursor == first
    logged.go_to("r97")
    assert logged.run_until_idle().cursor == 97


def test_a_log_takes_no_filter(logged: Session) -> None:
    with pytest.raises(InputError, match="does not apply to a log"):
        open_asked(Asked(logged.snapshot.title, topology=demo_topology()))


def test_a_damaged_log_is_refused(logged: Session, tmp_path: Path) -> None:
    path = tmp_path / "cut.kvlog"
    path.write_bytes(Path(logged.snapshot.title).read_bytes()[:5_000])
    with pytest.raises(InputError):
        open_asked(Asked(str(path)))
