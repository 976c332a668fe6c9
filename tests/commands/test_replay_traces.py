"""`kvtier replay` of traces, as its users and their CI see it: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.render.console import cell_width
from kvtier_cli.render.json_out import SCOPE
from tests.conftest import Ran, RunsKvtier, python_environment

KVTIER = (sys.executable, "-m", "kvtier_cli.main")

FIGURES = (
    *("requests", "blocks", "lookups", "steps", "wait_steps", "gave_up", "blocks_loaded", "loaded_by_source"),
    *("blocks_stored", "stores_refused", "blocks_evicted_by_stores", "blocks_evicted_by_promotions"),
    *("promotions_started", "promotions_denied", "promotions_failed", "promoted_by_tier", "asked_by_tier"),
    *("hits_by_tier", "skipped_by_tier", "evicted_unread", "resident", "outcomes", "lost_to_filter", "bytes", "rates"),
)
OUTCOMES = ["primary", "promoted", "filtered", "absent", "denied", "failed", "held", "gave_up", "unreached"]


def asks(*ids: int | str, **more: Any) -> dict[str, Any]:
    return {"input_length": 512 * len(ids), "hash_ids": list(ids), **more}


def text_of(*requests: dict[str, Any] | str) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in requests)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `kvtier` runs: with `t.jsonl`, whose third request finds one block in the CPU tier, and tiers for it."""
    (tmp_path / "t.jsonl").write_text(text_of(asks(1, 2), asks(3), asks(1, 2)))
    (tmp_path / "two.toml").write_text(
        '[primary]\ncapacity = 2\n[[tiers]]\nname = "nvme"\nmedium = "storage"\nlocality = "local"\n'
    )
    return tmp_path


def document(ran: Ran) -> dict[str, Any]:
    assert (ran.stderr, ran.status) == ("", 0)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def refusal(ran: Ran, status: int = ExitStatus.INPUT) -> list[str]:
    """The one or two lines in which a command line was refused."""
    lines = ran.stderr.splitlines()
    assert (ran.stdout, ran.status, len(lines) in (1, 2)) == ("", status, True), ran
    assert lines[0].startswith("error: ")
    assert all(line.startswith("       ") for line in lines[1:])
    return [lines[0].removeprefix("error: "), *(line.strip() for line in lines[1:])]


# What cannot be read

SKIP = "1 request was read before it. Continue past bad lines with --skip-bad."
GOOD = text_of(asks(1))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ["t.jsonl: is empty", "Expected a trace: one request a line."]),
        (bytes(range(256)) * 9, ["t.jsonl: is binary data of no known format", None]),
        (b"\x1f\x8b\x08", ["t.jsonl: its gzip data are cut off", None]),
        (
            GOOD.encode() + b'{"input_length": 5, "hash_i',
            ["t.jsonl:2: the last line is cut off: it is not a whole request, and no newline follows", None],
        ),
        (GOOD + "[1, 2]\n", ["t.jsonl:2: expected a JSON object (a request), got array", SKIP]),
        (GOOD + "7\n", ["t.jsonl:2: expected a JSON object (a request), got int", SKIP]),
        (
            GOOD + '{"input_length":-5,"hash_ids":[]}\n',
            ["t.jsonl:2: $.input_length: expected a length of 0 to 2^53 tokens, got -5", SKIP],
        ),
        (
            GOOD + '{"input_length":5.5,"hash_ids":[1]}\n',
            ["t.jsonl:2: $.input_length: expected int, got float", SKIP],
        ),
        (
            GOOD + '{"input_length":512,"hash_ids":[1.5]}\n',
            ["t.jsonl:2: $.hash_ids[0]: expected int or str, got float", SKIP],
        ),
        (
            GOOD + '{"input_length":512,"hash_ids":[1],"timestamp":NaN}\n',
            ['t.jsonl:2:48: not JSON: NaN is no JSON number (after "timestamp":)', SKIP],
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_its_place(
    kvtier: RunsKvtier, folder: Path, content: str | bytes, said: list[str | None]
) -> None:
    (folder / "t.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
    found = refusal(kvtier("replay", "t.jsonl", "--json", cwd=folder))
    assert [line for line, expected in zip(found, said, strict=True) if expected is not None] == [
        expected for expected in said if expected is not None
    ]


def test_a_file_that_is_not_there_and_a_folder_are_refused(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "folder").mkdir()
    assert refusal(kvtier("replay", "tt.jsonl", cwd=folder)) == ["tt.jsonl: no such file", "Did you mean t.jsonl?"]
    assert refusal(kvtier("replay", "folder", cwd=folder))[0] == "folder: is a directory; expected a file"


def test_a_bad_file_is_noticed_before_another_one_is_replayed(kvtier: RunsKvtier, folder: Path) -> None:
    assert refusal(kvtier("replay", "t.jsonl", "none.jsonl", cwd=folder))[0] == "none.jsonl: no such file"


@pytest.mark.parametrize(
    ("tiers", "said", "hint"),
    [
        (
            {"tiers": [{"name": "a", "medium": "storge"}]},
            'tiers[0].medium: unknown medium "storge"',
            'did you mean "storage"?',
        ),
        ({"tiers": [{"name": "a", "localty": "local"}]}, "tiers[0].localty: unknown field", 'did you mean "locality"?'),
        ({"primary": {"policy": "lfu"}}, 'primary.policy: unknown policy "lfu"', 'did you mean "lru"?'),
        ({"primary": {"polcy": "lru"}}, "primary.polcy: unknown field", 'did you mean "policy"?'),
        ({"replay": {"tail": "kept"}}, 'replay.tail: unknown tail "kept"', 'did you mean "keep"?'),
        (
            {"tiers": [{"name": "cpu"}]},
            'tiers[0].name: "cpu" is the primary\'s name, a secondary tier needs another',
            None,
        ),
        (
            {"tiers": [{"name": "primary"}]},
            'tiers[0].name: "primary" is the primary\'s name, a secondary tier needs another',
            None,
        ),
    ],
)
def test_a_topology_with_a_wrong_word_is_refused_with_the_nearest_right_one(
    kvtier: RunsKvtier, folder: Path, tiers: dict[str, Any], said: str, hint: str | None
) -> None:
    (folder / "wrong.json").write_text(json.dumps(tiers))
    first, *rest = refusal(kvtier("replay", "t.jsonl", "--topology", "wrong.json", cwd=folder))
    assert first.startswith("wrong.json:1:")
    assert first.endswith(f": {said}")
    assert rest == ([] if hint is None else [hint])


def test_a_filter_with_an_unknown_word_is_refused(kvtier: RunsKvtier, folder: Path) -> None:
    said = refusal(kvtier("replay", "t.jsonl", "--tiers", "storge", cwd=folder))
    assert said == ['filter: unknown word "storge" in the short form', 'did you mean "storage"?']


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["t.jsonl", "--update"], "t.jsonl: --update is for scripted fixtures, this is a trace"),
        (["t.jsonl", "t.jsonl", "--events", "out"], "--events writes one run"),
        (["t.jsonl", "--events", "-", "--json"], "--events - and --json both write to stdout"),
        (["-", "--tiers", "-"], "the trace and --tiers both come from stdin"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    kvtier: RunsKvtier, folder: Path, args: list[str], said: str
) -> None:
    assert refusal(kvtier("replay", *args, stdin=GOOD, cwd=folder))[0] == said
    assert not (folder / "out").exists()


# What can


def test_ids_of_any_size_and_repeated_ones_are_told_apart(kvtier: RunsKvtier, folder: Path) -> None:
    large = [2**64, 2**128, -1, 2**64 - 1, 2**53, 2**53 + 1, -(10**30)]
    (folder / "t.jsonl").write_text(text_of(asks(*large), asks(*large), asks(7, 7, 7), asks(7, 7, 7), asks("7", "x")))
    found = document(kvtier("replay", "t.jsonl", "--json", cwd=folder))
    assert found["figures"]["blocks_loaded"] == len(large) + 3 + 1  # "7" is 7, behind nothing
    assert found["figures"]["resident"]["primary"] == len(large) + 3 + 1


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_timestamps_out_of_order_are_sorted_and_said(kvtier: RunsKvtier, folder: Path, args: list[str]) -> None:
    (folder / "t.jsonl").write_text(text_of(asks(1, timestamp=9), asks(1, timestamp=3)))
    ran = kvtier("replay", "t.jsonl", *args, cwd=folder)
    said = "t.jsonl: its timestamps are out of order from line 2 on; the requests were sorted"
    if args:
        assert document(ran)["warnings"] == [said]
    else:
        assert (ran.stderr, ran.status) == (f"warning: {said}\n", 0)


@pytest.mark.parametrize("args", [[], ["-q"], ["--json"]])
def test_lines_left_out_are_said_in_every_output(kvtier: RunsKvtier, folder: Path, args: list[str]) -> None:
    (folder / "t.jsonl").write_text(text_of(asks(1), "{}", asks(1), "nonsense"))
    ran = kvtier("replay", "t.jsonl", "--skip-bad", *args, cwd=folder)
    said = "t.jsonl: 2 bad lines skipped; the first: t.jsonl:2: the request has no hash_ids"
    if "--json" in args:
        assert document(ran)["warnings"] == [said]
    else:
        assert (ran.stderr, ran.status) == (f"warning: {said}\n", 0)


@pytest.mark.parametrize("request_", [asks(1), asks(), asks(1, 2, 3, input_length=1_000_000)])
def test_a_trace_of_one_request_will_do(kvtier: RunsKvtier, folder: Path, request_: dict[str, Any]) -> None:
    (folder / "t.jsonl").write_text(text_of(request_))
    ran = kvtier("replay", "t.jsonl", cwd=folder)
    blocks = len(request_["hash_ids"])
    assert ran.status == 0
    assert f"   1 request   {blocks} block{'' if blocks == 1 else 's'} of 512 tokens   no filter" in ran.stdout


def test_of_a_trace_without_blocks_there_are_no_shares(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "t.jsonl").write_text(text_of(asks(), asks()))
    found = document(kvtier("replay", "t.jsonl", "--json", cwd=folder))
    assert {rate["value"] for rate in found["figures"]["rates"].values()} == {None}
    assert set(found["figures"]["outcomes"].values()) == {0}
    assert "\nserved 0 of 0 blocks\n" in kvtier("replay", "t.jsonl", cwd=folder).stdout


def test_a_tier_may_be_as_large_as_numbers_go(kvtier: RunsKvtier, folder: Path) -> None:
    large = json.dumps({"primary": {"capacity": 2**62, "policy": "arc"}, "tiers": [{"name": "t", "capacity": 2**62}]})
    ran = kvtier("replay", "t.jsonl", "--topology", large, cwd=folder)
    assert (ran.stderr, ran.status) == ("", 0)
    assert max(map(cell_width, ran.stdout.splitlines())) <= 80


# --json


def test_the_format_that_the_content_told_is_named(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "q.jsonl").write_text(
        '{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 20, "output_length": 3, '
        '"type": "text", "turn": 1, "hash_ids": [1, 2]}\n'
    )
    assert kvtier("replay", "q.jsonl", cwd=folder).stdout.startswith("q.jsonl   format bailian   1 request ")
    assert "format" not in kvtier("replay", "t.jsonl", cwd=folder).stdout.splitlines()[0]
    both = kvtier("replay", "q.jsonl", "t.jsonl", "--json", cwd=folder)
    assert [run["formats"] for run in json.loads(both.stdout)["runs"]] == [["bailian"], ["mooncake"]]


def test_the_document_has_the_names_that_are_promised(kvtier: RunsKvtier, folder: Path) -> None:
    found = document(kvtier("replay", "t.jsonl", "--topology", "two.toml", "--json", cwd=folder))
    assert list(found) == [
        *("kvtier", "schema", "scope", "topology", "files", "formats", "block_tokens", "filter", "tiers_for"),
        *("requests_log", "figures", "groups", "warnings"),
    ]
    assert (found["schema"], found["scope"], found["files"]) == ("kvtier.replay/1", SCOPE, ["t.jsonl"])
    assert (found["formats"], found["block_tokens"], found["filter"], found["warnings"]) == (
        ["mooncake"],
        512,
        None,
        [],
    )
    figures = found["figures"]
    assert set(FIGURES) <= figures.keys()
    assert list(figures["outcomes"]) == OUTCOMES
    assert figures["loaded_by_source"].keys() == {"host", "disk", "external_unspecified"}
    assert figures["resident"] == {"primary": 2, "nvme": 3}
    assert [figures[name]["nvme"] for name in FIGURES if name.endswith("_by_tier")] == [2, 4, 2, 0]
    assert figures["bytes"] is None
    assert all(rate.keys() == {"value", "formula"} for rate in figures["rates"].values())
    assert found["topology"]["primary"] == {"capacity": 2, "policy": "lru"}


def test_the_document_states_the_filter_of_all_requests(kvtier: RunsKvtier, folder: Path) -> None:
    found = document(kvtier("replay", "t.jsonl", "--topology", "two.toml", "--tiers", "cpu", "--json", cwd=folder))
    assert found["filter"]["effective"] == [{"medium": "CPU", "locality": None}]
    assert found["figures"]["outcomes"]["filtered"] == 1


def test_the_same_trace_gives_the_same_bytes(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "two.toml", "--json"]
    one, other = (kvtier(*args, cwd=folder, env={"PYTHONHASHSEED": seed}) for seed in ("1", "2"))
    assert one == other


def test_timing_adds_the_seconds_and_nothing_else(kvtier: RunsKvtier, folder: Path) -> None:
    plain, timed = (document(kvtier("replay", "t.jsonl", "--json", *more, cwd=folder)) for more in ([], ["--timing"]))
    timing = timed.pop("timing")
    assert timed == plain
    assert list(timing) == ["read", "replay", "total"]
    assert all(seconds > 0 for seconds in timing.values())
    assert timing["read"] + timing["replay"] == pytest.approx(timing["total"])


# Several traces, and stdin


def test_each_trace_is_a_run_of_its_own(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "u.jsonl").write_text(text_of(asks(1, 2, 3)))
    args = ["replay", "t.jsonl", "u.jsonl", "t.jsonl", "--topology", "two.toml"]
    found = document(kvtier(*args, "--json", cwd=folder))
    assert [run["files"] for run in found["runs"]] == [["t.jsonl"], ["u.jsonl"], ["t.jsonl"]]
    alone = document(kvtier("replay", "t.jsonl", "--topology", "two.toml", "--json", cwd=folder))
    assert found["runs"][0]["figures"] == found["runs"][2]["figures"] == alone["figures"]
    assert found["topology"] == alone["topology"]
    shown = kvtier(*args, cwd=folder)
    assert [block.split("   ")[0] for block in shown.stdout.split("\n\n") if " requests" in block.partition("\n")[0]]
    assert shown.stdout.count("\nserved ") == 3


def test_joined_traces_are_one_run(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "u.jsonl").write_text(text_of(asks(3)))
    found = document(kvtier("replay", "t.jsonl", "u.jsonl", "--join", "--json", cwd=folder))
    assert (found["files"], found["figures"]["requests"]) == (["t.jsonl", "u.jsonl"], 4)
    assert found["figures"]["blocks_loaded"] == 3
    shown = kvtier("replay", "t.jsonl", "u.jsonl", "--join", cwd=folder)
    assert shown.stdout.startswith("t.jsonl and 1 more, joined   4 requests")


def test_traces_of_different_block_sizes_cannot_be_joined(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "u.jsonl").write_text(text_of({"input_length": 16, "hash_ids": [1], "block_size": 16}))
    said = refusal(kvtier("replay", "t.jsonl", "u.jsonl", "--join", cwd=folder))
    assert said == ["u.jsonl: blocks of 16 tokens cannot join blocks of 512"]


def test_a_trace_may_come_from_a_pipe(kvtier: RunsKvtier, folder: Path) -> None:
    piped = document(kvtier("replay", "-", "--json", stdin=(folder / "t.jsonl").read_text()))
    assert piped.pop("files") == ["stdin"]
    read = document(kvtier("replay", "t.jsonl", "--json", cwd=folder))
    assert piped == {name: value for name, value in read.items() if name != "files"}


def test_a_filter_may_come_from_a_pipe(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "two.toml", "--json", "--tiers"]
    piped = kvtier(*args, "-", stdin='[{"medium":"cpu"}]', cwd=folder)
    assert json.loads(piped.stdout) == json.loads(kvtier(*args, '[{"medium":"cpu"}]', cwd=folder).stdout)


def test_a_topology_of_the_environment_holds_for_traces_and_leaves_fixtures_alone(
    kvtier: RunsKvtier, folder: Path
) -> None:
    env = {"KVTIER_TOPOLOGY": "two.toml"}
    assert document(kvtier("replay", "t.jsonl", "--json", cwd=folder, env=env))["topology"]["name"] == "two.toml"
    (folder / "f.yaml").write_text("kvtier: 1\ntopology: {primary: {capacity: 1}}\nops: [{op: step}]\n")
    assert kvtier("replay", "f.yaml", cwd=folder, env=env).status == 0
    said = refusal(kvtier("replay", "f.yaml", "--topology", "two.toml", cwd=folder))
    assert said == ["f.yaml: --topology does not apply to a scripted fixture, which states its own"]


# Filters that do not do what they seem to


@pytest.mark.parametrize(
    ("given_filter", "said"),
    [
        (
            '[{"medum":"storage"}]',
            [
                "the filter fails open: an entry restricts nothing, since vLLM ignores its unknown keys",
                'entry 0 of the filter: unknown key "medum", did you mean "medium"?',
            ],
        ),
        (
            "storage:remote",
            ['entry 0 of the filter: no secondary tier here is storage and remote, "nvme" is storage and local'],
        ),
    ],
)
def test_a_filter_that_fails_open_or_admits_nothing_is_warned_about(
    kvtier: RunsKvtier, folder: Path, given_filter: str, said: list[str]
) -> None:
    args = ["replay", "t.jsonl", "--topology", "two.toml", "--tiers", given_filter]
    ran = kvtier(*args, cwd=folder)
    assert (ran.stderr.splitlines(), ran.status) == ([f"warning: {each}" for each in said], 0)
    assert document(kvtier(*args, "--json", cwd=folder))["warnings"] == said


def test_the_filters_of_the_requests_themselves_are_warned_about(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "t.jsonl").write_text(text_of(asks(1, kv_load_tiers="nvme"), asks(2)))
    ran = kvtier("replay", "t.jsonl", cwd=folder)
    assert ran.stderr.splitlines() == [
        "warning: vLLM would log 1 warning about the requests' filters",
        "warning: the filters of 1 request fail open: they admit all",
    ]


# --events


def batches(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_go_to_a_file_beside_the_result(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "two.toml", "--json"]
    with_events = kvtier(*args, "--events", "out", cwd=folder)
    assert with_events == kvtier(*args, cwd=folder)
    first = (folder / "out").read_bytes()
    found = batches(first.decode())
    assert [batch["seq"] for batch in found] == list(range(len(found)))
    assert {event["type"] for batch in found for event in batch["events"]} == {"BlockStored", "BlockRemoved"}
    assert kvtier(*args, "--events", "out", cwd=folder).status == 0
    assert (folder / "out").read_bytes() == first


def test_events_on_stdout_have_it_to_themselves(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "two.toml"]
    assert kvtier(*args, "--events", "out", cwd=folder).status == 0
    piped = kvtier(*args, "--events", "-", cwd=folder)
    assert (piped.stdout, piped.status) == ((folder / "out").read_text(), 0)
    assert piped.stderr == kvtier(*args, cwd=folder).stdout


def test_events_go_through_a_pipe_that_has_a_name(kvtier: RunsKvtier, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with subprocess.Popen(["/bin/cat", folder / "pipe"], stdout=subprocess.PIPE) as reader:
        assert kvtier("replay", "t.jsonl", "--events", "pipe", cwd=folder).status == 0
        assert reader.stdout is not None
        assert len(batches(reader.stdout.read().decode())) > 0
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@pytest.mark.parametrize("before", [None, "of another run"])
def test_an_error_in_the_trace_leaves_nothing_half_written(
    kvtier: RunsKvtier, folder: Path, before: str | None
) -> None:
    (folder / "t.jsonl").write_text(text_of(asks(1), "{"))
    if before is not None:
        (folder / "out").write_text(before)
    names = sorted(path.name for path in folder.iterdir())
    assert refusal(kvtier("replay", "t.jsonl", "--events", "out", cwd=folder))[0].startswith("t.jsonl:2:")
    assert sorted(path.name for path in folder.iterdir()) == names
    assert before is None or (folder / "out").read_text() == before


@pytest.mark.parametrize("out", ["t.jsonl", "./t.jsonl", "link", "hard"])
def test_events_do_not_overwrite_the_trace_they_are_of(kvtier: RunsKvtier, folder: Path, out: str) -> None:
    (folder / "link").symlink_to("t.jsonl")
    (folder / "hard").hardlink_to(folder / "t.jsonl")
    trace = (folder / "t.jsonl").read_text()
    said = refusal(kvtier("replay", "t.jsonl", "--events", out, cwd=folder))
    assert said == [f"{out}: is the trace itself, which --events would overwrite"]
    assert (folder / "t.jsonl").read_text() == trace


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("nowhere/out", "nowhere/out: lies in no folder that there is"),
        ("two.toml/out", "two.toml/out: lies in no folder that there is"),
        (".", ".: is a folder; expected a file to write"),
    ],
)
def test_where_no_file_can_be_is_wrong_input(kvtier: RunsKvtier, folder: Path, out: str, said: str) -> None:
    assert refusal(kvtier("replay", "t.jsonl", "--events", out, cwd=folder)) == [said]


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder with a trace in it, where anybody may read and nobody may write."""
    with tempfile.TemporaryDirectory(prefix="kvtier-tests-") as name:
        folder = Path(name)
        (folder / "t.jsonl").write_text(GOOD)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def test_a_folder_that_may_not_be_written_to_is_a_fault_of_the_environment(locked: Path) -> None:
    lines = [
        "import json, os, sys, tempfile",
        "import kvtier_cli.commands.lazy, kvtier_cli.commands.outputs, kvtier_cli.commands.replay",
        "import kvtier_cli.render.replay_view, kvtier_cli.replay.event_log, kvtier_cli.replay.trace_run",
        "from kvtier_cli.main import main",
        "os.geteuid() or os.setuid(65534)",  # root may write anywhere
        "sys.exit(main(['replay', 't.jsonl', '--events', 'out']))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        cwd=locked,
        env=python_environment(),
        check=False,
    )
    ran = Ran(done.stdout, done.stderr, done.returncode)
    assert refusal(ran, ExitStatus.ENVIRONMENT) == ["out: cannot be written: permission denied"]
    assert [path.name for path in locked.iterdir()] == ["t.jsonl"]


def test_a_file_that_grows_too_large_is_told_and_taken_away(folder: Path) -> None:
    (folder / "t.jsonl").write_text(text_of(*(asks(block) for block in range(500))))
    names = sorted(path.name for path in folder.iterdir())
    done = subprocess.run(
        [*KVTIER, "replay", "t.jsonl", "--events", "out"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=python_environment({"PYTHONDONTWRITEBYTECODE": "1"}),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        check=False,
    )
    ran = Ran(done.stdout, done.stderr, done.returncode)
    assert refusal(ran, ExitStatus.ENVIRONMENT) == ["out: cannot be written: file too large"]
    assert sorted(path.name for path in folder.iterdir()) == names


# Readers that have seen enough


@pytest.mark.parametrize("args", [[], ["--json"], ["--events", "-"]])
def test_a_closed_pipe_is_no_error(folder: Path, args: list[str]) -> None:
    (folder / "t.jsonl").write_text(text_of(*(asks(block) for block in range(2000))))
    with subprocess.Popen(
        [*KVTIER, "replay", "t.jsonl", *args, "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=python_environment(),
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        if args == ["--events", "-"]:
            assert child.stdout.readline().startswith(b'{"seq":0')
        child.stdout.close()
        assert (child.stderr.read(), child.wait(timeout=60)) == (b"", ExitStatus.DONE)


def test_the_events_of_the_last_request_reach_the_storage_tiers_too(kvtier: RunsKvtier, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"input_length": 1024, "hash_ids": [1, 2]}\n')
    events = tmp_path / "events.jsonl"
    plain_run = kvtier("replay", str(trace), "--json")
    ran = kvtier("replay", str(trace), "--json", "--events", str(events))
    assert (ran.stdout, ran.status) == (plain_run.stdout, 0)
    media = [event["medium"] for line in events.read_text().splitlines() for event in json.loads(line)["events"]]
    assert media == ["CPU"] * 2 + ["STORAGE"] * 4
