"""What `kvtier replay` shows of a trace: the answer first, at any width, whatever tiers and files are called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.render.console import Output, cell_width
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.replay_view import replay_lines
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.topology_file import topology_from_builtins
from kvtier_cli.traces.source import TraceSource
from tests.conftest import RunsKvtier, in_terminal

ESC = "\x1b"


def asks(*ids: int, **more: Any) -> dict[str, Any]:
    return {"input_length": 512 * len(ids), "hash_ids": list(ids), **more}


def text_of(*requests: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in requests)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `kvtier` runs: with `t.jsonl`, whose third request is served from nvme, and tiers for it."""
    (tmp_path / "t.jsonl").write_text(text_of(asks(1, 2), asks(3), asks(1, 2)))
    (tmp_path / "two.toml").write_text(
        '[primary]\ncapacity = 2\n[[tiers]]\nname = "nvme"\nmedium = "storage"\nlocality = "local"\n'
    )
    return tmp_path


ODD_NAMES = (
    "[red]markup[/red]",
    f"{ESC}[31mescapes{ESC}[0m",
    "漢字で書かれた名前は二倍の幅",
    "\u202eright to left",
    "a name that is longer than any column for names",
    "e\u0301\u0301\u0301\u0301 and marks",
)
"""Names that a terminal could stumble over."""


@pytest.fixture
def odd(folder: Path) -> list[str]:
    """A command line whose every name is an odd one, with an outcome of nearly every kind in its result."""
    kinds: list[dict[str, Any]] = [
        {"medium": "storage", "locality": "local", "fail_loads": ["6"]},
        {"medium": "storage", "locality": "remote", "store_latency": 3},
        {"lookup_retry": 1},
        *({"capacity": 1} for _ in ODD_NAMES[3:]),
    ]
    tiers = [{"name": name, **kind} for name, kind in zip(ODD_NAMES, kinds, strict=True)]
    block = {"tokens": 512, "bytes_per_token": 131_072}
    topology = {"block": block, "primary": {"capacity": 3}, "replay": {"max_wait_steps": 3}, "tiers": tiers}
    name = f"{ODD_NAMES[0]}{ESC}[2J 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字.jsonl".replace("/", "|")
    prompts = [[1, 2], [3, 4], [1, 2], [5, 6, 7], [8], [6], [1, 2, 3, 4, 5], [9, 10], [5, 6, 7]]
    own = [{"kv_load_tiers": [{"locality": "remote"}]} if index % 3 == 2 else {} for index in range(len(prompts))]
    (folder / name).write_text(
        text_of(*(asks(*ids, timestamp=-at, **more) for at, (ids, more) in enumerate(zip(prompts, own, strict=True))))
    )
    (folder / f"{ESC}[34modd.json").write_text(json.dumps(topology))
    return ["replay", name, "--topology", f"{ESC}[34modd.json", "--timing"]


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_the_text_is_never_wider_than_the_screen_and_names_do_nothing(
    kvtier: RunsKvtier, folder: Path, odd: list[str], columns: int
) -> None:
    ran = kvtier(*odd, cwd=folder, env={"COLUMNS": str(columns)})
    assert ran.status == 0
    assert max(map(cell_width, ran.stdout.splitlines())) <= columns
    assert ESC not in ran.stdout + ran.stderr
    assert "\u202e" not in ran.stdout + ran.stderr
    assert "bytes: not known" not in ran.stdout
    assert "written" in ran.stdout, "the names give way before the bytes do"
    if columns >= 80:
        assert "[red]markup[/red]" in ran.stdout, "and is not taken for a colour"
        assert "\\x1b[34modd.json" in ran.stdout
        assert "a name that …n for names" in ran.stdout, "however much room there is"
    assert ran.stdout.startswith("[red]mark")
    assert "timestamps are out of order" in ran.stderr


SAMPLE_TRACE = [asks(1, 2), asks(3, 4), asks(1, 2), asks(1, 2, 3, kv_load_tiers=[]), asks(5, 6, 7, 8, 9), asks(5)]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sample") / "t.jsonl"
    file.write_text(text_of(*SAMPLE_TRACE))
    return file


def enlarged(figures: Any, factor: int) -> Any:
    """The figures of a longer trace."""
    if isinstance(figures, dict):
        return {name: enlarged(value, factor) for name, value in figures.items()}
    return figures * factor if isinstance(figures, int) else figures


@given(
    names=st.lists(
        st.text(min_size=1, max_size=40).filter(lambda name: name.strip() and name not in ("cpu", "primary")),
        max_size=4,
        unique=True,
    ),
    width=st.integers(40, 300),
    factor=st.sampled_from((1, 1_000, 10**9)),
    unicode=st.booleans(),
    sized=st.booleans(),
    load_filter=st.sampled_from((None, [], [{"medium": "storage", "locality": "remote"}] * 9)),
)
def test_no_name_and_no_number_makes_a_line_too_wide(
    sample: Path, names: list[str], width: int, factor: int, unicode: bool, sized: bool, load_filter: object
) -> None:
    shape = {
        "block": {"bytes_per_token": 100} if sized else {},
        "primary": {"capacity": 4},
        "replay": {"max_wait_steps": 1},
        "tiers": [{"name": name, "capacity": 3 + at, "fail_rate": 0.2} for at, name in enumerate(names)],
    }
    topology = topology_from_builtins(shape, (names or ["t"])[0] * 9)
    parse = None if load_filter is None else parse_tier_filter(load_filter)
    with TraceSource(sample) as source:
        found = enlarged(TraceRun([source], topology, parse and parse.filter).run(), factor)
    seconds = {"read": 1.0, "replay": 2.0 * factor, "total": 3.0}
    out = Output(width=width, unicode=unicode)
    for line in replay_lines([*(names or ["t"])], found, topology, parse, 512 * factor, out, seconds):
        assert cell_width(line) <= width, line


@pytest.mark.parametrize(
    ("args", "env", "coloured"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        (["--no-color"], {"FORCE_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_a_pipe_gets_colours_only_when_it_is_told_to(
    kvtier: RunsKvtier, folder: Path, args: list[str], env: dict[str, str], coloured: bool
) -> None:
    assert (ESC in kvtier("replay", "t.jsonl", *args, cwd=folder, env=env).stdout) is coloured


def test_a_terminal_gets_colours_that_leave_its_columns_alone(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kvtier_cli.main",
        "replay",
        str(folder / "t.jsonl"),
        "--topology",
        str(folder / "two.toml"),
    ]
    seen = in_terminal(command, {}, columns=50).splitlines()
    assert any(ESC in line for line in seen)
    assert max(map(cell_width, seen)) <= 50


@pytest.mark.parametrize(("args", "env"), [(["--ascii"], {}), ([], {"KVTIER_ASCII": "1"}), ([], {"LC_ALL": "C"})])
def test_symbols_are_ascii_where_others_do_not_show(
    kvtier: RunsKvtier, folder: Path, args: list[str], env: dict[str, str]
) -> None:
    shown = kvtier("replay", "t.jsonl", "--topology", "two.toml", *args, cwd=folder, env=env).stdout
    assert shown.isascii()
    assert "  ^ promoted" in shown
    assert "  o absent" in shown


ANSWER = """\
t.jsonl   3 requests   5 blocks of 512 tokens   no filter   two.toml
served 2 of 5 blocks, 40.0 % of all"""
ENDS = """\
    outcome   blocks of all
  ▲ promoted       2 40.0 % #########################
      nvme 2
  □ absent         2 40.0 % #########################
      cold 2
  · unreached      1 20.0 % ############
      behind the first block not served: not stored 1"""
TIERS = """\
  tier  locality  asked  hits  of asked  of all  skipped  promoted  resident
  cpu                 8     4    50.0 %   0.0 %                          2/2
  nvme  local         4     2    50.0 %  40.0 %        0         2         3"""


@pytest.mark.parametrize(
    ("args", "own", "told"),
    [
        ([], "", "no filter"),
        ([], ', "kv_transfer_params": {"n": 1}', "no filter"),
        ([], ', "kv_transfer_params": {"kv_load_tiers": []}', "own filters"),
        (["--tiers", "storage"], "", "filter storage"),
        (["--tiers", "local"], "", "filter local (skips t2 and t3)"),
        (["--tiers", "cpu"], "", "filter cpu (skips t1, t2, t3 and 2 more)"),
        (["--tiers", "deny"], "", "filter deny"),
    ],
)
def test_the_heading_says_which_filter_holds_and_which_tiers_it_leaves_out(
    kvtier: RunsKvtier, folder: Path, args: list[str], own: str, told: str
) -> None:
    line = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]%s}\n'
    (folder / "one.jsonl").write_text(line % own)
    localities = ["local", "remote", "remote", "local", "local"]
    tiers = [
        {"name": f"t{number}", "medium": "storage", "locality": locality}
        for number, locality in enumerate(localities, 1)
    ]
    topology = json.dumps({"version": 1, "primary": {"capacity": 2}, "tiers": tiers})
    ran = kvtier("replay", "one.jsonl", "--topology", topology, *args, cwd=folder, env={"COLUMNS": "200"})
    assert f"   {told}   " in ran.stdout.splitlines()[0]


def test_the_answer_comes_first_then_the_outcomes_then_the_tiers_then_what_it_stands_for(
    kvtier: RunsKvtier, folder: Path
) -> None:
    *told, rest = kvtier("replay", "t.jsonl", "--topology", "two.toml", cwd=folder).stdout.split("\n\n")
    assert told == [ANSWER, ENDS, TIERS]
    assert " ".join(rest.split()) == f"bytes: not known (give block.bytes_per_token) {SCOPE}"
