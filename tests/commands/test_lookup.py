"""`kvtier lookup`, as its users see it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.commands import lookup
from tests.conftest import CHECKOUT, Ran, RunsKvtier, in_terminal, python_environment
from tests.golden_files import assert_golden
from tests.test_import_hygiene import STARTS_WITHOUT, loaded_by
from tests.workspace.spaces import filled, topology

LOCAL = '[{"medium":"storage","locality":"local"}]'
TOUR = [
    *("lookup", "--trace", "fixtures/chat.jsonl", "--request", "284"),
    *("--tiers", LOCAL, "--topology", "fixtures/demo.toml"),
]
SMALL = '{"primary":{"capacity":2},"tiers":[{"name":"nvme","medium":"storage","locality":"local","capacity":3}]}'


def request(blocks: list[int | str], **more: object) -> str:
    return json.dumps({"input_length": 16 * len(blocks), "hash_ids": blocks, "block_size": 16, **more}) + "\n"


def look_up(kvtier: RunsKvtier, folder: Path, *args: str, trace: str, **how: Any) -> Ran:
    """Looks up in the history of `trace`, the text of a trace."""
    (folder / "t.jsonl").write_text(trace)
    return kvtier("lookup", "--trace", "t.jsonl", *args, cwd=folder, **how)


# --- what it looks like ---


@pytest.mark.parametrize(
    ("golden", "args", "env"),
    [
        ("80", [], {}),
        ("80", [], {"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": "1"}),
        ("40", [], {"COLUMNS": "40"}),
        ("60", [], {"COLUMNS": "60"}),
        ("200", [], {"COLUMNS": "200"}),
        ("ascii", ["--ascii"], {}),
        ("ascii", [], {"LC_ALL": "C"}),
        ("colour", [], {"FORCE_COLOR": "1"}),
        ("rows", ["--rows"], {}),
        ("rows-40", ["--rows"], {"COLUMNS": "40"}),
    ],
)
def test_a_skipped_tier_is_seen_at_once(kvtier: RunsKvtier, golden: str, args: list[str], env: dict[str, str]) -> None:
    ran = kvtier(*TOUR, *args, env=env, cwd=CHECKOUT)
    assert (ran.stderr, ran.status) == ("", 0)
    assert_golden(f"lookup/{golden}.txt", ran.stdout)


@pytest.mark.parametrize(("golden", "env"), [("ascii", {"TERM": "dumb"}), ("colour", {"TERM": "xterm"})])
def test_a_terminal_sees_the_same(golden: str, env: dict[str, str]) -> None:
    command = [sys.executable, "-m", "kvtier_cli.main", *TOUR]
    seen = in_terminal(["/bin/sh", "-c", f"cd {CHECKOUT}; exec {shlex.join(command)}"], env)
    assert_golden(f"lookup/{golden}.txt", seen.replace("\r\n", "\n"))


@pytest.mark.parametrize("example", lookup.EXAMPLES)
def test_each_example_runs_as_written(example: str, tmp_path: Path) -> None:
    space = filled(tmp_path, [[14, 15, 16]], topology())
    script = f'kvtier() {{ "{sys.executable}" -m kvtier_cli.main "$@"; }}\n{example}'
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        capture_output=True,
        env=python_environment({"KVTIER_WORKSPACE": str(space)}),
        cwd=CHECKOUT,
        check=False,
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    assert b" served" in done.stdout


def test_lookup_into_a_pipe_loads_only_what_it_needs() -> None:
    trace = str(CHECKOUT / "fixtures" / "chat.jsonl")
    assert (
        loaded_by("lookup", "--trace", trace, "--request", "9", "--tiers", "local") & (STARTS_WITHOUT | {"yaml"})
        == set()
    )


# --- what is looked up ---


def test_the_filter_applies_to_the_request_and_not_to_its_history(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1]) + request([2, 3]) + request([1])
    ran = look_up(kvtier, tmp_path, "--request", "2", "--tiers", "deny", "--topology", SMALL, trace=trace)
    assert ran.stdout.startswith("Ø The filter skipped nvme at block 0, and nvme holds it. 0 of 1 block served")


def test_blocks_come_after_the_whole_trace(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = look_up(kvtier, tmp_path, "1", "2", "9", "--tiers", "all", "--topology", SMALL, trace=request([1, 2]))
    assert ran.stdout.startswith(
        "□ No tier has block 2: it was never stored before. 2 of 3 blocks served (32 of\n48 tokens): 2 primary.\n"
    )
    assert (ran.stderr, ran.status) == ('note: no request of t.jsonl has a block "9"\n', 0)


def test_a_label_of_several_blocks_lists_them(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1, 7]) + request([2, 3, 7])
    ran = look_up(kvtier, tmp_path, "7", "--topology", SMALL, trace=trace)
    assert ran.stdout == (
        "7 stands for 2 blocks of t.jsonl, behind different prompts. Name one:\n"
        "\n"
        "  block  at  behind  held by\n"
        "  7~1     1  1       cpu, nvme\n"
        "  7~2     2  3       no tier\n"
    )
    assert look_up(kvtier, tmp_path, "3", "7", "--topology", SMALL, trace=trace).status == 0
    found = json.loads(look_up(kvtier, tmp_path, "7", "--topology", SMALL, "--json", trace=trace).stdout)
    assert (found["blocks"], found["summary"]) == ([], None)
    assert found["ambiguous"]["7"][0] == {"name": "7~1", "at": 1, "behind": "1", "holders": ["cpu", "nvme"]}


def test_a_block_may_start_with_a_dash(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = look_up(kvtier, tmp_path, "--", "-5", trace=request([-5]))
    assert ran.stdout.startswith("The one block was served (16 tokens): 1 primary.")


def test_the_trace_may_come_from_stdin(kvtier: RunsKvtier) -> None:
    ran = kvtier("lookup", "--trace", "-", "--request", "1", stdin=request([1]) * 2)
    assert (ran.stdout.splitlines()[0], ran.status) == ("The one block was served (16 tokens): 1 primary.", 0)


def test_a_filter_at_fault_is_warned_about(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = look_up(kvtier, tmp_path, "1", "--tiers", '[{"medum":"storage"}]', trace=request([1]))
    assert 'warning: entry 0 of the filter: unknown key "medum", did you mean "medium"?\n' in ran.stderr
    assert ran.status == 0


@pytest.mark.parametrize("more", [[], ["--save-fixture", "saved.yaml"]], ids=["shown", "saved"])
def test_filters_that_fail_open_and_bad_lines_are_warned_about_wherever_they_are(
    kvtier: RunsKvtier, tmp_path: Path, more: list[str]
) -> None:
    trace = request([1]) + request([1]) + "{no\n" + request([1], kv_load_tiers=[{"medum": "storage"}])
    ran = look_up(kvtier, tmp_path, "--request", "1", "--skip-bad", *more, trace=trace)
    assert "warning: t.jsonl: 1 bad line skipped" in ran.stderr
    assert "warning: the filters of 1 request fail open: they admit all" in ran.stderr
    assert ran.status == 0


def test_names_from_files_are_shown_as_inert_text(kvtier: RunsKvtier, tmp_path: Path) -> None:
    odd = ["[red]b[/red]", "\x1b[31mb", "漢字", "שלום", "a\nb"]
    topology = {"primary": {"capacity": 9}, "tiers": [{"name": "[bold]\x1b[2J漢字"}]}
    trace = request(odd, id="\x1b]0;x\x07") + request([*odd, 1])  # type: ignore[list-item]
    ran = look_up(kvtier, tmp_path, "--request", "1", "--topology", json.dumps(topology), trace=trace)
    assert not any(char in ran.stdout + ran.stderr for char in "\x1b\x07")
    shown = ["[red]b[/red]", "\\x1b[31mb", "漢字", "שלום", "a\\nb", "1"]
    rows = [line for line in ran.stdout.splitlines() if line[2:3].isdigit()]
    assert [line.split()[1] for line in rows] == shown
    assert ran.stdout.count("[bold]\\x1b[2J漢字 miss") == 1


# --- JSON ---


def test_json_has_everything_whole(kvtier: RunsKvtier) -> None:
    ran = kvtier(*TOUR, "--json", cwd=CHECKOUT)
    found = json.loads(ran.stdout)
    assert (ran.stderr, ran.status, found["schema"]) == ("", 0, "kvtier.lookup/1")
    assert found["request"] == {"id": "r284", "index": 284}
    assert found["filter"]["effective"] == [{"medium": "STORAGE", "locality": "LOCAL"}]
    assert [(tier["name"], tier["admitted"]) for tier in found["tiers"]] == [
        ("cpu", True),
        ("nvme", True),
        ("s3", False),
    ]
    assert found["blocks"][13] == {
        "index": 13,
        "block": "242",
        "result": "MISS",
        "outcome": "filtered",
        "tier": "s3",
        "verdicts": {"cpu": "miss", "nvme": "miss", "s3": "skipped"},
        "holders": ["s3"],
        "reason": "s3 holds it; its locality REMOTE matches no entry",
        "looks": 2,
        "steps": 0,
    }
    summary = found["summary"]
    assert (summary["served"], summary["blocks"], summary["tokens_served"]) == (13, 40, 13 * 512)
    assert summary["served_by_tier"] == {"cpu": 4, "nvme": 9, "s3": 0}
    assert sum(summary["outcomes"].values()) == len(found["blocks"]) == 40
    assert (summary["stop"]["at"], summary["stop"]["tier"], summary["lost_to_filter"]) == (13, "s3", 25)
    assert kvtier(*TOUR, "--json", cwd=CHECKOUT) == ran, "the same input gives the same bytes"


def test_json_tells_what_took_the_slots(kvtier: RunsKvtier, tmp_path: Path) -> None:
    tiers = [{"name": "t0", "store_latency": 9}, {"name": "t1", "medium": "cpu"}]
    topology = json.dumps({"primary": {"capacity": 1}, "tiers": tiers})
    trace = request([1]) + request([2]) * 20 + request([1])
    found = json.loads(
        look_up(kvtier, tmp_path, "--request", "r12", "--topology", topology, "--json", trace=trace).stdout
    )
    assert found["summary"]["stop"] is None
    trace = request([1]) + request([]) * 9 + request([2]) + request([1])
    found = json.loads(
        look_up(kvtier, tmp_path, "--request", "r11", "--topology", topology, "--json", trace=trace).stdout
    )
    stop = found["summary"]["stop"]
    assert (stop["outcome"], stop["tier"]) == ("denied", "t0")
    assert stop["slots"] == [{"user": "cascade", "tiers": ["t0"], "own": False, "blocks": 1}]


# --- what is refused ---


@pytest.mark.parametrize(
    ("args", "said", "hint"),
    [
        (["--workspace", "none", "b1"], "there is no workspace in none", "kvtier init"),
        ([], "nothing to look up", "Give the ids of blocks, or --trace FILE --request ID."),
        (["--request", "0"], "--request is one of a trace", "Give --trace FILE with it."),
        (["--topology", "tiers.toml", "1"], "--topology does not apply to a workspace", "Give --trace FILE."),
        (["--trace", "t.jsonl", "--commit", "1"], "--trace looks into no workspace", "Leave out"),
        (["--trace", "t.jsonl", "--workspace", "w", "1"], "--trace looks into no workspace", "Leave out"),
        (["--trace", "t.jsonl"], "nothing to look up", "Give the ids of blocks, or --trace FILE --request ID."),
        (["--trace", "t.jsonl", "--request", "0", "1"], "--request looks the request's own blocks up", "Give either"),
        (["--trace", "t.jsonl", "--request", "7"], 't.jsonl: has no request "7"', "It has 2, r0 to r1."),
        (["--trace", "-", "--tiers", "-", "1"], "--trace - and --tiers - both read stdin", "Give the filter"),
        (["--trace", "f.yaml", "1"], "f.yaml: is a scripted fixture, not a trace", "Run it with kvtier replay f.yaml."),
        (["--trace", "none", "1"], "none: no such file", ""),
        (["--trace", "bad.jsonl", "1"], "bad.jsonl:2:2: not JSON", "Continue past bad lines with --skip-bad."),
        (["--trace", "t.jsonl", "1", "--tiers", "storge"], 'filter: unknown word "storge"', 'did you mean "storage"?'),
    ],
)
def test_what_cannot_be_looked_up_is_said_in_two_lines(
    kvtier: RunsKvtier, tmp_path: Path, args: list[str], said: str, hint: str
) -> None:
    (tmp_path / "t.jsonl").write_text(request([1]) * 2)
    (tmp_path / "f.yaml").write_text("kvtier: 1\nops: []\n")
    (tmp_path / "bad.jsonl").write_text(request([1]) + "{no\n")
    ran = kvtier("lookup", *args, cwd=tmp_path)
    lines = ran.stderr.splitlines()
    assert (ran.stdout, ran.status) == ("", 2)
    assert lines[0].startswith(f"error: {said}")
    assert hint in "".join(lines[1:])
    assert len(lines) <= 2


def test_bad_lines_may_be_left_out(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1]) + "{no\n" + request([1])
    ran = look_up(kvtier, tmp_path, "--skip-bad", "1", trace=trace)
    assert ran.stdout.startswith("The one block was served")
    assert "1 bad line skipped" in ran.stderr


# --- saving the request as a fixture ---


def test_a_saved_request_replays_by_itself(kvtier: RunsKvtier, tmp_path: Path) -> None:
    alone = kvtier(*TOUR, cwd=CHECKOUT)
    saved = tmp_path / "saved request.yaml"
    ran = kvtier(*TOUR, "--save-fixture", str(saved), cwd=CHECKOUT)
    assert (ran.stdout, ran.status) == (alone.stdout, 0)
    assert f"kvtier replay '{saved}'" in ran.stderr.replace("\n", " ")
    assert "66 of the 1,491 blocks" in ran.stderr.replace("\n", " ")
    replayed = kvtier("replay", "saved request.yaml", cwd=tmp_path)
    assert (replayed.stderr, replayed.status) == ("", 0)
    assert replayed.stdout.startswith("ok ")
    kvtier(*TOUR, "--save-fixture", str(tmp_path / "again.yaml"), cwd=CHECKOUT)
    assert (tmp_path / "again.yaml").read_bytes() == saved.read_bytes()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["1", "--save-fixture", "x.yaml"], "--save-fixture saves a request of a trace"),
        (["--trace", "t.jsonl", "1", "--save-fixture", "x.yaml"], "--save-fixture saves a request of a trace"),
        (["--trace", "t.jsonl", "--request", "0", "--save-fixture", "-"], "--save-fixture cannot write to stdout"),
        (["--trace", "t.jsonl", "--request", "0", "--save-fixture", "no/x.yaml"], "lies in no folder"),
        (["--trace", "t.jsonl", "--request", "0", "--save-fixture", "./t.jsonl"], "is the trace itself"),
    ],
)
def test_what_cannot_be_saved_is_said(kvtier: RunsKvtier, tmp_path: Path, args: list[str], message: str) -> None:
    (tmp_path / "t.jsonl").write_text(request([1, 2]))
    ran = kvtier("lookup", *args, cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert message in ran.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t.jsonl", request([1, 2]))]
