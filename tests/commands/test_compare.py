"""`kvtier compare` as its users and their CI see it: which variants there are, what it prints, when it says no."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli import __version__
from kvtier_cli.errors import ExitStatus
from kvtier_cli.render.console import cell_width
from tests.conftest import CHECKOUT, Ran, RunsKvtier
from tests.golden_files import assert_golden
from tests.workspace.in_process import run_here

CHAT, AGENT = "fixtures/chat.jsonl", "fixtures/agent.jsonl"
TIERS = ("--topology", "fixtures/demo.toml")
TWO = ("--tiers", "all", "--tiers", "storage:local")
PINCHED = (
    '{"version": 1, "primary": {"capacity": 3}, "tiers": [{"name": "s3", "medium": "storage", "locality": "remote"}]}'
)
"""The CPU tier holds one prompt, s3 all of them."""


def compare(*args: str, trace: str = CHAT, **more: Any) -> Ran:
    return run_here("compare", trace, *args, **{"cwd": CHECKOUT, **more})


def document(ran: Ran) -> dict[str, Any]:
    assert (ran.stderr, ran.status) == ("", 0)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def refused(ran: Ran) -> str:
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT), ran
    assert len(ran.stderr.splitlines()) <= 2
    return ran.stderr.removeprefix("error: ")


# What it prints


@pytest.mark.parametrize("width", [40, 80, 200])
def test_two_filters_as_text(width: int) -> None:
    ran = compare(*TIERS, *TWO, "--fail-on", "served < -1%", env={"COLUMNS": str(width)})
    assert_golden(f"compare/{width}.txt", ran.stdout)
    assert (max(map(cell_width, ran.stdout.splitlines())) <= width, ran.stderr, ran.status) == (True, "", 1)


def test_four_filters_as_text() -> None:
    ran = compare(*TIERS, *TWO, "--tiers", "deny", "--tiers", "own", "--limit", "2", "--ascii")
    assert_golden("compare/four.txt", ran.stdout)
    assert ran.stdout.isascii()


def test_two_filters_as_json_the_same_bytes_each_time(kvtier: RunsKvtier) -> None:
    args = (*TIERS, *TWO, "--json", "--limit", "1", "--fail-on", "B.promoted.s3 > 0")
    ran = kvtier("compare", CHAT, *args, cwd=CHECKOUT)
    assert_golden("compare/two.json", ran.stdout.replace(f'"{__version__}"', '"VERSION"'))
    assert compare(*args).stdout == ran.stdout


def test_colours_do_not_move_a_column() -> None:
    plain, coloured = (compare(*TIERS, *TWO, env=env).stdout for env in ({}, {"FORCE_COLOR": "1"}))
    assert "\x1b[" in coloured
    assert [cell_width(line) for line in coloured.splitlines()] == [cell_width(line) for line in plain.splitlines()]


def test_what_is_equal_is_grey() -> None:
    lines = compare(*TIERS, "--tiers", "all", "--tiers", "storage", env={"FORCE_COLOR": "1"}).stdout.splitlines()
    (primary,) = (line for line in lines if "primary" in line)
    assert primary.startswith("\x1b[90m")


def test_variants_that_serve_alike_are_told_so() -> None:
    ran = compare(*TIERS, "--tiers", "local", "--tiers", "storage:local")
    assert "A and B serve the same, 3,872 of 5,749 blocks, 67.4 % of all." in ran.stdout
    assert "No request differs" in ran.stdout


def test_names_out_of_files_are_shown_inert(tmp_path: Path) -> None:
    tiers = {"primary": {"capacity": 2}, "tiers": [{"name": "\x1b[31mx\n", "locality": "remote"}]}
    trace = tmp_path / "t.jsonl"
    lines = [{"input_length": 1, "hash_ids": [ids], "id": f"\x1b{ids}"} for ids in (1, 2, 3, 1)]
    trace.write_text("\n".join(map(json.dumps, lines)) + "\n")
    ran = compare("--topology", json.dumps(tiers), "--tiers", "all", "--tiers", "deny", trace=str(trace))
    assert ran.status == 0
    assert "\x1b" not in ran.stdout
    assert r"promoted \x1b[31mx\n" in ran.stdout


# Which variants there are


def labels(*args: str, **more: Any) -> list[str]:
    return [each["label"] for each in document(compare(*args, "--json", **more))["variants"]]


def test_what_is_repeated_makes_the_variants_and_what_is_not_holds_for_all() -> None:
    assert labels(*TIERS, *TWO) == ["all", "storage:local"]
    assert labels(*TIERS, "--tiers", "local", "--policy", "lru", "--policy", "arc") == ["lru", "arc"]
    assert labels(*TIERS, "--primary", "100", "--primary", "1k", "--primary", "2k") == [
        "cpu 100",
        "cpu 1,000",
        "cpu 2,000",
    ]
    assert labels("--topology", "{}", *TIERS, "--tiers", "own") == ["inline topology", "fixtures/demo.toml"]


def test_options_that_are_repeated_alike_go_together_in_their_order() -> None:
    found = document(compare(*TIERS, *TWO, "--policy", "arc", "--policy", "lru", "--json"))["variants"]
    assert [each["label"] for each in found] == ["all, arc", "storage:local, lru"]
    assert [each["topology"]["primary"]["policy"] for each in found] == ["arc", "lru"]
    assert [each["filter"]["effective"] for each in found] == ["ALL", [{"medium": "STORAGE", "locality": "LOCAL"}]]


def test_own_leaves_the_requests_the_filters_they_carry() -> None:
    own, denied = document(compare(*TIERS, "--tiers", "own", "--tiers", "deny", "--json", trace=AGENT))["variants"]
    alone = json.loads(run_here("replay", AGENT, *TIERS, "--json", cwd=CHECKOUT).stdout)
    assert (own["label"], own["filter"], own["figures"]) == ("own filters", None, alone["figures"])
    assert denied["filter"]["effective"] == []


def test_the_topology_of_the_environment_holds_though_its_path_has_blanks(tmp_path: Path) -> None:
    path = tmp_path / "my tiers.toml"
    path.write_bytes((CHECKOUT / "fixtures/demo.toml").read_bytes())
    found = document(compare(*TWO, "--json", env={"KVTIER_TOPOLOGY": str(path)}))
    assert {each["topology"]["name"] for each in found["variants"]} == {str(path)}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "there is one variant, and nothing to compare it with\n"),
        (("--tiers", "all"), "there is one variant, and nothing to compare it with\n"),
        (("--policy", "lru") * 7, "there are 7 variants, expected 2 to 6\n"),
        ((*TWO, *("--policy", "lru") * 3), "--tiers 2 times, --policy 3 times: what is repeated goes together"),
        (("--tiers", "all", "--tiers", "strage"), 'filter: unknown word "strage" in the short form\n'),
        (("--policy", "lru", "--policy", "lfu"), '--policy: unknown policy "lfu"\n       did you mean "lru"?'),
        (("--primary", "1k", "--primary", "x"), '--primary: "x" is not understood'),
        (("--tiers", "-", "--tiers", "-"), "--tiers - is there twice"),
        (("--topology", "{}", "--topology", "none.toml"), "none.toml: cannot be read"),
        ((*TWO, "--limit", "-1"), "invalid value for '--limit'"),
        (
            ("--topology", '{"block":{"tokens":16}}', "--topology", '{"block":{"tokens":512}}'),
            "the topologies say blocks of 16 (A) and 512 (B) tokens",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(args: tuple[str, ...], said: str) -> None:
    assert refused(compare(*args)).startswith(said)


def test_a_fixture_a_folder_and_a_file_that_is_not_there_are_refused() -> None:
    assert "is a scripted fixture, not a trace" in refused(compare(*TWO, trace="fixtures/retry.yaml"))
    assert "is a directory" in refused(compare(*TWO, trace="fixtures"))
    assert "no such file" in refused(compare(*TWO, trace="none.jsonl"))


def test_bad_lines_stop_it_unless_they_are_skipped(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"input_length": 1, "hash_ids": [1]}\n{\n{"input_length": 1, "hash_ids": [1]}\n')
    assert refused(compare(*TWO, trace=str(trace))).startswith(f"{trace}:2")
    ran = compare(*TWO, "--skip-bad", trace=str(trace))
    assert ran.status == 0
    assert ran.stderr.count("1 bad line skipped") == 1


def test_stdin_is_the_trace_or_a_filter_and_not_both() -> None:
    text = (CHECKOUT / CHAT).read_bytes()
    assert document(compare(*TIERS, *TWO, "--json", trace="-", stdin=text))["files"] == ["stdin"]
    assert labels(*TIERS, "--tiers", "all", "--tiers", "-", stdin='[{"medium": "cpu"}]') == ["all", "cpu"]
    assert labels(*TIERS, "--tiers", "-", "--policy", "lru", "--policy", "arc", stdin="deny") == ["lru", "arc"]
    assert "both come from stdin" in refused(compare("--tiers", "all", "--tiers", "-", trace="-", stdin=text))


def test_warnings_say_which_variant_they_are_about() -> None:
    lost = '[{"medum":"storage"}]'
    ran = compare(*TIERS, "--tiers", "all", "--tiers", lost)
    assert all(line.startswith("warning: B: ") for line in ran.stderr.splitlines()), ran.stderr
    assert 'unknown key "medum"' in ran.stderr
    both = compare(*TIERS, "--tiers", lost, "--tiers", lost)
    assert all(not line.startswith(("warning: A", "warning: B")) for line in both.stderr.splitlines())


# The requests that differ


def test_pages_of_requests_follow_each_other() -> None:
    def page(*args: str) -> dict[str, Any]:
        return document(compare(*TIERS, *TWO, "--json", *args))

    whole = page("--limit", "1000")
    assert len(whole["requests"]) == whole["totals"]["requests_differ"] == 82
    assert len(whole["differences"]) == whole["totals"]["blocks_differ"] == 1064
    parts = [page("--limit", "50"), page("--limit", "50", "--offset", "50")]
    for name in ("requests", "differences"):
        assert parts[0][name] + parts[1][name] == whole[name]
    beyond = page("--offset", "5000")
    assert (beyond["requests"], beyond["differences"]) == ([], [])


def test_the_next_command_asks_why_of_the_worst_request_in_the_variant_that_is_furthest() -> None:
    told = " ".join(compare(*TIERS, *TWO).stdout.split())
    assert f"why: kvtier explain {CHAT} --tiers storage:local --topology fixtures/demo.toml --request 236" in told
    three = " ".join(compare(*TIERS, "--tiers", "own", "--tiers", "deny", "--tiers", "all").stdout.split())
    assert f"why: kvtier explain {CHAT} --tiers deny" in three
    policies = compare(*TIERS, "--policy", "lru", "--policy", "arc").stdout
    assert "why:" not in policies, "explain takes no policy"


def test_the_command_that_tells_why_reads_the_trace_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"n": 48, "ids": [1, 2, 3]}\n{"n": 16, "ids": [4]}\n{"n": 48, "ids": [1, 2, 3]}\n'
    )
    read = ("--fields", "hash_ids=ids,input_length=n", "--skip-bad")
    told = compare(*read, "--tiers", "all", "--tiers", "deny", "--topology", PINCHED, trace="t.jsonl", cwd=tmp_path)
    lines = told.stdout[told.stdout.index("why: ") :].split("\n\n")[0].split()
    why = shlex.split(" ".join(lines))
    assert why[1:3] == ["kvtier", "explain"]
    assert run_here(*why[2:], cwd=tmp_path).stdout.startswith("Ø The filter skipped s3 at block 2")


def test_a_scripted_fixture_is_for_another_command() -> None:
    said = refused(compare(*TWO, trace="fixtures/retry.yaml"))
    assert said.splitlines()[1].strip() == "Run it with kvtier replay fixtures/retry.yaml."


# When it says no


@pytest.mark.parametrize(
    ("demand", "told"),
    [
        ("served < -1%", "FAIL fail on served < -1% B - A: -726, -12.6 points of all"),
        ("delta.served < -13%", "ok fail on delta.served < -13% B - A: -726, -12.6 points of all"),
        ("delta.B.promoted.s3 == -722", "FAIL fail on delta.B.promoted.s3 == -722 B - A: -722, -12.6 points of all"),
        ("A.promoted.s3 > 1k", "ok fail on A.promoted.s3 > 1k A: found 722, 12.6 % of all"),
        ("B.filtered > 0", "FAIL fail on B.filtered > 0 B: found 55, 1.0 % of all"),
        ("rates.nvme_of_asked > 20%", "FAIL fail on rates.nvme_of_asked > 20% B - A: +24.9 points"),
        ("bytes.s3.read <= -45GiB", "FAIL fail on bytes.s3.read <= -45GiB B - A: -45.1 GiB"),
        ("rates.s3_of_asked < -1%", "ok fail on rates.s3_of_asked < -1% B - A: not known"),
    ],
)
def test_what_it_fails_on(demand: str, told: str) -> None:
    ran = compare(*TIERS, *TWO, "--fail-on", demand, env={"COLUMNS": "200"})
    assert told in [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert ran.status == (ExitStatus.NO if told.startswith("FAIL") else ExitStatus.DONE)


def test_a_difference_is_that_of_every_variant_and_one_is_enough() -> None:
    args = (*TIERS, "--tiers", "all", "--tiers", "storage", "--tiers", "deny", "--json")
    ran = compare(*args, "--fail-on", "served < -20%")
    told = json.loads(ran.stdout)["fail_on"]
    assert [(each["of"], each["found"], each["holds"]) for each in told] == [
        ("B - A", 0, False),
        ("C - A", -1550, True),
    ]
    assert ran.status == ExitStatus.NO
    assert compare(*args, "--fail-on", "delta.B.served < 0").status == ExitStatus.DONE


def test_a_tier_that_only_one_topology_has_counts_as_0_in_the_other() -> None:
    two = ("--topology", '{"tiers": [{"name": "disk"}]}', *TIERS)
    ran = compare(*two, "--fail-on", "promoted.s3 > 700", "--fail-on", "promoted.disk != 0", "--json")
    assert [each["found"] for each in json.loads(ran.stdout)["fail_on"]] == [722, 0]
    deltas = json.loads(ran.stdout)["totals"]["deltas"][0]["figures"]
    assert deltas["promoted_by_tier"] == {"disk": 0, "nvme": 956, "s3": 722}
    assert deltas["bytes"] is None
    said = refused(compare(*two, "--fail-on", "A.promoted.s3 > 700"))
    assert said.startswith('--fail-on "A.promoted.s3 > 700":3: there is no figure "promoted.s3"')


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("servd < 1%", ':1: there is no figure "servd"\n       Did you mean "served"?'),
        ("delta.servd < 1%", ':7: there is no figure "servd"'),
        ("C.served > 1", ':1: there is no variant "C", expected A or B.'),
        ("b.served > 1", ':1: there is no variant "b", expected A or B. Did you mean "B"?'),
        ("delta.A.served > 1", ":1: A does not differ from A"),
        ("B.served > -1", ':12: "-1": a figure has no sign'),
        ("served", ":7: expected >=, <=, >, <, == or !=, found the end"),
    ],
)
def test_a_demand_that_is_not_understood_is_refused_with_its_column(demand: str, said: str) -> None:
    assert refused(compare(*TIERS, *TWO, "--fail-on", demand)).startswith(f'--fail-on "{demand}"{said}')
