"""Which workspace a command means, and making one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.tiering.topology_file import load_topology
from kvtier_cli.workspace import find_workspace, open_workspace
from kvtier_cli.workspace.found import NAME, make_workspace, users_workspace
from kvtier_cli.workspace.layout import store_name
from tests.workspace.spaces import topology


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_the_given_workspace_comes_first(here: Path) -> None:
    make_workspace(here / NAME, topology())
    assert find_workspace("other") == Path("other")


def test_the_workspace_of_this_folder_comes_before_one_above(here: Path) -> None:
    make_workspace(here.parent / NAME, topology())
    assert find_workspace() == here.parent / NAME
    make_workspace(here / NAME, topology())
    assert find_workspace() == Path(NAME)


def test_without_one_above_it_is_the_user_s_own(here: Path) -> None:
    assert find_workspace() == users_workspace() == here.parents[1] / "data" / "kvtier" / "workspace"


def test_where_there_is_none_the_error_says_how_to_make_one(here: Path) -> None:
    with pytest.raises(InputError, match="there is no workspace here") as raised:
        open_workspace(find_workspace())
    assert "kvtier init" in str(raised.value.hint)
    with pytest.raises(InputError, match="there is no workspace in gone"):
        open_workspace(Path("gone"))


def test_a_new_workspace_is_private_and_has_the_topology_to_edit(here: Path) -> None:
    space = here / "a" / "b"
    make_workspace(space, topology(primary=7))
    assert stat.S_IMODE(space.stat().st_mode) == 0o700
    assert load_topology(str(space / "kvtier.toml")).primary.capacity == 7
    assert [path.name for path in space.parent.iterdir()] == ["b"]


def test_an_empty_folder_may_become_one(here: Path) -> None:
    (here / "empty").mkdir()
    make_workspace(here / "empty", topology())
    open_workspace(here / "empty").close()


def test_what_is_there_already_is_not_touched(here: Path) -> None:
    make_workspace(here / NAME, topology())
    (here / "mine").mkdir()
    (here / "mine" / "letter").write_text("dear")
    (here / "file").write_text("text")
    for place, said in ((NAME, "already"), ("mine", "is not empty"), ("file", "is no folder")):
        with pytest.raises(InputError, match=said):
            make_workspace(here / place, topology())
    assert (here / "mine" / "letter").read_text() == "dear"


def test_one_that_cannot_be_made_leaves_nothing_behind(here: Path) -> None:
    (here / "file").write_text("text")
    with pytest.raises(EnvironmentFault, match="cannot be made"):
        make_workspace(here / "file" / "inside", topology())
    assert [path.name for path in here.iterdir()] == ["file"]


def test_tiers_of_any_name_have_folders_of_their_own_inside() -> None:
    names = ["nvme", "NVMe", "a/b", "a%2Fb", "..", ".", "$HOME", "漢字", "x" * 300, "x" * 301, "-", " ", "\n"]
    folders = [store_name(name) for name in names]
    assert len(set(folders)) == len(names)
    for folder in folders:
        assert "/" not in folder
        assert "$" not in folder
        assert not folder.startswith(".")
        assert len(folder) < 200
