"""`kvtier explain` of a decision log, as its users see it: at once, and no more than a log knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.render.console import cell_width
from tests.commands.test_explain import FEW
from tests.commands.test_lookup import request
from tests.conftest import CHECKOUT, Ran
from tests.golden_files import assert_golden
from tests.test_import_hygiene import STARTS_WITHOUT, loaded_by
from tests.workspace.in_process import run_here

CHAT = "fixtures/chat.jsonl"


def explain(*args: str, **how: Any) -> Ran:
    return run_here("explain", *args, **{"cwd": CHECKOUT, **how})


def document(*args: str, **how: Any) -> dict[str, Any]:
    ran = explain(*args, "--json", **how)
    assert (ran.stderr, ran.status) == ("", ExitStatus.DONE)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def replayed(log: Path, *args: str, trace: str = CHAT) -> str:
    assert run_here("replay", trace, *args, "--log", str(log), "-q", cwd=CHECKOUT).status == ExitStatus.DONE
    return str(log)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of a replay under a filter for all."""
    folder = tmp_path_factory.mktemp("logs")
    return replayed(folder / "chat.kvlog", "--tiers", "local", "--topology", "fixtures/demo.toml")


@pytest.mark.parametrize(
    ("golden", "args", "width"),
    [
        ("log.txt", (), 80),
        ("log-40.txt", ("--ascii",), 40),
        ("log-life.txt", ("--block", "242"), 80),
    ],
)
def test_a_log_explains_a_request_in_the_words_of_a_replay(
    log: str, golden: str, args: tuple[str, ...], width: int
) -> None:
    ran = explain(log, "--request", "284", *args, env={"COLUMNS": str(width)})
    assert (ran.stderr, ran.status) == ("", ExitStatus.DONE)
    assert max(map(cell_width, ran.stdout.splitlines())) <= width
    assert_golden(f"explain/{golden}", ran.stdout)


def test_json_is_that_of_a_replay_with_null_for_what_a_log_does_not_know(log: str) -> None:
    told = document(log, "--request", "284")
    lived = document(CHAT, "--request", "284", "--tiers", "local", "--topology", "fixtures/demo.toml")
    assert list(told) == [*list(lived)[:4], "log", "files", *list(lived)[4:-1], "references", "warnings"]
    for name in ("trace", "request", "topology", "block_tokens", "filter", "applies_to_all", "tiers", "warnings"):
        assert told[name] == lived[name], name
    for name in ("passes", "stores", "evicted", "without_filter", "life", "references", "tiers_for", "requests_log"):
        assert told[name] is None, name
    unknown = {"result": None, "looks": None, "steps": None}
    for one, other in zip(told["blocks"], lived["blocks"], strict=True):
        assert one == {**other, **unknown, "reason": one["reason"]}
    assert told["summary"]["served"] == lived["summary"]["served"] == 13
    assert told["summary"]["stop"]["held_behind"] == 24
    assert told["summary"]["stop"]["tries"] is None


def test_an_own_filter_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(request([1], kv_load_tiers=[{"locality": "local"}]))
    told = document(replayed(tmp_path / "l.kvlog", trace=str(tmp_path / "t.jsonl")), "--request", "0")
    effective = [{"medium": None, "locality": "LOCAL"}]
    assert told["filter"] == {"effective": effective, "fails_open": None, "warnings": None, "lint": None}
    assert [tier["admitted"] for tier in told["tiers"]] == [True, True, False]
    assert not told["applies_to_all"]


def test_the_references_to_a_block_come_in_pages(log: str) -> None:
    whole = document(log, "--request", "284", "--block", "13")["references"]
    page = document(log, "--request", "284", "--block", "242", "--limit", "2", "--offset", "7")["references"]
    assert (whole["block"], whole["total"], len(whole["requests"])) == ("242", 10, 10)
    assert page["requests"] == whole["requests"][7:9]
    assert whole["requests"][0] == {
        "request": 52,
        "id": "r52",
        "index": 13,
        "outcome": "absent",
        "tier": None,
        "reason": "cold",
        "holders": [],
        "step": 53,
    }


def test_alike_in_a_row_is_one_row_but_for_the_request_itself(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(request([1, 2]) * 6)
    ran = explain(replayed(tmp_path / "l.kvlog", trace=str(tmp_path / "t.jsonl")), "--request", "4", "--block", "2")
    told = " ".join(ran.stdout.split())
    assert "The log has it 6 times: 5 primary, 1 unreached. When r5 asked last, cpu, nvme and s3 had it." in told
    rows = [line.split() for line in ran.stdout.splitlines() if " r" in line[:12]]
    assert [" ".join(row) for row in rows] == [
        "0 r0 unreached (not stored)",
        "1 to 3 r1 to r3 primary, 3 times",
        "4 r4 < primary",
        "5 r5 primary",
    ]


def test_warnings_of_the_replay_are_told_again(tmp_path: Path) -> None:
    log = replayed(tmp_path / "l.kvlog", "--topology", FEW)
    assert "warning: " in run_here("replay", CHAT, "--topology", FEW, cwd=CHECKOUT).stderr
    assert explain(log, "--request", "35").stderr == run_here("replay", CHAT, "--topology", FEW, cwd=CHECKOUT).stderr


def test_the_next_command_says_what_it_cannot_name_in_capitals(tmp_path: Path) -> None:
    text = (CHECKOUT / CHAT).read_bytes()
    log = str(tmp_path / "l.kvlog")
    run_here("replay", "-", "--topology", FEW, "--log", log, stdin=text, cwd=CHECKOUT)
    assert "kvtier explain TRACE --request 3 --topology TOPOLOGY" in " ".join(
        explain(log, "--request", "3").stdout.split()
    )


def test_names_out_of_a_log_are_inert(tmp_path: Path) -> None:
    evil = "\x1b[31m[bold]x"
    (tmp_path / "t.jsonl").write_text(request([evil, "b"], id=evil) + request([evil], id="last"))
    tiers = json.dumps({"primary": {"capacity": 1}, "tiers": [{"name": evil}]})
    log = replayed(tmp_path / "l.kvlog", "--topology", tiers, trace=str(tmp_path / "t.jsonl"))
    for args in (("--request", "last"), ("--request", evil, "--block", evil)):
        ran = explain(log, *args, "--rows", "--wide")
        assert ran.status == ExitStatus.DONE
        assert "\x1b" not in ran.stdout
        assert "\\x1b[31m[bold]x" in ran.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--tiers", "local"), "--tiers needs a replay, and this is the log of one that is over"),
        (("--topology", "{}"), "--topology needs a replay"),
        (("--skip-bad",), "--skip-bad needs a replay"),
        (("--save-fixture", "saved.yaml"), "--save-fixture needs a replay"),
        (("--block", "x"), 'request 284 has no block "x"'),
    ],
)
def test_what_takes_a_replay_is_refused(log: str, args: tuple[str, ...], said: str) -> None:
    ran = explain(log, "--request", "284", *args)
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT)
    assert ran.stderr.startswith(f"error: {log}: {said}")
    assert len(ran.stderr.splitlines()) == 2


def test_a_topology_of_the_environment_is_passed_over(log: str) -> None:
    told = document(log, "--request", "284", env={"KVTIER_TOPOLOGY": "none.toml"})
    assert told["topology"] == "fixtures/demo.toml"


def test_a_request_that_there_is_not_is_told_with_the_range(log: str) -> None:
    assert explain(log, "--request", "999").stderr == (
        f'error: {log}: has no request "999"\n       It has 299, r0 to r298.\n'
    )


def test_a_log_takes_numpy_and_nothing_else_heavy(log: str) -> None:
    assert loaded_by("explain", log, "--request", "9") & (STARTS_WITHOUT | {"yaml"}) == {"numpy"}
