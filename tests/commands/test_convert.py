"""`kvtier convert`, as its users see it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conftest import RunsKvtier
from tests.workspace.in_process import run_here

ROW = {"timestamp": 0, "input_length": 20, "hash_ids": [1, 2], "block_size": 16, "session_id": "s", "tenant": "t"}


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "kv_transfer_params": {}}) + "\n")
    return "t.jsonl"


def test_without_options_it_is_kvtiers_own_format_which_holds_everything(kvtier: RunsKvtier, trace: str) -> None:
    ran = kvtier("convert", trace, "out.gz")
    assert ran.stdout == ("wrote out.gz: 2 requests, mooncake to kvtier, nothing is lost\n")
    assert ran.stderr == "note: kept as tags: tenant\n"
    header, first, _ = gzip.decompress(Path("out.gz").read_bytes()).splitlines()
    assert json.loads(header) == {"kvtier": "trace", "version": 1, "block_tokens": 16}
    assert json.loads(first)["tags"] == {"tenant": "t"}


def test_what_is_lost_is_said_with_how_many_requests_had_it(kvtier: RunsKvtier, trace: str) -> None:
    ran = kvtier("convert", trace, "out", "--to", "kvcache-simulator")
    assert ran.stdout == "wrote out: 2 requests, mooncake to kvcache-simulator\n"
    assert ran.stderr == (
        "warning: lost: tenant of 2 requests\nwarning: lost: timestamp of 2 requests\n"
        "warning: lost: session_id of 2 requests\nwarning: lost: kv_transfer_params of 1 request\n"
    )
    document = json.loads(kvtier("convert", trace, "out", "--to", "kvcache-simulator", "--json").stdout)
    assert document["lost"] == [
        {"field": "tenant", "requests": 2},
        {"field": "timestamp", "requests": 2},
        {"field": "session_id", "requests": 2},
        {"field": "kv_transfer_params", "requests": 1},
    ]


def test_a_trace_from_stdin_goes_to_stdout(kvtier: RunsKvtier) -> None:
    row = json.dumps({"timestamp": 0, "input_length": 20, "hash_ids": [1, 2], "block_size": 16})
    ran = kvtier("convert", "-", "-", "--to", "mooncake", stdin=row)
    assert ran.stdout == '{"timestamp":0,"input_length":20,"hash_ids":[1,2],"block_size":16}\n'
    assert ran.stderr == "note: 1 request, mooncake to mooncake, nothing is lost\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["t.jsonl", "t.jsonl"], "error: t.jsonl: is the trace itself, which would be overwritten\n"),
        (["t.jsonl", "out", "--to", "libcachesim-csv"], "error: t.jsonl: libcachesim-csv cannot hold where a request"),
        (["t.jsonl", "out", "--to", "csv"], 'error: --to: no traces are written as "csv"\n'),
        (["t.jsonl", "out", "--from", "csv"], 'error: --from: there is no format "csv"\n'),
        (["t.jsonl", "-", "--json"], "error: the trace and --json both go to stdout\n"),
        (["none.jsonl", "out"], "error: none.jsonl: no such file\n"),
        (["bad.jsonl", "out"], "error: bad.jsonl:2:4: not JSON:"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    kvtier: RunsKvtier, trace: str, args: list[str], words: str
) -> None:
    Path("bad.jsonl").write_text(json.dumps(ROW) + "\nno request\n")
    before = Path("t.jsonl").read_bytes()
    ran = kvtier("convert", *args)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith(words)
    assert not Path("out").exists()
    assert Path("t.jsonl").read_bytes() == before
