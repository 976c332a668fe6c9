"""`kvtier replay` as a test in CI: --assert, --baseline, --tolerance, --junit."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kvtier_cli.errors import ExitStatus
from tests.conftest import CHECKOUT, Ran, RunsKvtier
from tests.workspace.in_process import run_here

CHAT, TIERS = "fixtures/chat.jsonl", ("--topology", "fixtures/demo.toml")


@pytest.fixture
def kvtier() -> RunsKvtier:
    return run_here


@cache
def replayed() -> str:
    return run_here("replay", CHAT, *TIERS, "--json", cwd=CHECKOUT).stdout


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """The figures of the chat trace under its own filters."""
    path = tmp_path / "run.json"
    path.write_text(replayed())
    return path


def replay(kvtier: RunsKvtier, *args: str) -> Ran:
    return kvtier("replay", CHAT, *TIERS, *args, cwd=CHECKOUT)


def verdicts(ran: Ran) -> list[str]:
    """The lines that tell what came of the checks."""
    lines = [line.strip() for line in ran.stdout.splitlines()]
    return [" ".join(line.split()) for line in lines if line.startswith(("ok ", "FAIL "))]


def refused(ran: Ran) -> str:
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT), ran
    assert ran.stderr.startswith("error: ")
    return ran.stderr.removeprefix("error: ")


# Demands


def test_demands_that_hold_are_told_and_leave_the_status_alone(kvtier: RunsKvtier) -> None:
    ran = replay(kvtier, "--assert", "served >= 79%", "--assert", "promoted.s3 < 1k")
    assert (verdicts(ran), ran.stderr, ran.status) == (
        ["ok served >= 79% found 4,598, 80.0 % of all", "ok promoted.s3 < 1k found 722, 12.6 % of all"],
        "",
        ExitStatus.DONE,
    )


def test_one_demand_that_does_not_hold_is_a_no_and_all_are_told(kvtier: RunsKvtier) -> None:
    ran = replay(kvtier, "--assert", "served >= 81%", "--assert", "gave_up == 0", "--assert", "bytes.s3.read < 45GiB")
    assert verdicts(ran) == [
        "FAIL served >= 81% found 4,598, 80.0 % of all",
        "ok gave_up == 0 found 0, 0.0 % of all requests",
        "FAIL bytes.s3.read < 45GiB found 45.1 GiB",
    ]
    assert ran.status == ExitStatus.NO


def test_json_has_each_demand_with_what_was_found(kvtier: RunsKvtier) -> None:
    ran = replay(kvtier, "--json", "--assert", "rates.s3_of_asked >= 99%")
    document = json.loads(ran.stdout)
    (told,) = document["asserts"]
    value = document["figures"]["rates"]["s3_of_asked"]["value"]
    assert told == {
        "expression": "rates.s3_of_asked >= 99%",
        "figure": "rates.s3_of_asked.value",
        "found": value,
        "share": value,
        "holds": False,
    }
    assert ran.status == ExitStatus.NO
    assert "asserts" not in json.loads(replay(kvtier, "--json").stdout)


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("servd >= 36%", '--assert "servd >= 36%":1: there is no figure "servd"\n       Did you mean "served"?\n'),
        ("promoted.tape > 1", '--assert "promoted.tape > 1":1: there is no figure "promoted.tape"\n'),
        ("served => 36%", '--assert "served => 36%":8: expected >=, <=, >, <, == or !=, found "=>"\n'),
    ],
)
def test_a_demand_is_understood_before_the_trace_is_read(
    kvtier: RunsKvtier, tmp_path: Path, demand: str, said: str
) -> None:
    trace = tmp_path / "bad.jsonl"
    trace.write_text('{"input_length": 1, "hash_ids": [1]}\n{"input_length": -1, "hash_ids": [1]}\n')
    assert refused(kvtier("replay", str(trace), "--assert", demand)).startswith(said)


def test_each_run_of_several_is_judged(kvtier: RunsKvtier) -> None:
    ran = kvtier("replay", CHAT, "fixtures/agent.jsonl", *TIERS, "--assert", "served >= 85%", cwd=CHECKOUT)
    assert [line.split()[0] for line in verdicts(ran)] == ["FAIL", "ok"]
    assert ran.status == ExitStatus.NO


@pytest.mark.parametrize("check", [("--assert", "served > 1"), ("--baseline", "run.json")])
def test_demands_and_baselines_are_not_for_fixtures(kvtier: RunsKvtier, check: tuple[str, str]) -> None:
    ran = kvtier("replay", "fixtures/retry.yaml", *check, cwd=CHECKOUT)
    assert f"{check[0]} does not apply to a scripted fixture" in refused(ran)


# The baseline


def test_the_same_run_equals_its_baseline(kvtier: RunsKvtier, baseline: Path) -> None:
    ran = replay(kvtier, "--baseline", str(baseline))
    (told,) = verdicts(ran)
    assert told.startswith("ok baseline")
    assert " figures equal" in ran.stdout
    assert (ran.stderr, ran.status) == ("", ExitStatus.DONE)


def test_figures_that_left_the_baseline_are_listed_with_both_values(kvtier: RunsKvtier, baseline: Path) -> None:
    ran = replay(kvtier, "--tiers", "storage:local", "--baseline", str(baseline), "--tolerance", "0.5pt", "-v")
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["blocks_loaded", "4,598", "3,872", "-726", "-12.6"] in lines
    assert ["promoted_by_tier.s3", "722", "0", "-722", "-12.6"] in lines
    assert ["rates.s3_of_asked.value", "62.0", "%", "none"] in lines
    assert not any(line[:1] == ["outcomes.primary"] for line in lines), "0.4 points are tolerated"
    assert not any(line[:1] == ["lookups"] for line in lines), "lookups are no part of all blocks"
    assert ran.status == ExitStatus.NO
    assert ran.stderr == f"note: {baseline}: its requests had another filter\n"


@pytest.mark.parametrize(
    ("tolerance", "status"),
    [("0", 1), ("500", 1), ("2k", 0), ("12pt", 1), ("63pt", 1), ("10%", 1), ("100%", 1)],
)
def test_how_far_a_figure_may_be(kvtier: RunsKvtier, baseline: Path, tolerance: str, status: int) -> None:
    ran = replay(kvtier, "--tiers", "storage:local", "--baseline", str(baseline), "--tolerance", tolerance)
    assert ran.status == status, verdicts(ran)


def test_json_has_the_figures_that_differ_and_the_notes(kvtier: RunsKvtier, baseline: Path) -> None:
    args = ("--tiers", "storage:local", "--baseline", str(baseline), "--tolerance", "1000", "--json")
    found = json.loads(replay(kvtier, *args).stdout)["baseline"]
    assert (found["file"], found["tolerance"]) == (str(baseline), "1000")
    assert found["notes"] == ["its requests had another filter"]
    (first, *_) = found["differences"]
    assert {key: first[key] for key in ("figure", "baseline", "found", "delta")} == {
        "figure": "lookups",
        "baseline": 8081,
        "found": 6399,
        "delta": -1682,
    }


def test_other_tiers_and_another_file_are_notes_and_no_failure(
    kvtier: RunsKvtier, baseline: Path, tmp_path: Path
) -> None:
    copy, tiers = tmp_path / "copy.jsonl", tmp_path / "demo.toml"
    copy.write_bytes((CHECKOUT / CHAT).read_bytes())
    tiers.write_text((CHECKOUT / "fixtures/demo.toml").read_text() + 'bandwidth = "1GB/s"\n')
    ran = kvtier("replay", str(copy), "--topology", str(tiers), "--baseline", str(baseline))
    assert ran.status == ExitStatus.DONE
    assert [line.partition("run.json: ")[2] for line in ran.stderr.splitlines()] == [
        "its topology is another one",
        'it replayed "fixtures/chat.jsonl"',
    ]


def test_a_figure_that_only_one_of_both_has_is_a_note(kvtier: RunsKvtier, baseline: Path) -> None:
    document = json.loads(baseline.read_text())
    del document["figures"]["evicted_unread"]
    baseline.write_text(json.dumps(document))
    ran = replay(kvtier, "--baseline", str(baseline))
    assert ran.status == ExitStatus.DONE
    assert ran.stderr.endswith("only one of both has evicted_unread: not compared\n")


def test_several_traces_have_several_baselines(kvtier: RunsKvtier, tmp_path: Path) -> None:
    both = ("replay", CHAT, "fixtures/agent.jsonl", *TIERS)
    path = tmp_path / "both.json"
    path.write_text(kvtier(*both, "--json", cwd=CHECKOUT).stdout)
    ran = kvtier(*both, "--baseline", str(path), cwd=CHECKOUT)
    assert ([line.split()[0] for line in verdicts(ran)], ran.status) == (["ok", "ok"], ExitStatus.DONE)
    assert replay(kvtier, "--baseline", str(path)).status == ExitStatus.DONE, "the run of the same trace is meant"
    other = kvtier("replay", "fixtures/agent.jsonl", CHAT, CHAT, *TIERS, "--baseline", str(path), cwd=CHECKOUT)
    assert other.status == ExitStatus.DONE
    single = tmp_path / "one.jsonl"
    single.write_bytes((CHECKOUT / CHAT).read_bytes())
    assert "holds 2 runs, where there is 1 now" in refused(kvtier("replay", str(single), "--baseline", str(path)))


def document_with(**figures: Any) -> str:
    return json.dumps({"schema": "kvtier.replay/1", "figures": {"requests": 1, "blocks": 2, **figures}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1:1: not JSON: expected a value, found the end of the text"),
        ("<xml>", ':1:1: not JSON: expected a value, found "<"'),
        ("[]", ': expected a document of schema "kvtier.replay/1", found a list'),
        ('{"schema": "kvtier.filter/1"}', ': expected a document of schema "kvtier.replay/1", found one of schema'),
        ('{"schema": "kvtier.replay/1"}', ": $.figures: expected an object, found null"),
        ('{"schema": "kvtier.replay/1", "runs": 3}', ": $.runs: expected a list, found a number"),
        ('{"schema": "kvtier.replay/1", "runs": [{}]}', ": $.runs[0].figures: expected an object, found null"),
        (document_with(outcomes={"absent": True}), ": $.figures.outcomes.absent: expected a number, found true"),
        (document_with(steps=[1]), ": $.figures.steps: expected a number, found a list"),
        (document_with(blocks=None), ": $.figures.blocks: expected a number, found null"),
        (
            '{"schema": "kvtier.replay/1", "figures": {"blocks": NaN}}',
            ": $.figures.blocks: expected a number, found nan",
        ),
    ],
)
def test_what_is_no_replay_document_is_refused(kvtier: RunsKvtier, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    assert refused(replay(kvtier, "--baseline", str(path))).startswith(f"{path}{said}")


def test_a_tolerance_needs_a_baseline_and_a_unit_that_is_known(kvtier: RunsKvtier, baseline: Path) -> None:
    assert "--tolerance is for --baseline" in refused(replay(kvtier, "--tolerance", "1%"))
    for text in ("1px", "", "-1", "0.5"):
        said = refused(replay(kvtier, "--baseline", str(baseline), "--tolerance", text))
        assert said.startswith("--tolerance: ")
        assert "expected 0.5pt" in said


# JUnit


def cases(path: Path) -> dict[str, str | None]:
    """The names of all test cases, with the message of those that failed."""
    found = {}
    for case in ET.fromstring(path.read_bytes()).iter("testcase"):
        failure = case.find("failure")
        found[case.attrib["name"]] = None if failure is None else failure.attrib["message"]
    return found


def test_a_trace_is_a_test_case_and_so_is_each_demand_and_figure(
    kvtier: RunsKvtier, baseline: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.xml"
    args = ("--tiers", "storage:local", "--assert", "served >= 79%", "--baseline", str(baseline), "--junit", str(out))
    assert replay(kvtier, *args).status == ExitStatus.NO
    told = cases(out)
    assert told["replayed"] is None
    assert told["assert served >= 79%"] == "found 3,872, 67.4 % of all"
    assert told["baseline blocks"] is None
    assert told["baseline blocks_loaded"] == "blocks_loaded: baseline 4,598, found 3,872"
    first = out.read_bytes()
    replay(kvtier, *args)
    assert out.read_bytes() == first


def test_a_fixture_is_a_test_case_with_what_failed_in_it(kvtier: RunsKvtier, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.yaml", tmp_path / "out.xml"
    text = (CHECKOUT / "fixtures" / "tier-skip.yaml").read_text()
    bad.write_text(text.replace("HIT_PENDING", "HIT").replace("title: ", 'title: "\\x00 <b>" #'))
    ran = kvtier("replay", str(bad), "fixtures/retry.yaml", CHAT, "--junit", str(out), cwd=CHECKOUT)
    assert ran.status == ExitStatus.NO
    root = ET.fromstring(out.read_bytes())
    assert [suite.attrib["name"] for suite in root] == [str(bad), "fixtures/retry.yaml", CHAT]
    assert [suite.attrib["failures"] for suite in root] == ["1", "0", "0"]
    (failure,) = root.iter("failure")
    assert "expected result HIT, found HIT_PENDING" in (failure.text or "")
    assert r"\x00 <b>" in cases(out)


@pytest.mark.parametrize(
    ("out", "status", "said"),
    [
        ("-", 2, "--junit - and the result both write to stdout"),
        ("t.jsonl", 2, "t.jsonl: is the trace itself, which --junit would overwrite"),
        ("nowhere/out.xml", 2, "nowhere/out.xml: lies in no folder that there is"),
    ],
)
def test_where_junit_cannot_go(kvtier: RunsKvtier, tmp_path: Path, out: str, status: int, said: str) -> None:
    (tmp_path / "t.jsonl").write_bytes((CHECKOUT / CHAT).read_bytes())
    ran = kvtier("replay", "t.jsonl", "--junit", out, cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", status)
    assert said in ran.stderr
    assert (tmp_path / "t.jsonl").read_bytes() == (CHECKOUT / CHAT).read_bytes()


def test_junit_does_not_take_the_place_of_the_baseline_or_of_the_events(
    kvtier: RunsKvtier, baseline: Path, tmp_path: Path
) -> None:
    before = baseline.read_bytes()
    said = refused(replay(kvtier, "--baseline", str(baseline), "--junit", str(baseline)))
    assert "is the baseline itself, which --junit would overwrite" in said
    assert baseline.read_bytes() == before
    out = str(tmp_path / "out")
    assert "write to the same file" in refused(replay(kvtier, "--events", out, "--junit", out))


@pytest.mark.parametrize(("option", "given"), [("--topology", "in.json"), ("--tiers", "@in.json")])
def test_junit_does_not_take_the_place_of_what_else_is_read(
    kvtier: RunsKvtier, tmp_path: Path, option: str, given: str
) -> None:
    text = "{}" if option == "--topology" else "[]"
    (tmp_path / "in.json").write_text(text)
    kind = "topology" if option == "--topology" else "filter"
    ran = kvtier("replay", str(CHECKOUT / CHAT), option, given, "--junit", "in.json", cwd=tmp_path)
    assert f"in.json: is the {kind} itself, which --junit would overwrite" in refused(ran)
    assert (tmp_path / "in.json").read_text() == text


def test_a_run_that_ends_with_an_error_leaves_no_junit_file(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"input_length": -1, "hash_ids": [1]}\n')
    assert kvtier("replay", "t.jsonl", "--junit", "out.xml", cwd=tmp_path).status == ExitStatus.INPUT
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]
