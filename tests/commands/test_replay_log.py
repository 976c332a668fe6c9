"""`kvtier replay --log`, as its users see it: every format says the same, whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.replay.decision_log import open_log
from kvtier_cli.replay.kvlog_file import KvlogFile
from tests.conftest import CHECKOUT, UPDATE_GOLDEN, Ran, RunsKvtier, python_environment
from tests.golden_files import FOLDER, assert_golden
from tests.replay.logs import as_rows, write_trace

FORMATS = ("kvlog", "jsonl", "csv", "parquet")
KVLOG = FOLDER / "log" / "log.kvlog"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `kvtier` runs: with a trace that has most outcomes in it, and tiers whose names are no pleasure."""
    local = '"kv_load_tiers": [{"locality": "local"}]'
    (tmp_path / "t.jsonl").write_text(
        '{"input_length": 1536, "hash_ids": [1, 2, 3], "request_id": "first, \\"quoted\\""}\n'
        '{"input_length": 1024, "hash_ids": [4, 2]}\n'
        '{"input_length": 1024, "hash_ids": [18446744073709551616, "=1+1\\n"]}\n'
        f'{{"input_length": 1536, "hash_ids": [1, 2, 3], {local}}}\n'
        '{"input_length": 1536, "hash_ids": [1, 2, 3], "request_id": "é"}\n'
        '{"input_length": 512, "hash_ids": ["bad"]}\n'
        '{"input_length": 1536, "hash_ids": [5, 6, 7]}\n'
        '{"input_length": 1024, "hash_ids": ["bad", 8]}\n'
        '{"input_length": 1536, "hash_ids": [5, 6, 7]}\n'
        '{"input_length": 0, "hash_ids": []}\n'
        '{"input_length": 512, "hash_ids": [9]}\n'
        '{"input_length": 512, "hash_ids": [4]}\n'
    )
    (tmp_path / "tiers.toml").write_text(
        '[primary]\ncapacity = 3\n[[tiers]]\nname = "s3; \\"far\\", away"\nmedium = "storage"\nlocality = "remote"\n'
        'capacity = 7\nfail_loads = ["bad"]\n[[tiers]]\nname = "nvme"\nmedium = "storage"\nlocality = "local"\n'
        "capacity = 2\n"
    )
    return tmp_path


def logged(kvtier: RunsKvtier, folder: Path, name: str, *more: str) -> bytes:
    ran = kvtier("replay", "t.jsonl", "--topology", "tiers.toml", "--log", name, *more, cwd=folder)
    assert (ran.stderr, ran.status) == ("", ExitStatus.DONE)
    return (folder / name).read_bytes()


def rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def refusal(ran: Ran, status: ExitStatus = ExitStatus.INPUT) -> list[str]:
    """What a refused command says, line by line; it has printed nothing else."""
    assert (ran.stdout, ran.status) == ("", status)
    first, *rest = ran.stderr.splitlines()
    assert first.startswith("error: ")
    return [first.removeprefix("error: "), *(line.strip() for line in rest)]


@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_what_was_decided_about_each_block_is_a_line(kvtier: RunsKvtier, folder: Path, format_: str) -> None:
    assert_golden(f"log/log.{format_}", logged(kvtier, folder, f"log.{format_}").decode())


def test_a_kvlog_is_what_it_was_when_its_format_was_settled(kvtier: RunsKvtier, folder: Path) -> None:
    data = logged(kvtier, folder, "log.kvlog")
    if UPDATE_GOLDEN:
        KVLOG.write_bytes(data)
    now, then = KvlogFile(str(folder / "log.kvlog")), KvlogFile(str(KVLOG))
    headers = [msgspec.to_builtins(each.header) for each in (now, then)]
    assert headers[0].keys() == headers[1].keys()
    for name in headers[0].keys() - {"kvtier", "scope", "figures", "topology"}:  # these may grow
        assert headers[0][name] == headers[1][name], name
    assert data[-now.header.size :] == KVLOG.read_bytes()[-then.header.size :]
    assert as_rows(open_log(str(KVLOG))) == rows((FOLDER / "log" / "log.jsonl").read_bytes())


def test_parquet_has_the_same_rows_with_words_in_dictionaries(kvtier: RunsKvtier, folder: Path) -> None:
    logged(kvtier, folder, "log.parquet")
    table = pq.read_table(folder / "log.parquet")
    assert table.to_pylist() == rows((FOLDER / "log" / "log.jsonl").read_bytes())
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["request"] == kinds["evicted_by"] == "int32"
    assert kinds["outcome"].startswith("dictionary<values=string")
    assert kinds["block"] == "string"


def test_csv_has_the_same_rows_as_texts(kvtier: RunsKvtier, folder: Path) -> None:
    data = logged(kvtier, folder, "log.csv").decode()
    found = list(csv.DictReader(io.StringIO(data, newline="")))
    expected = rows((FOLDER / "log" / "log.jsonl").read_bytes())
    for row in expected:
        row["holders"] = ";".join(name.replace(";", "\\;") for name in row["holders"])
    assert found == [{name: "" if value is None else str(value) for name, value in row.items()} for row in expected]


@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_run_gives_the_same_bytes(kvtier: RunsKvtier, folder: Path, format_: str) -> None:
    one, other = (logged(kvtier, folder, f"{name}.{format_}") for name in ("one", "other"))
    assert one == other


def test_a_log_changes_no_figure_and_comes_with_events_as_without(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "tiers.toml", "--json"]
    alone = kvtier(*args, cwd=folder)
    with_log = kvtier(*args, "--log", "one.jsonl", cwd=folder)
    with_both = kvtier(*args, "--log", "other.jsonl", "--events", "events", cwd=folder)
    assert alone.stdout == with_log.stdout == with_both.stdout
    assert kvtier(*args, "--events", "events-alone", cwd=folder).status == 0
    assert (folder / "events").read_bytes() == (folder / "events-alone").read_bytes()
    assert (folder / "one.jsonl").read_bytes() == (folder / "other.jsonl").read_bytes()


def test_stores_on_disk_give_the_log_of_those_in_memory(kvtier: RunsKvtier, folder: Path) -> None:
    assert logged(kvtier, folder, "disk.jsonl", "--store", "kept") == logged(kvtier, folder, "memory.jsonl")


def test_a_log_on_stdout_has_it_to_itself(kvtier: RunsKvtier, folder: Path) -> None:
    args = ["replay", "t.jsonl", "--topology", "tiers.toml"]
    piped = kvtier(*args, "--log", "-", cwd=folder)
    assert (piped.stdout.encode(), piped.status) == (logged(kvtier, folder, "log.jsonl"), 0)
    assert piped.stderr == kvtier(*args, cwd=folder).stdout


def test_joined_traces_are_one_log(kvtier: RunsKvtier, folder: Path) -> None:
    write_trace(folder / "more.jsonl", [77])
    found = rows(logged(kvtier, folder, "log.jsonl", "more.jsonl", "--join"))
    assert [(row["request"], row["block"]) for row in found][-2:] == [(11, "4"), (12, "77")]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_trace_without_blocks_gives_a_log_without_rows(kvtier: RunsKvtier, folder: Path, format_: str) -> None:
    write_trace(folder / "t.jsonl", [], [])
    logged(kvtier, folder, f"log.{format_}")
    if format_ == "parquet":
        assert pq.read_table(folder / "log.parquet").num_rows == 0
    elif format_ == "kvlog":
        assert open_log(str(folder / "log.kvlog")).blocks == 0
    else:
        assert len((folder / f"log.{format_}").read_bytes().splitlines()) == (format_ == "csv")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["t.jsonl", "--log", "log.txt"],
            ["log.txt: names no format of a decision log; expected .kvlog, .jsonl, .csv or .parquet"],
        ),
        (
            ["t.jsonl", "--log", "log.kvlgo"],
            [
                "log.kvlgo: names no format of a decision log; expected .kvlog, .jsonl, .csv or .parquet",
                'did you mean ".kvlog"?',
            ],
        ),
        (
            ["t.jsonl", "t.jsonl", "--log", "log.csv"],
            ["--log writes one run", "Replay one trace at a time, or --join them."],
        ),
        (["t.jsonl", "--log", "-", "--json"], ["--log - and --json both write to stdout", "Give --log a file."]),
        (
            ["t.jsonl", "--log", "-", "--events", "-"],
            ["--log and --events both write to stdout", "Give each a file of its own."],
        ),
        (
            ["t.jsonl", "--log", "o.jsonl", "--events", "o.jsonl"],
            ["--log and --events both write to one file", "Give each a file of its own."],
        ),
        (
            ["t.jsonl", "--log", "o.csv", "--junit", "./o.csv"],
            ["--log and --junit both write to one file", "Give each a file of its own."],
        ),
        (["t.jsonl", "--log", "t.jsonl"], ["t.jsonl: is the trace itself, which --log would overwrite"]),
        (["t.jsonl", "--log", "nowhere/log.csv"], ["nowhere/log.csv: lies in no folder that there is"]),
        (
            ["f.yaml", "--log", "log.csv"],
            ["f.yaml: --log does not apply to a scripted fixture"],
        ),
    ],
)
def test_a_log_that_cannot_be_is_refused_before_any_work(
    kvtier: RunsKvtier, folder: Path, args: list[str], said: list[str]
) -> None:
    (folder / "f.yaml").write_text("kvtier: 1\ntitle: t\ntopology: {primary: {capacity: 4}}\nops: [{op: step}]\n")
    names = sorted(path.name for path in folder.iterdir())
    assert refusal(kvtier("replay", *args, cwd=folder)) == said
    assert sorted(path.name for path in folder.iterdir()) == names


def test_parquet_without_pyarrow_says_how_to_get_it(kvtier: RunsKvtier, folder: Path) -> None:
    (folder / "pyarrow.py").write_text("raise ModuleNotFoundError(name='pyarrow')")
    ran = kvtier(*("replay", "t.jsonl", "--log", "log.parquet"), env={"PYTHONPATH": f"{folder}:{CHECKOUT}"}, cwd=folder)
    assert refusal(ran, ExitStatus.ENVIRONMENT) == [
        'log.parquet: Parquet takes the Python package "pyarrow", which is not installed',
        "pip install 'kvtier[formats]'; .kvlog, .jsonl and .csv need nothing more.",
    ]
    assert not (folder / "log.parquet").exists()


@pytest.mark.parametrize("format_", FORMATS)
def test_an_error_in_the_trace_leaves_nothing_half_written(kvtier: RunsKvtier, folder: Path, format_: str) -> None:
    with (folder / "t.jsonl").open("a") as trace:
        trace.write("{\n")
    names = sorted(path.name for path in folder.iterdir())
    said = refusal(kvtier("replay", "t.jsonl", "--log", f"log.{format_}", cwd=folder))
    assert said[0].startswith("t.jsonl:13:")
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_log_in_the_place_of_a_trace_is_told_apart(kvtier: RunsKvtier, folder: Path) -> None:
    logged(kvtier, folder, "log.kvlog")
    assert refusal(kvtier("replay", "log.kvlog", cwd=folder)) == [
        "log.kvlog: is a decision log, what came of a replay; expected a trace",
        "Read it with kvtier explain LOG --request ID or kvtier compare LOG LOG, or give the trace.",
    ]


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    write_trace(folder / "t.jsonl", *([number] for number in range(3000)))
    with subprocess.Popen(
        [sys.executable, "-m", "kvtier_cli.main", "replay", "t.jsonl", "--log", "-", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=python_environment(),
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().startswith(b'{"request":0')
        child.stdout.close()
        assert (child.stderr.read(), child.wait(timeout=60)) == (b"", ExitStatus.DONE)
