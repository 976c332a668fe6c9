"""`kvtier replay bug.yaml --step` and `--break-on`: what one sees, types and gets, on a terminal and without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from kvtier_cli.errors import ExitStatus
from kvtier_cli.render.console import cell_width
from tests.conftest import RunsKvtier, python_environment

BUG = """\
title: b1 makes room for b3
topology: {primary: {capacity: 2}, tiers: [{name: t0, medium: storage, locality: local}]}
ops:
  - {op: seed, tier: t0, blocks: [b3]}
  - {op: run, id: r1, blocks: [b1, b2], expect: {outcomes: [absent, unreached]}}
  - {op: step}
  - {op: run, id: r2, blocks: [b1, b3], expect: {outcomes: [primary, primary]}}
  - {op: step, expect: {state: {live: []}}}
"""
"""In the run of r2 the promotion of b3 evicts b2, and the second of its expectations is wrong."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where `kvtier` runs: with `bug.yaml`."""
    (tmp_path / "bug.yaml").write_text(BUG)
    return tmp_path


def stops(text: str) -> list[int]:
    """The numbers of the ops that were shown."""
    return [int(number) for number in re.findall(r"^op (\d+) of 5 ", text, re.MULTILINE)]


class TestWithoutTerminal:
    def test_each_op_is_shown_with_its_outcome_and_what_it_changed(self, kvtier: RunsKvtier, folder: Path) -> None:
        ran = kvtier("replay", "bug.yaml", "--step", cwd=folder)
        assert (ran.stderr, ran.status) == ("", ExitStatus.NO)
        assert ran.stdout.startswith(
            "bug.yaml  b1 makes room for b3\n"
            "  tiers     cpu 2 blocks (lru), t0 storage local\n"
            "\n"
            "op 1 of 5  bug.yaml:4\n"
            "  {op: seed, tier: t0, blocks: [b3]}\n"
            "  outcome   done\n"
            "  t0        +b3\n"
            "  state     cpu 0/2 (2 free), t0 1\n"
        )
        assert stops(ran.stdout) == [1, 2, 3, 4, 5]
        run = ran.stdout.split("\nop ")[4]
        assert run == (
            "4 of 5  bug.yaml:7\n"
            "  {op: run, id: r2, blocks: [b1, b3]}\n"
            "  outcome   outcomes [primary, promoted], tiers [null, t0], why null\n"
            "  expected  1 of 1 not met\n"
            "            outcomes (-missing +unexpected): [primary, -primary, +promoted]\n"
            "  cpu       +b3; -b2\n"
            "  order     b3, b1 (least recent first)\n"
            "  t0        now b1, b2, b3 (least recent first)\n"
            "  ended     job 1: promotion of b3 from t0 for r2\n"
            "  events    CPU removed b2; CPU stored b3\n"
            "  state     cpu 2/2 (0 free, 2 evictable), t0 3\n"
        )
        assert ran.stdout.splitlines()[-1] == "1 of 1 fixture failed."

    def test_lines_of_stdin_are_commands_and_shown_and_at_their_end_it_goes_on(
        self, kvtier: RunsKvtier, folder: Path
    ) -> None:
        ran = kvtier("replay", "bug.yaml", "--step", stdin="\nb evicted:b2\nc\ns\n", cwd=folder)
        assert stops(ran.stdout) == [1, 2, 4], "what was said last holds to the end"
        assert "\n> b evicted:b2\nbreaks on evicted:b2\n> c\n\nop 4 of 5" in ran.stdout
        state = ran.stdout.split("> s\n")[1]
        assert state.startswith("  blocks        {b1: 0, b3: 0}\n  policy        {name: lru, order: [b3, b1]}\n")
        assert ran.status == ExitStatus.NO

    def test_a_quit_leaves_no_junit_file_that_looks_like_a_pass(self, kvtier: RunsKvtier, folder: Path) -> None:
        ran = kvtier("replay", "bug.yaml", "--step", "--junit", "out.xml", stdin="q\n", cwd=folder)
        assert (ran.stderr, ran.status) == ("", ExitStatus.INTERRUPTED)
        assert not (folder / "out.xml").exists()

    def test_a_quit_says_what_was_not_checked_and_is_no_pass(self, kvtier: RunsKvtier, folder: Path) -> None:
        ran = kvtier("replay", "bug.yaml", "bug.yaml", "--step", stdin="n\nq\n", cwd=folder)
        assert ran.status == ExitStatus.INTERRUPTED
        assert ran.stdout.splitlines()[-1] == ("bug.yaml: quit at op 2 of 5; 1 of 3 expectations checked, none not met")

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("ststae", 'there is no command "ststae": did you mean "state"?'),
            ("x", 'there is no command "x": known are next, continue, state, break, quit, help'),
            ("b evicted", "evicted needs a block to wait for: For example evicted:b1."),
            ("b dneied", 'cannot break on "dneied": did you mean "denied"?'),
            ("b evicted:b22", 'evicted:b22: no op names this block; did you mean "b2"?'),
            ("b", "breaks on nothing"),
            ("\x1b[2J", 'there is no command "\\u001b[2J": known are next, continue, state, break, quit, help'),
            ("\udcff", 'there is no command "\ufffd": known are next, continue, state, break, quit, help'),
        ],
    )
    def test_what_is_typed_wrong_is_answered_and_asked_again(
        self, kvtier: RunsKvtier, folder: Path, typed: str, said: str
    ) -> None:
        line = typed.encode(errors="surrogateescape")
        ran = kvtier("replay", "bug.yaml", "--step", stdin=line + b"\nq\n", cwd=folder)
        shown = ran.stdout.split("\n> ")[1].splitlines()[1]
        assert shown == said
        assert (stops(ran.stdout), ran.status) == ([1], ExitStatus.INTERRUPTED)

    def test_help_names_every_command(self, kvtier: RunsKvtier, folder: Path) -> None:
        ran = kvtier("replay", "bug.yaml", "--step", stdin="?\nq\n", cwd=folder)
        assert all(f"\n  {letter}" in ran.stdout for letter in ("Enter, n ", "c ", "s ", "b BREAK ", "q ", "? "))

    @pytest.mark.parametrize("more", [["--ascii"], ["--state"], ["-v"]])
    @pytest.mark.parametrize("width", ["40", "300"])
    def test_it_reads_at_any_width(self, kvtier: RunsKvtier, folder: Path, width: str, more: list[str]) -> None:
        ran = kvtier("replay", "bug.yaml", "--step", *more, cwd=folder, env={"COLUMNS": width})
        assert max(map(cell_width, ran.stdout.splitlines())) <= int(width)
        assert ran.stdout.isascii()
        assert ("pending_work  false" in ran.stdout) == ("--state" in more)


class TestBreaks:
    @pytest.mark.parametrize(
        ("stop", "shown", "reason"),
        [
            ("evicted:b2", [4], "b2 was evicted from cpu for r2"),
            ("mismatch", [4], "1 expectation is not met"),
        ],
    )
    def test_only_the_ops_at_which_it_happens_are_shown(
        self, kvtier: RunsKvtier, folder: Path, stop: str, shown: list[int], reason: str
    ) -> None:
        ran = kvtier("replay", "bug.yaml", "--break-on", stop, cwd=folder)
        assert (stops(ran.stdout), ran.stderr, ran.status) == (shown, "", ExitStatus.NO)
        assert f"\n  break     {reason}\n" in ran.stdout

    def test_a_break_that_no_op_meets_is_told_and_only_the_result_is_shown(
        self, kvtier: RunsKvtier, folder: Path
    ) -> None:
        ran = kvtier("replay", "bug.yaml", "--break-on", "denied", cwd=folder)
        assert (stops(ran.stdout), ran.stderr) == ([], "note: no op met the break denied\n")
        assert ran.stdout == kvtier("replay", "bug.yaml", cwd=folder).stdout

    def test_a_block_that_no_op_names_is_warned_about(self, kvtier: RunsKvtier, folder: Path) -> None:
        ran = kvtier("replay", "bug.yaml", "--break-on", "evicted:c7", cwd=folder)
        assert ran.stderr.splitlines()[0] == "warning: evicted:c7: no op names this block"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["bug.yaml", "--step", "--json"], "--step and --break-on show ops as text, and --json prints one document"),
        (["bug.yaml", "--break-on", "dnied"], 'cannot break on "dnied"'),
        (["bug.yaml", "--timing"], "bug.yaml: --timing does not apply to a scripted fixture"),
        (["bug.yaml", "--skip-bad"], "bug.yaml: --skip-bad does not apply to a scripted fixture"),
        (["bug.yaml", "--join"], "bug.yaml: --join does not apply to a scripted fixture"),
        (["t.jsonl", "--step"], "t.jsonl: --step is for scripted fixtures, this is a trace"),
        (["t.jsonl", "--break-on", "denied"], "t.jsonl: --break-on is for scripted fixtures, this is a trace"),
        (["bug.yaml", "t.jsonl", "--step"], "t.jsonl: --step is for scripted fixtures, this is a trace"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_runs(
    kvtier: RunsKvtier, folder: Path, args: list[str], said: str
) -> None:
    (folder / "t.jsonl").write_text('{"input_length": 512, "hash_ids": [1]}\n')
    ran = kvtier("replay", *args, cwd=folder)
    assert (ran.stdout, ran.status) == ("", ExitStatus.INPUT)
    assert ran.stderr.splitlines()[0] == f"error: {said}"


_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Runs a command with its stdin as its terminal, so that what is typed there, Ctrl-C too, reaches it."""


def on_terminal(folder: Path, args: Sequence[str], typed: Sequence[bytes]) -> tuple[str, int]:
    """What a terminal shows of `kvtier replay`, each of the inputs being typed at a prompt, and the exit status."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    child = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, sys.executable, "-m", "kvtier_cli.main", "replay", *args],
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        env=python_environment({"TERM": "xterm", "NO_COLOR": "1"}),
        cwd=folder,
        start_new_session=True,
    )
    os.close(theirs)
    seen, waiting = b"", list(typed)
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        seen += part
        if seen.endswith(b"> ") and waiting:
            os.write(ours, waiting.pop(0))
    os.close(ours)
    assert not waiting, seen.decode()
    return seen.decode().replace("\r\n", "\n"), child.wait(timeout=60)


class TestOnTerminal:
    def test_it_waits_at_each_op_for_enter_and_ends_with_the_result(self, folder: Path) -> None:
        seen, status = on_terminal(folder, ["bug.yaml", "--step"], [b"\n"] * 5)
        assert (stops(seen), status) == ([1, 2, 3, 4, 5], ExitStatus.NO)
        assert seen.count("Enter next, c continue, s state, b break, q quit, ? help > ") == 1
        assert seen.endswith("1 of 1 fixture failed.\n")

    def test_it_continues_to_a_break(self, folder: Path) -> None:
        seen, status = on_terminal(folder, ["bug.yaml", "--step"], [b"b mismatch\n", b"c\n", b"s\n", b"c\n"])
        assert (stops(seen), status) == ([1, 4], ExitStatus.NO)

    def test_with_a_break_alone_it_runs_there_and_enter_goes_on_op_by_op(self, folder: Path) -> None:
        seen, _ = on_terminal(folder, ["bug.yaml", "--break-on", "evicted:b2"], [b"\n", b"\n"])
        assert stops(seen) == [4, 5]

    @pytest.mark.parametrize("typed", [b"q\n", b"\x04"])
    def test_q_and_the_end_of_input_quit(self, folder: Path, typed: bytes) -> None:
        seen, status = on_terminal(folder, ["bug.yaml", "--step"], [b"\n", typed])
        assert (stops(seen), status) == ([1, 2], ExitStatus.INTERRUPTED)
        assert seen.endswith("quit at op 2 of 5; 1 of 3 expectations checked, none not met\n")

    def test_control_c_interrupts(self, folder: Path) -> None:
        seen, status = on_terminal(folder, ["bug.yaml", "--step"], [b"\x03"])
        assert (stops(seen), status) == ([1], ExitStatus.INTERRUPTED)
        assert seen.endswith("interrupted\n")
