"""A workspace in the dashboard: what its tiers hold, and lookups that change nothing in it."""

from __future__ import annotations

from pathlib import Path

from kvtier_cli.traces.source import TraceSource
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.found import make_workspace
from tests.tui.shows import CHAT, demo_topology, session_on
from tui.session.filter_draft import draft_of
from tui.session.session import Session


def loaded(tmp_path: Path) -> Session:
    path = tmp_path / "space"
    make_workspace(path, demo_topology())
    with open_workspace(path, write=True) as space, TraceSource(CHAT) as source:
        space.run([source]).run()
    return session_on(path)


def test_it_shows_what_the_tiers_hold_and_lets_go_of_the_workspace(tmp_path: Path) -> None:
    session = loaded(tmp_path)
    moment = session.snapshot.moment
    assert moment is not None
    assert [(tier.name, tier.resident) for tier in moment.tiers][:2] == [("cpu", 96), ("nvme", 300)]
    with open_workspace(tmp_path / "space", write=True, lock_timeout=0.1):
        pass


def test_lookups_tell_a_story_and_change_nothing(tmp_path: Path) -> None:
    session = loaded(tmp_path)
    session.find("0 1 2")
    first = session.run_until_idle().moment
    session.find("0 1 2")
    second = session.run_until_idle().moment
    assert first is not None
    assert second is not None
    assert first.story is not None
    assert second.story is not None
    assert first.story.blocks == second.story.blocks
    assert session.snapshot.known == 3


def test_another_filter_is_looked_up_anew(tmp_path: Path) -> None:
    session = loaded(tmp_path)
    session.find("0 1 2")
    session.run_until_idle()
    session.set_filter(draft_of("deny", demo_topology()).parse, "deny")
    moment = session.run_until_idle().moment
    assert moment is not None
    assert moment.story is not None
    assert not any(tier.admitted for tier in moment.story.tiers[1:])
