"""What the dashboard opens on, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.shipped import shipped_fixture
from tests.tui.shows import demo_topology
from tui.session.opening import DEMO_REQUEST, Asked, open_asked
from tui.session.views import Kind


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
