"""`kvtier synth`, as its users see it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conftest import RunsKvtier
from tests.workspace.in_process import run_here


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


def test_a_trace_goes_to_stdout_and_what_it_is_to_stderr(kvtier: RunsKvtier) -> None:
    ran = kvtier("synth", "--requests", "3", "--tenants", "2", "--block-tokens", "64")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [list(row) for row in rows] == 3 * [
        [
            *("timestamp", "input_length", "output_length", "hash_ids", "block_size"),
            *("request_id", "session_id", "tenant"),
        ]
    ]
    assert ran.stderr.startswith("note: 3 requests (mixed, seed 1), ")
    assert ran.status == 0


def test_a_file_is_packed_by_its_name_and_holds_the_same_trace(kvtier: RunsKvtier, tmp_path: Path) -> None:
    packed, again = tmp_path / "t.jsonl.gz", tmp_path / "u.jsonl.gz"
    ran = kvtier("synth", "--requests", "50", "--seed", "7", "--kind", "agent", "-o", str(packed))
    kvtier("synth", "--requests", "50", "--seed", "7", "--kind", "agent", "-o", str(again))
    plain = kvtier("synth", "--requests", "50", "--seed", "7", "--kind", "agent", "-q")
    assert gzip.decompress(packed.read_bytes()).decode() == plain.stdout
    assert packed.read_bytes() == again.read_bytes()
    assert ran.stdout.startswith(f"wrote {packed}: 50 requests (agent, seed 7), ")
    assert plain.stderr == ""


def test_the_figures_of_json_are_those_of_the_trace(kvtier: RunsKvtier, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    ran = kvtier("synth", "--references", "2k", "--format", "kvtier", "-o", str(path), "--json")
    document = json.loads(ran.stdout)
    header, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    ids = [block for row in rows for block in row["hash_ids"]]
    assert header == {"kvtier": "trace", "version": 1, "block_tokens": 512}
    assert document["figures"] == {
        "requests": len(rows),
        "blocks": len(ids),
        "distinct_blocks": len(set(ids)),
        "last_timestamp_ms": rows[-1]["timestamp"],
    }
    assert len(ids) >= 2_000


def test_a_made_trace_replays_without_a_warning(kvtier: RunsKvtier) -> None:
    made = kvtier("synth", "--requests", "200", "--kind", "rag").stdout
    ran = kvtier("replay", "-", "--json", stdin=made)
    assert json.loads(ran.stdout)["warnings"] == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--kind", "agnt"], 'error: there is no kind "agnt"\n       did you mean "agent"?\n'),
        (["--requests", "0"], "error: --requests 0 would be no trace; expected 1 or more\n"),
        (["--requests", "1", "--references", "2"], "error: --requests and --references both say how much\n"),
        (["--format", "bailian"], 'error: --format: no traces are made as "bailian"\n'),
        (["--json"], "error: the trace and --json both go to stdout\n"),
        (["--between", "soon"], 'error: "soon" is not understood, expected a time such as'),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made(kvtier: RunsKvtier, args: list[str], words: str) -> None:
    ran = kvtier("synth", *args)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith(words)
