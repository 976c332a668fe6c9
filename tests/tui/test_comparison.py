"""Two filters side by side: every request that differs, and by how much."""

from __future__ import annotations

from kvtier_cli.tiering.filters import FilterParse
from tests.tui.shows import SKIPPED, chat_session, demo_topology, plain_run
from tui.session.comparison import Comparison, ComparisonView
from tui.session.course import Course
from tui.session.filter_draft import draft_of
from tui.session.session import Session
from tui.session.tape import Tape
from tui.session.trace_show import TraceShow


def compared(session: Session, text: str = "all") -> ComparisonView:
    """The comparison of what is on show with the same under `text`, whole."""
    session.compare(draft_of(text, demo_topology()).parse, text)
    session.run_until_idle()
    assert session.comparison is not None
    return session.comparison.view


def served(text: str) -> list[int]:
    return [each.loaded for each in plain_run(text).steps()]


def test_the_figures_of_both_sides_are_those_of_their_replays() -> None:
    view = compared(chat_session())
    assert [side.figures for side in view.sides] == [plain_run("storage:local").run(), plain_run("all").run()]
    assert [side.text for side in view.sides] == ["storage:local", "all"]


def test_the_requests_that_differ_come_with_the_largest_change_first() -> None:
    view = compared(chat_session())
    changes = [b - a for a, b in zip(served("storage:local"), served("all"), strict=True)]
    assert {request: view.change(request) for request in view.differing if view.change(request)} == {
        request: change for request, change in enumerate(changes) if change
    }
    sizes = [abs(view.change(request)) for request in view.differing]
    assert sizes == sorted(sizes, reverse=True)


def test_both_moments_are_of_the_request_on_show() -> None:
    view = compared(chat_session())
    assert view.moments is not None
    stories = [moment.story for moment in view.moments]
    assert [story and story.served for story in stories] == [served("storage:local")[SKIPPED], served("all")[SKIPPED]]


def test_swapped_the_changes_are_the_other_way_round() -> None:
    session = chat_session()
    before = compared(session)
    session.in_comparison(lambda comparison: comparison.swap())
    session.run_until_idle()
    assert session.comparison is not None
    after = session.comparison.view
    assert [after.change(request) for request in before.differing] == [
        -before.change(request) for request in before.differing
    ]


def test_sorted_by_request_they_come_in_their_order() -> None:
    session = chat_session()
    differing = compared(session).differing
    session.in_comparison(lambda comparison: comparison.sort())
    session.run_until_idle()
    assert session.comparison is not None
    assert list(session.comparison.view.differing) == sorted(differing)


def test_alike_filters_differ_nowhere() -> None:
    assert not compared(chat_session("all"), "own").differing


def test_leaving_it_shows_the_request_that_was_looked_at() -> None:
    session = chat_session()
    compared(session)
    session.in_comparison(lambda comparison: comparison.seek(100))
    session.run_until_idle()
    session.end_comparison()
    assert (session.run_until_idle().cursor, session.comparison) == (100, None)


def test_it_comes_to_an_end_where_a_slice_ends_with_the_last_request() -> None:
    comparison = Comparison(*_parts(chat_session()), "all", 0)
    slices = 0
    while comparison.work(lambda: True):  # each slice one request
        slices += 1
        assert slices < 1_000
    assert comparison.view.is_whole


def _parts(session: Session) -> tuple[Tape, Course, FilterParse | None]:
    show = session.show
    assert isinstance(show, TraceShow)
    return show.tape, show.course, draft_of("all", demo_topology()).parse
