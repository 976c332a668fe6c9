"""`kvtier replay` of scripted fixtures: the verdicts, the places of what is wrong, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.errors import ExitStatus
from tests.conftest import RunsKvtier

TIERS = "topology: {primary: {capacity: 2}, tiers: [{name: t0, medium: storage}]}"
WRONG = f"""\
title: two of three are wrong
{TIERS}
ops:
  - {{op: seed, tier: t0, blocks: [b1, b2]}}
  - {{op: run, id: r1, blocks: [b1, b2], expect: {{outcomes: [promoted, absent], not_resident: [b9]}}}}
  - {{op: step, expect: {{state: {{tiers: {{t0: [b2]}}}}}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `kvtier` runs: with one fixture that is right, one that is wrong and one that expects nothing."""
    (tmp_path / "wrong.yaml").write_text(WRONG)
    (tmp_path / "right.yaml").write_text("ops: [{op: step, expect: {completed: []}}]\n")
    (tmp_path / "quiet.yaml").write_text("ops: [{op: step}]\n")
    return tmp_path


def test_each_fixture_has_a_verdict_and_each_failure_its_place(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", "right.yaml", "wrong.yaml", "quiet.yaml", cwd=folder, env={"COLUMNS": "100"})
    assert (ran.stderr, ran.status) == ("", ExitStatus.NO)
    assert [line.rstrip() for line in ran.stdout.splitlines()] == [
        "ok        right.yaml                          1 op, 1 expectation",
        "FAIL      wrong.yaml  two of three are wrong  3 ops, 3 expectations",
        "  wrong.yaml:5  run r1 b1 b2   outcomes (-missing +unexpected): [promoted, -absent, +promoted]",
        "  wrong.yaml:6  step   state.tiers.t0 (-missing +unexpected): [+b1, b2]",
        "replayed  quiet.yaml                          1 op",
        "1 of 3 fixtures failed.",
    ]


def test_a_run_without_a_failure_is_a_yes(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", "right.yaml", "quiet.yaml", cwd=folder)
    assert (ran.stdout.splitlines()[-1], ran.status) == ("2 fixtures, none failed.", ExitStatus.DONE)


def test_the_state_is_shown_at_each_op_that_failed(kvtier: RunsKvtier, folder: Path) -> None:
    shown = kvtier("replay", "wrong.yaml", "--state", cwd=folder).stdout
    assert shown.count("      blocks        {b1: 0, b2: 0}\n") == 2
    assert shown.count("      tiers         {t0: [b1, b2]}\n") == 2


def test_the_document_has_both_values_whole(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", "wrong.yaml", "right.yaml", "--json", cwd=folder)
    assert (ran.stderr, ran.status) == ("", ExitStatus.NO)
    document = json.loads(ran.stdout)
    assert (document["schema"], document["passed"], document["failed"]) == ("kvtier.fixtures/1", 1, 1)
    first = document["fixtures"][0]["failures"][0]
    assert (first["line"], first["op"], first["path"]) == (5, 1, "outcomes")
    assert (first["expected"], first["found"]) == (["promoted", "absent"], ["promoted", "promoted"])


def test_many_failures_are_counted_and_told_with_v(kvtier: RunsKvtier, folder: Path) -> None:
    ops = "".join(f"  - {{op: step, expect: {{state: {{free: {number}}}}}}}\n" for number in range(10, 25))
    (folder / "many.yaml").write_text(f"ops:\n{ops}")
    shown = kvtier("replay", "many.yaml", cwd=folder).stdout
    assert (shown.count("expected state.free"), "  and 5 more (-v shows all)\n" in shown) == (10, True)
    assert kvtier("replay", "many.yaml", "-v", cwd=folder).stdout.count("expected state.free") == 15


def test_what_stands_in_a_fixture_is_shown_inert(kvtier: RunsKvtier, folder: Path) -> None:
    op = '{op: seed, tier: nvme, blocks: ["[red]b"], expect: {events: ["\\e[31m[bold]"]}}'
    text = f'title: "\\e[31m[bold]"\nops: [{op}]\n'
    (folder / "odd.yaml").write_text(text)
    for more in ([], ["--step"]):
        ran = kvtier("replay", "odd.yaml", *more, cwd=folder, env={"COLUMNS": "200", "FORCE_COLOR": "1"})
        assert "\x1b[31m[bold]" not in ran.stdout
        assert "\\x1b[31m[bold]" in ran.stdout
        assert "[red]b" in ran.stdout
