"""`kvtier demo`: the tour shows a skipped tier on the first screen, and nothing that its command lines would not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvtier_cli.commands import demo
from tests.conftest import CHECKOUT, RunsKvtier, python_environment


def typed(tour: str) -> list[str]:
    """The command lines that a tour shows, as one would type them."""
    return re.findall(r"^\$ (kvtier (?:.*\\\n)*.*)", tour, re.MULTILINE)


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    script = f'kvtier() {{ "{sys.executable}" -m kvtier_cli.main "$@"; }}\n{line}'
    command = ["/bin/sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, env=python_environment(), cwd=cwd, check=False)


def test_the_first_screen_shows_a_skipped_tier_and_why(kvtier: RunsKvtier) -> None:
    ran = kvtier("demo", cwd=CHECKOUT)
    assert (ran.stderr, ran.status) == ("", 0)
    screen = "\n".join(ran.stdout.splitlines()[:24])
    assert "Ø The filter skipped s3 at block 13, and s3 holds it." in screen
    assert "s3 skipped, its locality REMOTE matches no entry" in " ".join(screen.split())
    assert "• holds it, not asked" in screen


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_parts_are_what_their_command_lines_print(kvtier: RunsKvtier, columns: str) -> None:
    tour = kvtier("demo", env={"COLUMNS": columns}, cwd=CHECKOUT).stdout
    shown = typed(tour)
    assert [line.split()[1] for line in shown] == ["lookup", "filter", "replay", "lookup", "lookup", "filter"]
    for line in shown[:3]:
        done = shell(f"export COLUMNS={columns}; {line}", CHECKOUT)
        assert (done.stderr, done.returncode) == ("", 0)
        # The scope stands once, at the end of the last part.
        text = done.stdout if "replay" in line else done.stdout.partition("\n\n models vLLM")[0]
        assert text in tour


def test_what_to_try_next_runs_as_written(kvtier: RunsKvtier) -> None:
    tour = kvtier("demo", cwd=CHECKOUT).stdout
    served, waiting, typo = (shell(line, CHECKOUT) for line in typed(tour)[3:])
    assert "38 of 40 blocks served" in served.stdout
    assert waiting.stdout.startswith("∞ Gave up")
    assert (typo.returncode, "strict: 2 faults" in typo.stdout) == (1, True)


def test_it_runs_from_anywhere_with_whole_paths(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = kvtier("demo", cwd=tmp_path)
    assert ran.status == 0
    first = typed(ran.stdout)[0]
    assert str(CHECKOUT / "fixtures" / "chat.jsonl") in first
    assert shell(first, tmp_path).stdout.startswith("Ø The filter skipped s3")


def test_a_narrow_terminal_and_ascii_will_do(kvtier: RunsKvtier) -> None:
    ran = kvtier("demo", "--ascii", env={"COLUMNS": "40"}, cwd=CHECKOUT)
    assert ran.stdout.isascii()
    ladder = [line for line in ran.stdout.splitlines() if line.startswith((" cpu", " nvme", " s3", " ="))]
    assert max(map(len, ladder)) <= 40


@pytest.mark.parametrize("example", demo.EXAMPLES)
def test_each_example_runs_as_written(example: str) -> None:
    done = shell(example, CHECKOUT)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("1. ")


def test_the_tour_has_no_json_form(kvtier: RunsKvtier) -> None:
    assert kvtier("demo", "--json").status == 2


def test_the_demo_topology_shows_everything_that_the_tour_speaks_of(kvtier: RunsKvtier) -> None:
    line = ["replay", "fixtures/chat.jsonl", "--tiers", "storage:local", "--topology", "fixtures/demo.toml", "--json"]
    figures = json.loads(kvtier(*line, cwd=CHECKOUT).stdout)["figures"]
    outcomes = figures["outcomes"]
    assert all(outcomes[name] for name in ("primary", "promoted", "filtered", "absent", "unreached"))
    assert figures["blocks_evicted_by_promotions"]
    assert figures["resident"]["nvme"] == 300
    assert figures["bytes"]["nvme"]["read"]
