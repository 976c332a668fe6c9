"""`kvtier blocks`, as its users see it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.render.console import cell_width
from tests.conftest import RunsKvtier, python_environment
from tests.workspace.in_process import run_here
from tests.workspace.spaces import filled, topology


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


PROMPTS = [[1, 2, 3], [10, 2, 3], [9]]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("blocks")
    return str(filled(folder, PROMPTS, topology(primary=3, nvme=5)))


def listed(kvtier: RunsKvtier, space: str, *args: str) -> dict[str, Any]:
    ran = kvtier("blocks", "--json", "--workspace", space, *args)
    assert (ran.stderr, ran.status) == ("", 0)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_row_a_block_a_column_a_tier(kvtier: RunsKvtier, space: str) -> None:
    ran = kvtier("blocks", "--workspace", space)
    rows = [line.split() for line in ran.stdout.splitlines() if line.startswith("  ")]
    assert rows[0] == ["block", "cpu", "nvme", "s3", "digest"]
    assert rows[1][:4] == ["1", "·", "·", "•"]
    assert rows[6][:4] == ["9", "■", "•", "•"]
    assert rows[2][0].startswith("2~")


def test_json_has_every_field(kvtier: RunsKvtier, space: str) -> None:
    found = listed(kvtier, space, "--block", "9")
    assert (found["schema"], found["total"], found["offset"]) == ("kvtier.blocks/1", 1, 0)
    [block] = found["blocks"]
    digest = block.pop("digest")
    assert len(digest) == 64
    assert block == {"block": "9", "label": "9", "tiers": ["cpu", "nvme", "s3"], "pins": 0, "bytes": None}
    assert listed(kvtier, space, "--block", "1")["blocks"][0]["pins"] is None


def test_it_can_be_filtered_sorted_and_paged(kvtier: RunsKvtier, space: str) -> None:
    found = listed(kvtier, space, "--tier", "nvme", "--sort", "oldest", "--limit", "2", "--offset", "1")
    assert [block["label"] for block in found["blocks"]] == ["10", "2"]
    assert (found["total"], found["offset"]) == (5, 1)
    everything = [block["block"] for block in listed(kvtier, space)["blocks"]]
    pages = [listed(kvtier, space, "--limit", "3", "--offset", str(at))["blocks"] for at in (0, 3, 6, 9)]
    assert [block["block"] for page in pages for block in page] == everything
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    twins = listed(kvtier, space, "--block", "2")["blocks"]
    assert [listed(kvtier, space, "--block", block["block"])["blocks"] for block in twins] == [[one] for one in twins]


def test_a_page_says_which_it_is_and_how_to_go_on(kvtier: RunsKvtier, space: str) -> None:
    text = kvtier("blocks", "--workspace", space, "--limit", "2").stdout
    assert ": 7 blocks, 1 to 2 shown" in " ".join(text.split())
    assert "more: --offset 2" in text
    assert "none shown" in kvtier("blocks", "--workspace", space, "--offset", "9").stdout
    assert ": 0 blocks" in " ".join(kvtier("blocks", "--workspace", space, "--block", "77").stdout.split())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--tier", "nvm"], 'error: the workspace has no tier "nvm"\n       did you mean "nvme"?\n'),
        (["--sort", "recnt"], 'error: --sort "recnt" is no order\n       did you mean "recent"?\n'),
        (["--limit", "-1"], "error: invalid value"),
        (["--offset", "x"], "error: invalid value"),
    ],
)
def test_a_wrong_command_line(kvtier: RunsKvtier, space: str, args: list[str], said: str) -> None:
    ran = kvtier("blocks", "--workspace", space, *args)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith(said)


@pytest.mark.parametrize("width", [40, 80])
def test_labels_are_inert_and_lines_fit(kvtier: RunsKvtier, tmp_path: Path, width: int) -> None:
    file = tmp_path / "t.jsonl"
    labels = ["[red]x", "\x1b[31mred", "漢字" * 40, "a@1", "b:c", "d~2", "\u202eabc"]
    row = {"timestamp": 0, "input_length": 512 * len(labels), "output_length": 1, "hash_ids": labels}
    file.write_text(json.dumps(row) + "\n")
    space = tmp_path / "space"
    assert kvtier("init", "--workspace", str(space)).status == 0
    assert kvtier("load", str(file), "--workspace", str(space)).status == 0
    ran = kvtier("blocks", "--workspace", "space", cwd=tmp_path, env={"COLUMNS": str(width)})
    assert not any(char in ran.stdout for char in "\x1b\u202e")
    assert "[red]x" in ran.stdout
    assert max(map(cell_width, ran.stdout.splitlines())) <= width
    found = {block["label"] for block in listed(kvtier, str(space))["blocks"]}
    assert found == set(labels)
    for label in labels:
        assert [block["label"] for block in listed(kvtier, str(space), "--block", label)["blocks"]] == [label]


def test_wide_shows_digests_whole(kvtier: RunsKvtier, space: str) -> None:
    [block] = listed(kvtier, space, "--block", "9")["blocks"]
    assert block["digest"] in kvtier("blocks", "--workspace", space, "--wide", env={"COLUMNS": "40"}).stdout
    assert block["digest"] not in kvtier("blocks", "--workspace", space).stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    space = filled(tmp_path, [list(range(3000))], topology(primary=4000, nvme=None))
    command = f"{sys.executable} -m kvtier_cli.main blocks --limit 3000 --workspace {space} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, env=python_environment(), check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
