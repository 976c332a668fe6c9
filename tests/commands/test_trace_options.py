"""How the commands that read traces are told to: `--format`, `--block-tokens`, `--time-unit`, `--fields`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kvtier_cli.commands.inputs import read_options
from kvtier_cli.traces.options import TraceOptions
from tests.conftest import RunsKvtier

CHATS = [
    {"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "hash_ids": [1, 2, 3]},
    {"chat_id": 8, "parent_chat_id": 7, "timestamp": 2, "input_length": 64, "hash_ids": [1, 2, 4, 5]},
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with `chats`, a packed Bailian trace, and `t.jsonl`, a Mooncake one whose times are in seconds."""
    lines = "".join(f"{json.dumps(chat)}\n" for chat in CHATS)
    (tmp_path / "chats").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "t.jsonl").write_text('{"timestamp": 1.5, "input_length": 30, "hash_ids": [1, 2]}\n')
    return tmp_path


def test_a_packed_trace_of_another_format_is_replayed_as_it_is(kvtier: RunsKvtier, here: Path) -> None:
    ran = kvtier("replay", "chats", "--json", cwd=here)
    found = json.loads(ran.stdout)
    assert (found["block_tokens"], found["figures"]["blocks"], found["figures"]["blocks_loaded"]) == (16, 7, 2)
    assert found["warnings"] == []


def test_its_own_ids_name_its_requests(kvtier: RunsKvtier, here: Path) -> None:
    found = json.loads(kvtier("lookup", "--trace", "chats", "--request", "8", "--json", cwd=here).stdout)
    assert found["request"] == {"id": "8", "index": 1}
    assert [block["outcome"] for block in found["blocks"]] == ["primary", "primary", "absent", "unreached"]


def test_every_command_reads_a_trace_as_it_is_told(kvtier: RunsKvtier, here: Path) -> None:
    (here / "t.jsonl").write_text('{"at": 1.5, "n": 30, "ids": [1, 2]}\n')
    told = ["--format", "timed-trace", "--fields", "hash_ids=ids,input_length=n,timestamp=at"]
    told += ["--block-tokens", "15", "--time-unit", "ms"]
    assert kvtier("init", cwd=here).status == 0
    for command in (
        ["replay", "t.jsonl"],
        ["load", "t.jsonl"],
        ["explain", "t.jsonl", "--request", "0"],
        ["compare", "t.jsonl", "--tiers", "all", "--tiers", "deny"],
        ["lookup", "1", "--trace", "t.jsonl"],
    ):
        found = json.loads(kvtier(*command, *told, "--json", cwd=here).stdout)
        assert found["block_tokens"] == 15


def test_times_reach_the_events_in_seconds(kvtier: RunsKvtier, here: Path) -> None:
    for unit, seconds in (("s", 1.5), ("ms", 0.0015)):
        ran = kvtier("replay", "t.jsonl", "--time-unit", unit, "--events", "-", "-q", cwd=here)
        assert f"{seconds}" in ran.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["replay", "chats", "--format", "bailan"], 'Did you mean "bailian"?'),
        (["replay", "chats", "--time-unit", "us"], "chats: its format counts its times in s"),
        (["replay", "chats", "--time-unit", "hours"], 'there is no time unit "hours"'),
        (["load", "chats", "--block-tokens", "0"], "blocks of 0 tokens; expected 1 or more"),
        (["lookup", "1", "--format", "mooncake"], "--format says how a trace is read"),
        (["replay", "chats", "--fields", "hash_id=ids"], 'Did you mean "hash_ids"?'),
        (["replay", "chats", "--format", "bailian", "--fields", "hash_ids=ids"], "--fields does not apply"),
        (["lookup", "1", "--fields", "hash_ids=ids"], "--fields says how a trace is read"),
        (["lookup", "1", "--time-unit", "s"], "--time-unit says how a trace is read"),
        (["replay", "case.yaml", "--block-tokens", "16"], "--block-tokens does not apply to a scripted fixture"),
        (["replay", "case.yaml", "--format", "mooncake"], "case.yaml:1:1: not JSON"),
    ],
)
def test_what_cannot_be_is_refused(kvtier: RunsKvtier, here: Path, args: list[str], said: str) -> None:
    (here / "case.yaml").write_text("kvtier: 1\nops: [{op: step}]\n")
    ran = kvtier(*args, cwd=here)
    assert (ran.stdout, ran.status) == ("", 2)
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) <= 2


def test_a_cut_off_file_ends_with_what_was_read_before(kvtier: RunsKvtier, here: Path) -> None:
    lines = b"".join(b'{"input_length": 16, "hash_ids": [%d]}\n' % (number**5) for number in range(30_000))
    (here / "cut").write_bytes(gzip.compress(lines)[:-100])
    ran = kvtier("replay", "cut", cwd=here)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith("error: cut: its gzip data are cut off\n")
    assert "requests were read before it." in ran.stderr


def test_nothing_said_is_the_trace_as_it_says() -> None:
    assert read_options(None, None, None) == TraceOptions()
    assert read_options(None, None, None, fields="hash_ids=a") == TraceOptions(
        "timed-trace", fields=(("hash_ids", "a"),)
    )
    assert read_options("bailian", 64, "s", ["tenant"]) == TraceOptions("bailian", 64, "s", ("tenant",))
