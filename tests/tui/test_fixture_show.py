"""A scripted fixture op by op: what each op came to, and what it did to the tiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import headline
from kvtier_cli.shipped import shipped_folder
from kvtier_cli.tiering.model import LookupResult
from tests.tui.shows import session_on
from tui.session.rows import Mark
from tui.session.session import Session
from tui.session.views import Moment

FIXTURES = sorted(shipped_folder().glob("*.yaml"))


def after_op(session: Session, index: int) -> Moment:
    session.seek(index)
    moment = session.run_until_idle().moment
    assert moment is not None
    return moment


@pytest.mark.parametrize("file", FIXTURES, ids=lambda path: path.stem)
def test_every_shipped_fixture_runs_op_by_op_and_meets_its_expectations(file: Path) -> None:
    session = session_on(file)
    assert (session.snapshot.fault, session.snapshot.known) == (None, session.snapshot.total)
    assert not any(session.snapshot.listing.row(at).failed for at in range(session.snapshot.known))


def test_a_skipped_tier_and_then_its_promotion() -> None:
    session = session_on(next(path for path in FIXTURES if path.stem == "tier-skip"))
    skipped = after_op(session, 2)
    assert skipped.story is not None
    assert [block.outcome for block in skipped.story.blocks] == [Outcome.FILTERED]
    waiting = after_op(session, 5)
    assert waiting.pending == {0: LookupResult.HIT_PENDING}
    done = after_op(session, 7)
    assert done.story is not None
    assert (done.pending, [block.outcome for block in done.story.blocks]) == ({}, [Outcome.PROMOTED])
    assert after_op(session, 3).story == skipped.story  # a finish changes no answer


def test_whole_requests_are_told_as_their_last_pass_found_the_tiers() -> None:
    session = session_on(next(path for path in FIXTURES if path.stem == "whole-requests"))
    first = after_op(session, 0)
    assert first.story is not None
    assert [block.holders for block in first.story.blocks] == [(), (), ()]  # stored only afterwards
    assert first.story.stop is not None
    assert first.story.stop.outcome is Outcome.ABSENT


CAPPED = """
topology: {primary: {capacity: 4}, tiers: [{name: t0}]}
ops:
  - {op: seed, tier: t0, blocks: [b1, b2, b3]}
  - {op: run, id: r1, blocks: [b1, b2, b3], max_load_tokens: 16, max_offload_tokens: 0}
"""


def test_a_whole_request_with_a_cap_says_where_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "capped.yaml"
    file.write_text(CAPPED)
    story = after_op(session_on(file), 1).story
    assert story is not None
    assert [(block.outcome, block.tier) for block in story.blocks] == [
        (Outcome.PROMOTED, "t0"),
        (Outcome.UNREACHED, "t0"),
        (Outcome.UNREACHED, "t0"),
    ]
    assert headline(story).startswith("The request's max_load_tokens ends before block 1.")


FAILING = """
title: wrong
topology: {primary: {capacity: 2}, tiers: [{name: "[red]t0", medium: storage}]}
ops:
  - {op: seed, tier: "[red]t0", blocks: [b1]}
  - {op: request, id: r1}
  - {op: lookup, id: r1, block: b1, expect: {result: HIT}}
  - {op: step}
"""


def test_an_expectation_that_is_not_met_is_told_with_its_op(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(FAILING)
    session = session_on(file)
    row = session.snapshot.listing.row(2)
    assert (row.failed, row.note) == (True, "FAIL: result")
    assert 'expected result "HIT", found "HIT_PENDING"' in " ".join(after_op(session, 2).said)
    session.jump(Mark.PROMOTION)
    assert session.run_until_idle().said == "no later promotion"
    session.jump(Mark.PROMOTION, backwards=True)
    session.find("[red]t0")
    assert session.run_until_idle().cursor == 0
