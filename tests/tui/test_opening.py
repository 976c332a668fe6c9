"""What the dashboard opens on, and what it refuses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.traces.options import TraceOptions
from tests.tui.shows import demo_topology
from tests.workspace.in_process import run_here
from tui.command_line import command_of
from tui.session.opening import DEMO_REQUEST, Asked, open_asked
from tui.session.session import Session
from tui.session.views import Kind

READING = TraceOptions("timed-trace", 32, "ms", fields=(("hash_ids", "ids"), ("input_length", "n")))


def test_without_a_file_and_a_workspace_it_is_the_demo_at_a_skipped_tier() -> None:
    opened = open_asked(Asked())
    assert (opened.show.kind, opened.start) == (Kind.TRACE, DEMO_REQUEST)
    assert opened.show.filter_at(0).text == "storage:local"


@pytest.mark.parametrize(
    ("name", "kind"), [("chat.jsonl", Kind.TRACE), ("agent.jsonl", Kind.TRACE), ("tier-skip.yaml", Kind.FIXTURE)]
)
def test_files_are_told_apart_by_what_is_in_them(name: str, kind: Kind) -> None:
    assert open_asked(Asked(str(shipped_fixture(name)))).show.kind is kind


def test_a_fixture_has_its_own_topology() -> None:
    with pytest.raises(InputError, match="--topology does not apply"):
        open_asked(Asked(str(shipped_fixture("tier-skip.yaml")), topology=demo_topology()))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"\x00\x01junk", "binary"), (b"a,b\n1,2\n", "CSV"), (None, "no such file")],
)
def test_what_is_no_trace_is_refused_before_the_screen_is_taken(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        open_asked(Asked(str(path)))


def test_a_folder_that_is_no_workspace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="directory"):
        open_asked(Asked(str(tmp_path)))


def test_a_trace_is_read_as_the_command_line_says_and_so_does_the_line_that_is_copied(
    tmp_path: Path,
) -> None:
    trace = tmp_path / "a b.jsonl"
    trace.write_text('{"ids": [1, 2], "n": 64, "timestamp": 1}\nno request\n{"ids": [1], "n": 32, "timestamp": 2}\n')
    asked = Asked(str(trace), skip_bad=True, reading=READING)
    session = Session(open_asked(asked).show, start=1)
    session.run_until_idle()
    assert session.snapshot.total == 2
    command = shlex.split(command_of(session.snapshot, asked))
    ran = run_here(*command[1:])
    assert (ran.status, ran.stdout.splitlines()[0]) == (0, "The one block was served (32 tokens): 1 primary.")


@pytest.mark.parametrize("asked", [Asked(str(shipped_fixture("evicted-hit.yaml"))), Asked()], ids=["fixture", "demo"])
def test_how_to_read_a_trace_does_not_apply_to_what_is_none(asked: Asked) -> None:
    with pytest.raises(InputError, match="is no trace: --format, --fields, --time-unit and --block-tokens"):
        open_asked(Asked(asked.file, reading=TraceOptions(block_tokens=16)))
