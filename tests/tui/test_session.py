"""The session shows what a replay without a dashboard does, wherever the cursor is and however it came there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.trace_lookup import request_story
from tests.tui.shows import AGENT, CHAT, SKIPPED, chat_session, chat_show, demo_topology, plain_run, session_on
from tui.session.filter_draft import draft_of
from tui.session.rows import Mark, outcome_of, promoted_from
from tui.session.session import SPEEDS, Session

CASES = [("storage:local", CHAT), ("own", CHAT), ("deny", AGENT), ("all", AGENT)]


@pytest.mark.parametrize(("text", "trace"), CASES)
def test_at_the_end_the_figures_are_those_of_a_replay(text: str, trace: str) -> None:
    session = chat_session(text, start=0, trace=trace)
    session.seek(10**9)
    snapshot = session.run_until_idle()
    assert snapshot.moment is not None
    assert (snapshot.cursor, snapshot.moment.index) == (snapshot.total - 1, snapshot.total - 1)
    assert snapshot.moment.figures == plain_run(text, trace).run()


@pytest.mark.parametrize("text", ["own", "local"])
def test_requests_keep_the_caps_that_they_carry(text: str, tmp_path: Path) -> None:
    caps = [{}, {"max_load_tokens": 1024}, {"max_offload_tokens": 1536}, {"max_load_tokens": 0}]
    lines = Path(CHAT).read_text().splitlines()
    requests = [{**json.loads(line), "kv_transfer_params": caps[at % 4]} for at, line in enumerate(lines)]
    trace = tmp_path / "capped.jsonl"
    trace.write_text("".join(f"{json.dumps(request)}\n" for request in requests))
    session = chat_session(text, start=0, trace=str(trace))
    session.seek(10**9)
    moment = session.run_until_idle().moment
    figures = plain_run(text, str(trace)).run()
    assert figures["unreached_capped"]
    assert moment is not None
    assert moment.figures == figures
    session.seek(97)
    moment = session.run_until_idle().moment
    parse = draft_of(text, demo_topology()).parse
    assert moment is not None
    assert moment.story == request_story(plain_run(text, str(trace)), 97, parse)


@pytest.mark.parametrize("request_number", [0, 97, SKIPPED, 298])
def test_a_request_is_told_as_a_lookup_after_its_history_tells_it(request_number: int) -> None:
    session = chat_session(start=298)
    for way in (150, request_number):  # back through a checkpoint, and on or back from there
        session.seek(way)
        session.run_until_idle()
    moment = session.snapshot.moment
    assert moment is not None
    assert moment.story == request_story(plain_run(), request_number, draft_of("storage:local", demo_topology()).parse)


def test_the_next_request_can_be_asked_for_as_soon_as_the_first_is_there() -> None:
    session = Session(chat_show())  # no more of it is read by then
    while session.snapshot.moment is None:
        session.turn()
    session.move(1)
    session.turn()
    assert session.snapshot.moment.index == 1


def test_every_row_has_the_outcomes_of_its_request() -> None:
    session = chat_session("own", start=0, trace=AGENT)
    rows = session.snapshot.rows
    assert rows is not None
    for number in range(0, session.snapshot.known, 7):
        session.seek(number)
        moment = session.run_until_idle().moment
        assert moment is not None
        assert moment.story is not None
        names = [tier.name for tier in moment.story.tiers[1:]]
        row = rows.row(number)
        assert [outcome_of(code) for code in row.codes] == [block.outcome for block in moment.story.blocks]
        told = [block.tier for block in moment.story.blocks if block.outcome is Outcome.PROMOTED]
        assert [names[at] for code in row.codes if (at := promoted_from(code)) is not None] == told
        assert (row.served, row.passes) == (moment.story.served, moment.story.passes)


def test_the_first_picture_is_there_before_the_trace_is_read() -> None:
    session = Session(chat_show(), start=0)
    session.turn()
    assert session.snapshot.moment is not None
    assert (session.snapshot.moment.index, session.snapshot.is_total) == (0, False)


def test_an_order_ends_a_slice_of_work_at_once() -> None:
    session = Session(chat_show(), start=0)
    session.turn()
    session.seek(5)
    assert session.show.work(lambda: session.has_orders)  # there is more to do, and it comes back all the same
    assert session.show.listing.count == 1


@pytest.mark.parametrize("mark", list(Mark))
def test_jumps_find_the_next_and_the_last_request_of_a_kind(mark: Mark) -> None:
    session = chat_session("storage:local", start=0, trace=AGENT)
    before, found = -1, []
    while True:
        session.jump(mark)
        snapshot = session.run_until_idle()
        if snapshot.said:
            break
        assert snapshot.cursor > before
        before = snapshot.cursor
        found.append(before)
    back = [session.snapshot.cursor] if found else []
    while found:
        session.jump(mark, backwards=True)
        snapshot = session.run_until_idle()
        if snapshot.said or snapshot.cursor == 0:
            break
        back.append(snapshot.cursor)
    assert sorted(back) == [number for number in found if number]
    if mark is Mark.SKIP:
        run = plain_run("storage:local", AGENT)
        stops = [run.sums.stop for _ in run.steps()]
        filtered = [at for at, stop in enumerate(stops) if stop is not None and stop.outcome is Outcome.FILTERED]
        assert found == [at for at in filtered if at]


def test_a_jump_waits_for_the_replay_to_get_there() -> None:
    session = Session(chat_show(), start=0)
    session.turn()
    session.jump(Mark.SKIP)
    session.turn()
    assert session.run_until_idle().cursor == next(
        at for at, row in enumerate(map(session.snapshot.listing.row, range(299))) if row.outcome is Outcome.FILTERED
    )


def test_a_filter_from_the_start_is_another_replay() -> None:
    session = chat_session("own", start=200)
    session.set_filter(draft_of("deny", demo_topology()).parse, "deny")
    session.seek(298)
    moment = session.run_until_idle().moment
    assert moment is not None
    assert moment.figures == plain_run("deny").run()


def test_a_filter_from_here_leaves_what_was_before_as_it_was() -> None:
    session = chat_session("own", start=SKIPPED)
    rows = session.snapshot.rows
    assert rows is not None
    before = rows.codes(0, SKIPPED)
    deny = draft_of("deny", demo_topology()).parse
    session.set_filter(deny, "deny", from_here=True)
    moment, rows = session.run_until_idle().moment, session.snapshot.rows
    assert moment is not None
    assert rows is not None
    assert rows.codes(0, SKIPPED) == before
    assert moment.story == request_story(plain_run("own"), SKIPPED, deny)
    assert (session.snapshot.filter.text, session.snapshot.filter.since) == ("deny", SKIPPED)
    session.seek(SKIPPED - 1)
    assert session.run_until_idle().filter.own


def test_it_plays_at_its_speed_and_stops_at_the_end() -> None:
    now = [100.0]
    session = Session(chat_show(), start=0, clock=lambda: now[0])
    session.run_until_idle()
    session.toggle_play()
    session.turn()
    now[0] += 2.0
    session.run_until_idle()
    assert (session.snapshot.cursor, session.snapshot.playing, session.snapshot.speed) == (16, True, 8)
    session.change_speed(1)
    session.turn()
    now[0] += 1.0
    session.run_until_idle()
    assert session.snapshot.cursor == 32
    session.pause()
    session.turn()
    now[0] += 60.0
    session.run_until_idle()
    assert (session.snapshot.cursor, session.snapshot.seconds) == (32, 3.0)
    session.toggle_play()
    session.turn()
    now[0] += 60.0
    session.run_until_idle()
    assert (session.snapshot.cursor, session.snapshot.playing) == (298, False)


def test_at_full_speed_it_gets_to_the_end_by_the_same_decisions() -> None:
    session = Session(chat_show(), start=0)
    session.change_speed(len(SPEEDS))
    session.toggle_play()
    snapshot = session.run_until_idle()
    assert snapshot.moment is not None
    assert (snapshot.speed, snapshot.playing, snapshot.cursor) == (None, False, 298)
    assert snapshot.moment.figures == plain_run().run()
    session.seek(0)
    session.toggle_play()  # and again, now that all is replayed
    snapshot = session.run_until_idle()
    assert (snapshot.playing, snapshot.cursor) == (False, 298)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The first lines of a trace, then one that is no request, then more."""
    lines = Path(CHAT).read_text().splitlines()[:30]
    lines.insert(20, '{"input_length": 5, "hash_ids": ["[red]", {}]}')
    path = tmp_path / "broken.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_line_that_is_no_request_stops_the_replay_and_nothing_is_lost(broken: Path) -> None:
    session = session_on(broken)
    snapshot = session.snapshot
    assert snapshot.fault is not None
    assert snapshot.fault.where.startswith(f"{broken}:21")
    assert (snapshot.fault.can_skip, snapshot.known) == (True, 20)
    session.seek(19)
    moment = session.run_until_idle().moment
    assert moment is not None
    assert moment.index == 19
    session.seek(20)
    assert session.run_until_idle().cursor == 19


def test_a_fault_of_our_own_is_told_and_the_session_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    session = chat_session(start=10)
    with monkeypatch.context() as patch:
        patch.setattr(type(session.show), "moment", lambda *_: 1 / 0)
        session.seek(11)
        snapshot = session.run_until_idle()
    assert snapshot.fault is not None
    assert "ZeroDivisionError" in snapshot.fault.message
    assert (snapshot.cursor, snapshot.moment and snapshot.moment.index) == (10, 10)
    session.seek(12)
    moment = session.run_until_idle().moment
    assert moment is not None
    assert moment.index == 12


@pytest.mark.parametrize(("text", "found"), [("r97", 97), ("97", 97), ("t30.21", None)])
def test_requests_are_found_by_number_or_id(text: str, found: int | None) -> None:
    chat, agent = chat_session(start=0), chat_session("own", start=0, trace=AGENT)
    chat.go_to(text)
    assert chat.run_until_idle().cursor == (found or 0)
    assert bool(chat.snapshot.said) is (found is None)
    agent.go_to("t30.21")
    moment = agent.run_until_idle().moment
    assert moment is not None
    assert moment.label == "t30.21"


def test_a_block_is_found_in_every_request_that_has_it_round_the_end() -> None:
    session = chat_session(start=0)
    lines = Path(CHAT).read_text().splitlines()
    having = [at for at, line in enumerate(lines) if 242 in json.loads(line)["hash_ids"]]
    for expected in [*having, having[0]]:
        session.find("242")
        snapshot = session.run_until_idle()
        assert snapshot.cursor == expected
        assert snapshot.moment is not None
        assert snapshot.moment.story is not None
        assert snapshot.block is not None
        assert snapshot.moment.story.blocks[snapshot.block].name == "242"
    session.find("242", backwards=True)
    assert session.run_until_idle().cursor == having[-1]


def test_events_are_bounded_and_the_latest_come_first() -> None:
    session = chat_session(start=298)
    moment = session.snapshot.moment
    assert moment is not None
    steps = [view.event.step for view in moment.events]
    assert steps == sorted(steps, reverse=True)
    assert len(steps) <= 300
    assert moment.events[0].request == "r298"


def test_the_screen_is_told_of_orders_and_not_of_what_goes_on_behind_it() -> None:
    told = []
    session = Session(chat_show(), start=0, on_change=lambda: told.append(session.snapshot.cursor))
    session.run_until_idle()
    assert told == [0]
    session.seek(7)
    session.run_until_idle()
    assert told[-1] == 7


def test_it_halts_and_goes_on() -> None:
    session = Session(chat_show(), start=0)
    session.turn()
    session.halt()
    known = session.run_until_idle().known
    assert known < 299
    session.toggle_play()
    session.pause()
    assert session.run_until_idle().known == 299
