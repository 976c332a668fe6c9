"""`kvtier filter`, as its users and their CI see it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran, RunsKvtier, in_terminal

PEER = '{"tiers":[{"name":"nvme","medium":"storage","locality":"local"},{"name":"peer"}]}'


def report(ran: Ran) -> dict[str, Any]:
    assert ran.stderr == ""
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def codes(notes: list[dict[str, Any]]) -> list[str]:
    return [note["code"] for note in notes]


BODY = {"model": "m", "messages": [], "kv_transfer_params": {"kv_load_tiers": [{"medium": "storage"}]}}
BARE_BODY = {"model": "m", "messages": []}

CASES: list[tuple[str, object, list[str], list[str], list[str], int]] = [
    # FILTER, effective, vLLM's warnings, our lint, the tiers it admits, exit status under --strict
    ("all", "ALL", [], ["absent"], ["nvme", "s3"], 0),
    (json.dumps(BARE_BODY), "ALL", [], ["absent"], ["nvme", "s3"], 0),
    ("null", "ALL", [], ["absent"], ["nvme", "s3"], 0),
    ("[]", [], [], ["deny_all"], [], 0),
    ("deny", [], [], ["deny_all"], [], 0),
    ("[{}]", [[None, None]], [], ["admits_everything"], ["nvme", "s3"], 0),
    ("{}", "ALL", ["not_a_list"], ["fails_open"], ["nvme", "s3"], 1),
    ('"storage"', "ALL", ["not_a_list"], ["fails_open"], ["nvme", "s3"], 1),
    ('[{"medium":"fs"}]', "ALL", ["unknown_medium"], ["fails_open"], ["nvme", "s3"], 1),
    ('[{"medium":5}]', "ALL", ["unknown_medium"], ["fails_open"], ["nvme", "s3"], 1),
    ('[{"locality":"global"}]', "ALL", ["unknown_locality"], ["fails_open"], ["nvme", "s3"], 1),
    (
        '[{"medum":"storage"}]',
        [[None, None]],
        [],
        ["fails_open", "unknown_key", "admits_everything"],
        ["nvme", "s3"],
        1,
    ),
    (
        '[{"medium":"STORAGE"},{"medium":"nvme"}]',
        [["STORAGE", None]],
        ["unknown_medium"],
        [],
        ["nvme", "s3"],
        1,
    ),
    (
        '[{"medium":"storage"},{"medium":"storage","locality":"local"}]',
        [["STORAGE", None], ["STORAGE", "LOCAL"]],
        [],
        ["covered"],
        ["nvme", "s3"],
        0,
    ),
    ("storage:local", [["STORAGE", "LOCAL"]], [], [], ["nvme"], 0),
    ("cpu", [["CPU", None]], [], ["cpu_secondary_only", "primary_only"], [], 0),
    ("remote,cpu:local", [[None, "REMOTE"], ["CPU", "LOCAL"]], [], ["cpu_secondary_only", "unmet"], ["s3"], 1),
    (json.dumps(BODY), [["STORAGE", None]], [], [], ["nvme", "s3"], 0),
    (json.dumps(BODY["kv_transfer_params"]), [["STORAGE", None]], [], [], ["nvme", "s3"], 0),
    ('{"model":"m","kv_load_tiers":[]}', "ALL", [], ["unknown_key", "absent"], ["nvme", "s3"], 1),
]


@pytest.mark.parametrize(("text", "effective", "warnings", "lint", "admitted", "status"), CASES)
def test_what_a_filter_comes_to(
    kvtier: RunsKvtier,
    text: str,
    effective: object,
    warnings: list[str],
    lint: list[str],
    admitted: list[str],
    status: int,
) -> None:
    ran = kvtier("filter", text, "--strict", "--json")
    found = report(ran)
    if isinstance(effective, list):
        effective = [{"medium": medium, "locality": locality} for medium, locality in effective]
    assert found["effective"] == effective
    assert codes(found["warnings"]) == warnings
    assert codes(found["lint"]) == lint
    assert found["fails_open"] == ("fails_open" in lint)
    assert [tier["name"] for tier in found["tiers"] if tier["admitted"]] == ["cpu", *admitted]
    assert ran.status == status
    assert bool(found["faults"]) == bool(status)


def test_the_answer_comes_first_then_each_entry_then_each_tier(kvtier: RunsKvtier) -> None:
    ran = kvtier("filter", '[{"medum":"storage"}]', "--topology", PEER, env={"COLUMNS": "100"})
    assert ran.stdout == (
        'Admits every tier. Nothing in it restricts anything: vLLM ignores the key "medum".\n'
        "\n"
        "  #  entry                read as                   note\n"
        '  0  {"medum":"storage"}  any medium, any locality  unknown key "medum", did you mean "medium"?\n'
        "\n"
        "  tier  medium   locality  under this filter\n"
        "  cpu   primary            always asked, no filter applies to it\n"
        "  nvme  storage  local     admitted by entry 0\n"
        "  peer  –        –         admitted: declares nothing, so only [] stops it\n"
        "\n"
        "vLLM 0.33.0 would log 0 warnings. The tiers are those of the inline topology.\n"
        'You probably mean:  kvtier filter \'[{"medium":"storage"}]\'\n'
    )
    assert (ran.stderr, ran.status) == ("", 0)


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("all", "Admits every tier: there is no filter."),
        ("null", "Admits every tier: null is no filter."),
        (json.dumps(BARE_BODY), "Admits every tier: the request carries no kv_load_tiers."),
        ("deny", "Admits no secondary tier: only blocks in the CPU tier are served."),
        ("7", "Admits every tier: a number is not a list, and so the filter fails open."),
        ('[{"medium":"fs"}]', "Admits every tier: every entry is dropped, and so the filter fails open."),
        ("local,remote", "Admits every tier. Together the entries leave none out."),
        ("storage,any", "Admits every tier. Entry 1 restricts nothing."),
        ("storage:local", "Admits 1 of 2 secondary tiers: nvme. Skips s3."),
        ("storage", "Admits 2 of 2 secondary tiers: nvme, s3."),
        ("cpu", "Admits 0 of 2 secondary tiers. Skips nvme, s3."),
    ],
)
def test_the_first_line_says_which_tiers_may_serve(kvtier: RunsKvtier, text: str, headline: str) -> None:
    assert kvtier("filter", text).stdout.splitlines()[0] == headline


def test_a_skipped_tier_is_told_why(kvtier: RunsKvtier) -> None:
    assert "SKIPPED: its locality REMOTE matches no entry" in kvtier("filter", "storage:local").stdout


def test_strict_names_the_faults(kvtier: RunsKvtier) -> None:
    ran = kvtier("filter", '[{"medium":"fs"},{"medium":"x"}]', "--strict")
    assert ran.stdout.splitlines()[-1] == "strict: 3 faults: unknown_medium 2, fails_open"
    assert ran.status == 1
    assert kvtier("filter", "storage", "--strict").stdout.splitlines()[-1] == "strict: no fault"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stroage"], 'error: filter: unknown word "stroage" in the short form\n       did you mean "storage"?\n'),
        (["[1"], 'error: filter:1:3: not JSON: expected "," or the closing bracket, found the end of the text\n'),
        (["@nothing.json"], "error: nothing.json: cannot be read: no such file or directory\n"),
        (["storage", "--topology", "nothing.toml"], "error: nothing.toml: cannot be read: no such file or directory\n"),
        (
            ["storage", "--topology", '{"tiers":[{"name":"a","capasity":1}]}'],
            'error: topology:1:34: tiers[0].capasity: unknown field\n       did you mean "capacity"?\n',
        ),
        (["[" * 100_000], "error: filter: brackets are nested too deeply\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_cannot_be_read_is_an_error_of_the_input(
    kvtier: RunsKvtier, arguments: list[str], said: str, form: list[str]
) -> None:
    ran = kvtier("filter", *arguments, *form)
    assert (ran.stdout, ran.stderr, ran.status) == ("", said, 2)


def test_without_an_argument_the_usage_is_told(kvtier: RunsKvtier) -> None:
    ran = kvtier("filter")
    assert (ran.stdout, ran.status) == ("", 2)
    assert "FILTER" in ran.stderr


def test_the_filter_may_come_from_stdin(kvtier: RunsKvtier) -> None:
    found = report(kvtier("filter", "-", "--json", stdin=json.dumps(BODY)))
    assert found["form"] == "request body"
    assert found["effective"] == [{"medium": "STORAGE", "locality": None}]


def test_a_terminal_is_not_waited_for() -> None:
    seen = in_terminal([sys.executable, "-m", "kvtier_cli.main", "filter", "-"], {})
    assert "stdin, which is a terminal" in seen


def test_the_topology_may_come_from_the_environment(kvtier: RunsKvtier) -> None:
    found = report(kvtier("filter", "cpu", "--json", env={"KVTIER_TOPOLOGY": PEER}))
    assert [(tier["name"], tier["admitted"]) for tier in found["tiers"]] == [
        ("cpu", True),
        ("nvme", False),
        ("peer", True),
    ]


def test_a_hundred_thousand_entries_are_read_summed_up_and_kept_whole_in_json(
    kvtier: RunsKvtier, tmp_path: Path
) -> None:
    file = tmp_path / "huge.json"
    file.write_text(json.dumps([{"medium": "storage"}, {"medium": "fs"}] * 50_000))
    ran = kvtier("filter", f"@{file}", "--strict")
    assert "and 99,988 more entries" in ran.stdout
    assert "vLLM 0.33.0 would log 50,000 warnings" in ran.stdout
    assert len(ran.stdout.splitlines()) < 60
    assert ran.status == 1
    found = report(kvtier("filter", f"@{file}", "--json"))
    assert [len(found[part]) for part in ("entries", "warnings", "effective")] == [100_000, 50_000, 50_000]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_line_fits_the_width(kvtier: RunsKvtier, width: int) -> None:
    text = '[{"medium":"storage","locality":"local"},{"medum":"a rather long value of a key"},{"medium":"cpu"}]'
    for line in kvtier("filter", text, env={"COLUMNS": str(width)}).stdout.splitlines():
        assert len(line) <= width or line.startswith("You probably mean:")


def test_escape_codes_and_markup_in_names_and_filters_do_nothing(kvtier: RunsKvtier) -> None:
    name = json.dumps("\x1b[31m\u202e[b]x")
    ran = kvtier(
        "filter",
        '[{"medium":"\\u001b[2J"},{"\\u001b]0;x\\u0007":1}]',
        "--topology",
        f'{{"tiers":[{{"name":{name}}}]}}',
        env={"FORCE_COLOR": "0"},
    )
    assert "\x1b" not in ran.stdout
    assert "\u202e" not in ran.stdout
    assert "\\x1b[31m\\u202e[b]x" in ran.stdout


def test_colour_is_for_terminals_and_never_alone(kvtier: RunsKvtier) -> None:
    plain_text = kvtier("filter", "storage:local").stdout
    assert "\x1b" not in plain_text
    coloured = in_terminal([sys.executable, "-m", "kvtier_cli.main", "filter", "storage:local"], {})
    assert "\x1b[" in coloured
    assert "SKIPPED" in plain_text
    assert kvtier("filter", "storage:local", "--ascii").stdout.isascii()
