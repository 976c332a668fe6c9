"""`kvtier compare` of decision logs: what a comparison by replaying says, at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import ExitStatus
from tests.commands.test_lookup import request
from tests.conftest import CHECKOUT, Ran
from tests.golden_files import assert_golden
from tests.test_import_hygiene import STARTS_WITHOUT, loaded_by
from tests.workspace.in_process import run_here

CHAT, AGENT = "fixtures/chat.jsonl", "fixtures/agent.jsonl"
DEMO = ("--topology", "fixtures/demo.toml")
OTHER = ("--topology", '{"primary":{"capacity":48,"policy":"arc"},"tiers":[{"name":"disk"}]}')
TIGHT = ("--topology", '{"primary":{"capacity":24},"tiers":[{"name":"nvme","medium":"storage","capacity":60}]}')


def compare(folder: Path, *args: str, **more: Any) -> Ran:
    return run_here("compare", *args, cwd=folder, **more)


def replayed(folder: Path, name: str, trace: str, *args: str) -> str:
    """The name of a log, in `folder`, of a replay in the checkout."""
    ran = run_here("replay", trace, *args, "--log", str(folder / name), "-q", cwd=CHECKOUT)
    assert ran.status == ExitStatus.DONE
    return name


def traced(folder: Path, name: str, *lines: str, args: tuple[str, ...] = ()) -> str:
    """The name of a log of a trace of these lines."""
    (folder / "t.jsonl").write_text("".join(lines))
    return replayed(folder, name, str(folder / "t.jsonl"), *args)


def document(ran: Ran) -> dict[str, Any]:
    assert (ran.stderr, ran.status) == ("", ExitStatus.DONE)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def refused(ran: Ran) -> str:
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT), ran
    assert len(ran.stderr.splitlines()) == 2
    return ran.stderr.removeprefix("error: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two logs of one trace are."""
    folder = tmp_path_factory.mktemp("logs")
    replayed(folder, "all.kvlog", CHAT, *DEMO)
    replayed(folder, "local.kvlog", CHAT, *DEMO, "--tiers", "storage:local")
    return folder


@pytest.mark.parametrize(
    ("trace", "variants", "common"),
    [
        (CHAT, [("--tiers", "all"), ("--tiers", "local"), ("--tiers", "deny")], DEMO),
        (CHAT, [DEMO, OTHER, TIGHT], ("--tiers", "storage")),
        (AGENT, [("--tiers", "own"), ("--tiers", "deny")], DEMO),
    ],
)
def test_logs_say_what_a_comparison_by_replaying_says(
    trace: str, variants: list[tuple[str, ...]], common: tuple[str, ...], tmp_path: Path
) -> None:
    logs = [
        replayed(tmp_path, f"{number}.kvlog", trace, *(variant if variant[-1] != "own" else ()), *common)
        for number, variant in enumerate(variants)
    ]
    options = [*(word for variant in variants for word in variant), *common]
    limits = ("--limit", "60", "--offset", "3", "--json")
    ran = compare(tmp_path, *logs, *limits)
    told, lived = json.loads(ran.stdout), json.loads(compare(CHECKOUT, trace, *options, *limits).stdout)
    for name in ("files", "block_tokens", "totals", "requests", "differences", "offset", "limit", "fail_on"):
        assert told[name] == lived[name], name
    assert told["totals"]["requests_differ"] > 5
    for one, other in zip(told["variants"], lived["variants"], strict=True):
        assert (one["figures"], one["topology"]) == (other["figures"], other["topology"])
        if other["figures"]["bytes"] is not None:
            assert (one["moved_blocks"], one["remote_reads"]) == (other["moved_blocks"], other["remote_reads"])
        else:
            assert one["moved_blocks"] is one["remote_reads"] is None


def test_the_text_is_that_of_a_comparison_with_the_logs_names(folder: Path) -> None:
    ran = compare(folder, "all.kvlog", "local.kvlog", "--limit", "2", "--fail-on", "served < -1%")
    assert (ran.stderr, ran.status) == ("", ExitStatus.NO)
    assert_golden("compare/logs.txt", ran.stdout)


def test_logs_of_equal_settings_are_told_apart_by_their_names_alone(folder: Path) -> None:
    variants = document(compare(folder, "all.kvlog", "all.kvlog", "--json"))["variants"]
    assert [each["label"] for each in variants] == ["all.kvlog", "all.kvlog"]
    assert "No request differs" in compare(folder, "all.kvlog", "all.kvlog").stdout


def test_a_trace_without_blocks_has_no_differences(tmp_path: Path) -> None:
    log = traced(tmp_path, "e.kvlog", request([]), request([]))
    totals = document(compare(tmp_path, log, log, "--json"))["totals"]
    assert (totals["requests"], totals["requests_differ"], totals["blocks_differ"]) == (2, 0, 0)


def test_the_same_blocks_known_by_id_or_by_prompt_may_be_compared(tmp_path: Path) -> None:
    lines = [request([1, 2]), request([3, 2]), request(["x", 2])]
    chain = traced(tmp_path, "chain.kvlog", *lines)
    by_id = traced(tmp_path, "id.kvlog", *lines, args=("--topology", '{"replay":{"identity":"id"}}'))
    assert document(compare(tmp_path, chain, by_id, "--json"))["totals"]["requests"] == 3


def test_warnings_are_those_of_the_replays_and_say_whose_they_are(tmp_path: Path) -> None:
    lost = '[{"medum":"storage"}]'
    log = replayed(tmp_path, "a.kvlog", CHAT, *DEMO)
    stderr = compare(tmp_path, log, replayed(tmp_path, "b.kvlog", CHAT, *DEMO, "--tiers", lost)).stderr
    assert stderr.startswith("warning: B: ")
    assert 'unknown key "medum"' in stderr


BASE = [request([1, 2], id="a"), request([3])]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*BASE, request([4])], "it has 3 requests, there are 2"),
        ([request([1, 2], id="a"), request([3, 4])], "its request r1 has 2 blocks, there it has 1"),
        ([request([1, 2], id="b"), request([3])], 'its request r0 has the id "b", there "a"'),
        ([request([1, 2]), request([3])], 'its request r0 has the id null, there "a"'),
        ([request([1, 5], id="a"), request([3])], 'block 1 of its request r0 is "5", there "2"'),
        ([request([1, 2], id="a"), request(["x"])], 'block 0 of its request r1 is "x", there "3"'),
        ([request([1, 2], id="a"), request([1])], 'block 0 of its request r1 is "1", there "3"'),
        (
            [line.replace('"block_size": 16', '"block_size": 32') for line in BASE],
            "its blocks have 32 tokens, there they have 16",
        ),
    ],
)
def test_logs_of_other_traces_are_refused_with_what_differs(lines: list[str], said: str, tmp_path: Path) -> None:
    one, other = traced(tmp_path, "a.kvlog", *BASE), traced(tmp_path, "b.kvlog", *lines)
    assert refused(compare(tmp_path, one, other)).splitlines()[0] == (
        f"b.kvlog: cannot be compared with a.kvlog: {said}"
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("all.kvlog",), "there is one log, and nothing to compare it with, expected 2 to 6\n"),
        (("all.kvlog",) * 7, "there are 7 logs, expected 2 to 6\n"),
        (("all.kvlog", "t.jsonl"), "t.jsonl: is no decision log, and all.kvlog is one\n"),
        (("-", "all.kvlog"), "-: is no decision log, and all.kvlog is one\n"),
        (("all.kvlog", "none.kvlog"), "none.kvlog: no such file\n"),
        ((CHAT, AGENT, "--tiers", "all", "--tiers", "deny"), "there are 2 traces, and variants are compared over one"),
        (("all.kvlog", "local.kvlog", "--tiers", "deny"), "all.kvlog: --tiers needs a replay"),
        (("all.kvlog", "local.kvlog", "--skip-bad"), "all.kvlog: --skip-bad needs a replay"),
        (
            ("all.kvlog", "local.kvlog", "--fail-on", "servd < 1%"),
            '--fail-on "servd < 1%":1: there is no figure "servd"',
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(folder: Path, args: tuple[str, ...], said: str) -> None:
    (folder / "t.jsonl").write_text(BASE[0])
    ran = compare(folder, *args)
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT)
    assert ran.stderr.removeprefix("error: ").startswith(said)
    assert len(ran.stderr.splitlines()) <= 2


def test_logs_take_numpy_and_nothing_else_heavy_and_a_trace_takes_neither(folder: Path) -> None:
    log = str(folder / "all.kvlog")
    assert loaded_by("compare", log, log) & (STARTS_WITHOUT | {"yaml"}) == {"numpy"}
    assert (
        loaded_by("compare", str(CHECKOUT / CHAT), "--tiers", "all", "--tiers", "deny") & (STARTS_WITHOUT | {"yaml"})
        == set()
    )
