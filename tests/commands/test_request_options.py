"""Requests treated apart: --tiers-for, --tag, --by and --requests, as users of replay, compare and explain see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_replay_traces import document
from tests.conftest import RunsKvtier

TIERS = '{"primary":{"capacity":3},"tiers":[{"name":"nvme","medium":"storage","locality":"local"}]}'
TRACE = ["t.jsonl", "--topology", TIERS]


def asks(name: str, *ids: int, **more: Any) -> dict[str, Any]:
    return {"request_id": name, "input_length": 512 * len(ids), "hash_ids": list(ids), **more}


REQUESTS = [
    asks("a", 1, 2, 3, tenant="acme", meta={"plan": "gold"}),
    asks("b", 7, 8, 9, tenant="zeta"),
    asks("c", 1, 2, 3, tenant="acme"),
    asks("d", 7, 8, 9, tenant="zeta"),
    asks("e", 5),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "t.jsonl", *REQUESTS)
    return tmp_path


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def groups(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of each group what it has in common, its blocks, and those that were served."""
    return [(*group["group"].values(), group["blocks"], group["blocks_loaded"]) for group in found["groups"]["groups"]]


def test_the_figures_of_each_tenant_stand_in_a_table(kvtier: RunsKvtier, folder: Path) -> None:
    shown = kvtier("replay", *TRACE, "--by", "tenant", cwd=folder).stdout
    assert (
        "  tenant  blocks  served  of its  requests  nvme  absent  unreached\n"
        "  acme         6       3  50.0 %         2     3       1          2\n"
        "  zeta         6       3  50.0 %         2     3       1          2\n"
        "  –            1       0   0.0 %         1     0       1          0\n"
    ) in shown
    plain = kvtier("replay", *TRACE, "--by", "tenant", "--ascii", cwd=folder).stdout
    assert "\n  -            1       0   0.0 %" in plain


def test_groups_are_in_the_document_only_when_asked_for(kvtier: RunsKvtier, folder: Path) -> None:
    assert document(kvtier("replay", *TRACE, "--json", cwd=folder))["groups"] is None
    found = document(kvtier("replay", *TRACE, "--by", "tenant", "--json", cwd=folder))["groups"]
    assert (found["by"], found["others"], found["groups_limit_reached"]) == (["tenant"], None, False)
    assert found["groups"][0] == {
        "group": {"tenant": "acme"},
        "requests": 2,
        "blocks": 6,
        "blocks_loaded": 3,
        "outcomes": {
            **dict.fromkeys(("primary", "promoted", "filtered", "absent", "denied", "failed", "held", "gave_up"), 0),
            "promoted": 3,
            "absent": 1,
            "unreached": 2,
        },
        "served_by_tier": {"cpu": 0, "nvme": 3},
        "lost_to_filter": 0,
    }


def test_a_filter_by_tag_comes_before_the_one_for_all(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["--tiers", "deny", "--tiers-for", "tenant=acme", "local", "--tiers-for", "tenant=acme", "deny"]
    found = document(kvtier("replay", *TRACE, *args, "--by", "tenant", "--by", "filter", "--json", cwd=folder))
    assert [(tenant, len(filter_), blocks, served) for tenant, filter_, blocks, served in groups(found)] == [
        ("acme", 1, 6, 3),
        ("zeta", 0, 6, 0),
        (None, 0, 1, 0),
    ]
    assert [rule["when"] for rule in found["tiers_for"]] == [{"tenant": "acme"}, {"tenant": "acme"}]
    assert found["warnings"] == []


def test_requests_without_the_tag_can_have_a_filter_and_some_can_keep_their_own(
    kvtier: RunsKvtier, folder: Path
) -> None:
    args = ["--tiers", "deny", "--tiers-for", "tenant=", "cpu", "--tiers-for", "tenant=zeta", "own"]
    found = document(kvtier("replay", *TRACE, *args, "--by", "filter", "--json", cwd=folder))
    assert groups(found) == [([], 6, 0), ("ALL", 6, 3), ([{"medium": "CPU", "locality": None}], 1, 0)]
    assert [rule["filter"] and rule["filter"]["effective"] for rule in found["tiers_for"]] == [
        [{"medium": "CPU", "locality": None}],
        None,
    ]


def test_the_head_of_the_result_names_the_rules(kvtier: RunsKvtier, folder: Path) -> None:
    shown = kvtier("replay", *TRACE, "--tiers-for", "tenant=acme", "deny", cwd=folder, env={"COLUMNS": "200"}).stdout
    assert "   no filter   tenant=acme: filter deny   " in shown.splitlines()[0]


def test_any_field_of_a_record_is_a_tag_once_it_is_named(kvtier: RunsKvtier, folder: Path) -> None:
    found = document(kvtier("replay", *TRACE, "--tag", "meta.plan", "--by", "meta.plan", "--json", cwd=folder))
    assert groups(found) == [(None, 10, 6), ("gold", 3, 0)]


def test_many_groups_end_in_one_row(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", *TRACE, "--by", "tenant", "--top", "1", cwd=folder)
    assert "\n  2 more       7       3  42.9 %" in ran.stdout


def test_a_rule_that_fits_no_request_is_told(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", *TRACE, "--tiers-for", "tenant=acm", "deny", cwd=folder)
    assert (ran.stderr, ran.status) == ("warning: no request got the filter for tenant=acm\n", 0)


def test_a_filter_by_tag_that_fails_open_is_told(kvtier: RunsKvtier, folder: Path) -> None:
    ran = kvtier("replay", *TRACE, "--tiers-for", "tenant=acme", '[{"medum":"cpu"}]', cwd=folder)
    assert "warning: --tiers-for tenant=acme: the filter fails open" in ran.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--by", "tenent"], 'error: --by: unknown tag "tenent"\n       Did you mean "tenant"?'),
        (["--tiers-for", "plan=gold", "deny"], 'error: --tiers-for: unknown tag "plan"\n       --tag names'),
        (["--tiers-for", "tenant", "deny"], 'expected TAG=VALUE, found "tenant"'),
        (["--tiers-for", "tenant=acme", "storge"], 'unknown word "storge"'),
        (["--tag", "filter"], "filter is the filter that holds"),
        (["--tag", 'a"b', "--by", 'a"b'], "no field can be asked for"),
        (["--requests", "no.jsonl"], "no.jsonl"),
        (["--tiers", "-", "--tiers-for", "tenant=acme", "-"], "--tiers and --tiers-for tenant=acme both read stdin"),
        (["--tiers", "-", "--requests", "-"], "--tiers and --requests both read stdin"),
    ],
)
def test_what_cannot_be_is_refused(kvtier: RunsKvtier, folder: Path, args: list[str], words: str) -> None:
    ran = kvtier("replay", *TRACE, *args, cwd=folder)
    assert (ran.stdout, ran.status) == ("", 2)
    assert words in ran.stderr


@pytest.mark.parametrize("option", [["--by", "tenant"], ["--tiers-for", "tenant=a", "deny"], ["--requests", "log"]])
def test_scripted_fixtures_state_their_own(kvtier: RunsKvtier, option: list[str]) -> None:
    ran = kvtier("replay", "fixtures/retry.yaml", *option)
    assert (ran.stdout, ran.status) == ("", 2)
    assert f"{option[0]} does not apply to a scripted fixture" in ran.stderr


# A log of requests


@pytest.fixture
def log(folder: Path) -> str:
    deny = {"kv_load_tiers": []}
    write(
        folder / "log.jsonl",
        {"custom_id": "c", "body": {"model": "m", "extra_body": {"kv_transfer_params": deny}}},
        {"request_id": "d", "kv_transfer_params": {"max_load_tokens": 1024}},
        {"id": "z"},
    )
    return "log.jsonl"


def test_a_log_says_what_requests_carry(kvtier: RunsKvtier, folder: Path, log: str) -> None:
    found = document(kvtier("replay", *TRACE, "--requests", log, "--json", cwd=folder))
    assert (found["figures"]["blocks_loaded"], found["figures"]["requests_capped"]) == (2, 1)
    assert found["requests_log"] == "log.jsonl"
    assert found["warnings"] == [
        "log.jsonl: it has 2 of the 5 requests; the others keep their own parameters",
        "log.jsonl: 1 of its 3 requests is not in the trace",
    ]


def test_a_log_may_come_from_stdin(kvtier: RunsKvtier, folder: Path, log: str) -> None:
    text = (folder / log).read_text()
    found = document(kvtier("replay", *TRACE, "--requests", "-", "--json", cwd=folder, stdin=text))
    assert found["figures"]["requests_capped"] == 1


def test_bad_lines_of_a_log_are_told_or_left_out(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "log.jsonl").write_text('{"id": "a"}\n{"id": "c"\n')
    ran = kvtier("replay", *TRACE, "--requests", "log.jsonl", cwd=folder)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith("error: log.jsonl:2:")
    ran = kvtier("replay", *TRACE, "--requests", "log.jsonl", "--skip-bad", cwd=folder)
    assert "warning: log.jsonl: 1 bad line skipped; the first: log.jsonl:2:" in ran.stderr
    assert ran.status == 0


def test_explain_tells_a_request_under_the_filter_that_its_tag_gives_it(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["explain", *TRACE, "--request", "c", "--tiers", "all", "--tiers-for", "tenant=acme", "deny"]
    found = document(kvtier(*args, "--json", cwd=folder))
    assert found["filter"]["effective"] == []
    assert found["summary"]["served"] == 0
    assert found["without_filter"]["served"] == 3
    assert found["tiers_for"][0]["when"] == {"tenant": "acme"}


def test_explain_tells_the_cap_that_a_log_gives_a_request(kvtier: RunsKvtier, folder: Path, log: str) -> None:
    args = ["explain", *TRACE, "--request", "d", "--requests", log]
    assert kvtier(*args, cwd=folder).stdout.startswith("· The request's max_load_tokens (1,024) ends before block 2.")
    summary = document(kvtier(*args, "--json", cwd=folder))["summary"]
    assert summary["caps"] == {"max_load_tokens": 1024, "max_offload_tokens": None}
    assert summary["outcomes"]["unreached"] == 1


def test_a_decision_log_tells_which_filter_held_and_where_a_cap_ended(
    kvtier: RunsKvtier, folder: Path, log: str
) -> None:
    rules = ["--requests", log, "--tiers", "all", "--tiers-for", "tenant=acme", "deny"]
    kvtier("replay", *TRACE, *rules, "--log", "run.kvlog", cwd=folder)
    by_tag = document(kvtier("explain", "run.kvlog", "--request", "c", "--json", cwd=folder))
    assert by_tag["filter"]["effective"] == []
    capped = kvtier("explain", "run.kvlog", "--request", "d", cwd=folder)
    assert capped.stdout.startswith("· The request's max_load_tokens ends before block 2. 2 of 3 blocks served")


def test_compare_leaves_the_requests_of_a_tag_alone_in_every_variant(
    kvtier: RunsKvtier, folder: Path, log: str
) -> None:
    args = ["compare", *TRACE, "--tiers", "all", "--tiers", "deny"]
    served = {
        how: [
            each["figures"]["blocks_loaded"]
            for each in document(kvtier(*args, *more, "--json", cwd=folder))["variants"]
        ]
        for how, more in {
            "as it is": [],
            "acme alone": ["--tiers-for", "tenant=acme", "all"],
            "caps of the log": ["--requests", log],
        }.items()
    }
    assert served == {"as it is": [6, 0], "acme alone": [6, 3], "caps of the log": [5, 0]}
    shown = kvtier(*args, "--tiers-for", "tenant=acme", "all", cwd=folder, env={"COLUMNS": "300"}).stdout
    assert "tenant=acme: filter all" in shown
    assert "kvtier explain t.jsonl --tiers-for tenant=acme all --tiers deny" in shown
