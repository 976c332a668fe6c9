"""`kvtier explain`, as its users see it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli import __version__
from kvtier_cli.commands import explain
from tests.commands.test_lookup import request
from tests.conftest import CHECKOUT, Ran, RunsKvtier, python_environment
from tests.golden_files import assert_golden
from tests.test_import_hygiene import STARTS_WITHOUT, loaded_by

LOCAL = '[{"medium":"storage","locality":"local"}]'
STORY = [
    *("explain", "fixtures/chat.jsonl", "--request", "284"),
    *("--tiers", LOCAL, "--topology", "fixtures/demo.toml"),
]
FEW = '{"primary":{"capacity":24},"tiers":[{"name":"nvme","medium":"storage","locality":"local","capacity":60}]}'
SHORT = ["explain", "fixtures/chat.jsonl", "--request", "35", "--tiers", "deny", "--topology", FEW, "--json"]
LIFE = [*("explain", "fixtures/chat.jsonl", "--request", "284", "--block", "242"), *STORY[6:]]
SMALL = '{"primary":{"capacity":2},"tiers":[{"name":"nvme","medium":"storage","locality":"local","capacity":3}]}'


def explained(kvtier: RunsKvtier, folder: Path, *args: str, trace: str, **how: Any) -> Ran:
    """Explains a request of `trace`, the text of a trace."""
    (folder / "t.jsonl").write_text(trace)
    return kvtier("explain", "t.jsonl", *args, cwd=folder, **how)


# --- what it looks like ---


@pytest.mark.parametrize(
    ("golden", "command", "env"),
    [
        ("80.txt", STORY, {}),
        ("40.txt", STORY, {"COLUMNS": "40"}),
        ("200.txt", STORY, {"COLUMNS": "200"}),
        ("ascii.txt", [*STORY, "--ascii"], {}),
        ("colour.txt", STORY, {"FORCE_COLOR": "1"}),
        ("rows.txt", [*STORY, "--rows"], {}),
        ("story.json", SHORT, {}),
        ("life.txt", LIFE, {}),
        ("life-40.txt", LIFE, {"COLUMNS": "40"}),
        ("life-rows.txt", [*LIFE, "--rows"], {}),
        ("life.json", [*SHORT, "--block", "3", "--limit", "9"], {}),
    ],
)
def test_the_same_request_is_explained_in_the_same_bytes(
    kvtier: RunsKvtier, golden: str, command: list[str], env: dict[str, str]
) -> None:
    ran = kvtier(*command, env=env, cwd=CHECKOUT)
    assert (ran.stderr, ran.status) == ("", 0)
    assert_golden(f"explain/{golden}", ran.stdout.replace(f'"kvtier": "{__version__}"', '"kvtier": "VERSION"'))


@pytest.mark.parametrize("example", explain.EXAMPLES)
def test_each_example_runs_as_written(example: str) -> None:
    script = f'kvtier() {{ "{sys.executable}" -m kvtier_cli.main "$@"; }}\n{example}'
    done = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, env=python_environment(), cwd=CHECKOUT, check=False
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    assert done.stdout


def test_explain_into_a_pipe_loads_only_what_it_needs() -> None:
    trace = str(CHECKOUT / "fixtures" / "chat.jsonl")
    assert loaded_by("explain", trace, "--request", "9", "--tiers", "local") & (STARTS_WITHOUT | {"yaml"}) == set()


def test_json_names_the_documented_parts(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1, 2]) + request([3, 4]) + request([1, 2])
    roomy = SMALL.replace('"capacity":3', '"capacity":9')
    ran = explained(kvtier, tmp_path, "--request", "2", "--tiers", "deny", "--topology", roomy, "--json", trace=trace)
    found = json.loads(ran.stdout)
    assert found["schema"] == "kvtier.explain/1"
    assert found["request"] == {"id": "r2", "index": 2}
    assert found["passes"] == [
        {
            "step": 2,
            "lookups": [
                {
                    "index": 0,
                    "block": "1",
                    "result": "MISS",
                    "verdicts": {"cpu": "miss", "nvme": "skipped"},
                    "promotion": None,
                    "denied": None,
                }
            ],
        }
    ]
    assert found["without_filter"] == {"served": 2, "by_tier": {"cpu": 0, "nvme": 2}}
    assert found["evicted"][0] == {
        "block": "4",
        "tier": "cpu",
        "cause": "store",
        "step": 2,
        "put_by": "r1",
        "own": False,
        "how": "stored",
        "put_step": 1,
        "unread": True,
    }
    assert [event["deed"] for event in found["life"]["events"]] == ["absent", "stored", "cascaded", "evicted"]


def test_a_long_life_may_be_had_page_by_page(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1]) * 9
    args = ("--request", "0", "--block", "1", "--json")
    whole = json.loads(explained(kvtier, tmp_path, *args, trace=trace).stdout)["life"]
    page = json.loads(explained(kvtier, tmp_path, *args, "--limit", "3", "--offset", "4", trace=trace).stdout)["life"]
    assert len(whole["events"]) == whole["total"] == page["total"]
    assert (page["events"], page["offset"]) == (whole["events"][4:7], 4)


def test_a_trace_may_come_from_stdin(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1]) + request([1])
    from_file = explained(kvtier, tmp_path, "--request", "1", trace=trace)
    assert kvtier("explain", "-", "--request", "1", stdin=trace).stdout == from_file.stdout
    assert from_file.stdout.startswith("The one block was served (16 tokens): 1 primary.\n")


def test_names_from_the_trace_are_inert(kvtier: RunsKvtier, tmp_path: Path) -> None:
    evil = "\x1b[31m[bold]x"
    trace = request([evil, "b"], id=evil) + request([1, 2], id="r") + request([3]) + request([evil], id="last")
    for args in (["--request", "last"], ["--request", evil, "--block", evil]):
        ran = explained(kvtier, tmp_path, *args, "--topology", SMALL, "--rows", "--wide", trace=trace)
        assert ran.status == 0
        assert "\x1b" not in ran.stdout
        assert "\\x1b[31m[bold]x" in ran.stdout


def test_filters_that_fail_open_and_bad_lines_are_warned_about(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = request([1], kv_load_tiers=[{"medum": "storage"}]) + "{no\n" + request([1])
    ran = explained(kvtier, tmp_path, "--request", "0", "--skip-bad", trace=trace)
    assert "warning: t.jsonl: 1 bad line skipped" in ran.stderr
    assert "warning: the filters of 1 request fail open: they admit all" in ran.stderr
    assert 'warning: entry 0 of the filter: unknown key "medum", did you mean "medium"?' in ran.stderr
    assert ran.status == 0


# --- what is refused ---


@pytest.mark.parametrize(
    ("args", "said", "hint"),
    [
        (["t.jsonl"], "missing option '--request'", "kvtier explain --help"),
        (["t.jsonl", "--request", "7"], 't.jsonl: has no request "7"', "It has 2, r0 to r1."),
        (["t.jsonl", "--request", "r1", "--block", "9"], 't.jsonl: request r1 has no block "9"', "0 to 0"),
        (["empty.jsonl", "--request", "0"], "empty.jsonl: is empty", "Expected a trace"),
        (["blank.jsonl", "--request", "0"], "blank.jsonl: holds no request", "Expected one JSON object a line."),
        (["bad.jsonl", "--request", "0"], "bad.jsonl:2:2: not JSON", "Continue past bad lines with --skip-bad."),
        (["none", "--request", "0"], "none: no such file", ""),
        ([".", "--request", "0"], ".: is a directory", ""),
        (["f.yaml", "--request", "0"], "f.yaml: is a scripted fixture, not a trace", "kvtier replay f.yaml"),
        (["-", "--request", "0", "--tiers", "-"], "the trace and --tiers both come from stdin", "Give the filter"),
        (
            ["t.jsonl", "--request", "0", "--tiers", "storge"],
            'filter: unknown word "storge"',
            'did you mean "storage"?',
        ),
        (
            ["t.jsonl", "--request", "0", "--limit", "1"],
            "--limit and --offset page a block's life",
            "--block and --json",
        ),
    ],
)
def test_what_cannot_be_explained_is_said_in_two_lines(
    kvtier: RunsKvtier, tmp_path: Path, args: list[str], said: str, hint: str
) -> None:
    (tmp_path / "t.jsonl").write_text(request([1]) * 2)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "blank.jsonl").write_text("\n\n")
    (tmp_path / "f.yaml").write_text("kvtier: 1\nops: []\n")
    (tmp_path / "bad.jsonl").write_text(request([1]) + "{no\n")
    ran = kvtier("explain", *args, cwd=tmp_path)
    lines = ran.stderr.splitlines()
    assert (ran.stdout, ran.status) == ("", 2)
    assert lines[0].startswith(f"error: {said}")
    assert hint in "".join(lines[1:])
    assert len(lines) <= 2


def test_the_request_that_is_explained_can_be_saved(kvtier: RunsKvtier, tmp_path: Path) -> None:
    told = ("explain", "fixtures/agent.jsonl", "--request", "t30.21", "--tiers", "deny")
    alone = kvtier(*told, cwd=CHECKOUT)
    ran = kvtier(*told, "--save-fixture", str(tmp_path / "saved.yaml"), cwd=CHECKOUT)
    assert (ran.stdout, ran.status) == (alone.stdout, 0)
    replayed = kvtier("replay", "saved.yaml", cwd=tmp_path)
    assert (replayed.stdout[:3], replayed.stderr, replayed.status) == ("ok ", "", 0)


def test_a_trace_that_takes_options_to_be_read_can_be_saved_from(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"n": 32, "ids": [1, 2]}\n{"n": 32, "ids": [1, 3]}\n')
    read = ("own.jsonl", "--fields", "hash_ids=ids,input_length=n")
    ran = kvtier("explain", *read, "--request", "1", "--save-fixture", "saved.yaml", cwd=tmp_path)
    assert ran.status == 0
    assert kvtier("replay", "saved.yaml", cwd=tmp_path).status == 0


def test_a_saved_request_does_not_tell_where_its_trace_lies_on_this_machine(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.jsonl").write_text('{"input_length": 1024, "hash_ids": [1, 2]}\n')
    for given in ("here/own.jsonl", str(tmp_path / "here" / "own.jsonl")):
        ran = kvtier("explain", given, "--request", "0", "--save-fixture", f"{len(given)}.yaml", cwd=tmp_path)
        assert ran.status == 0
        saved = (tmp_path / f"{len(given)}.yaml").read_text()
        assert "own.jsonl: 0 of 2 blocks served" in saved
        assert str(tmp_path) not in saved
