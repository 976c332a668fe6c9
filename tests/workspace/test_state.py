"""The state file: whole or not at all, and never believed without a look."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.found import make_workspace
from kvtier_cli.workspace.state import FORMAT, Faults, State, Totals, leftovers, read_state, write_state
from tests.workspace.spaces import topology


@pytest.fixture
def space(tmp_path: Path) -> Path:
    make_workspace(tmp_path / "space", topology())
    return tmp_path / "space"


def change(space: Path, **fields: object) -> None:
    path = space / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_what_is_written_is_what_is_read(space: Path) -> None:
    state = State.empty()
    state.totals["cpu"] = Totals(asked=2**70, hits=3)
    state.faults["s3"] = Faults(offline=True)
    state.primary.order = ["1:ab", "漢\x00\n:cd"]  # type: ignore[union-attr]  # an empty one is LRU
    write_state(space, state)
    assert read_state(space) == state
    assert leftovers(space) == []


@pytest.mark.parametrize(
    ("version", "said", "hint"),
    [
        (FORMAT + 1, f"has format {FORMAT + 1}, this kvtier knows {FORMAT} and older ones", "Use the newer kvtier"),
        (FORMAT - 1, f"has format {FORMAT - 1}, which this kvtier ({FORMAT}) no longer reads", "load the traces again"),
    ],
)
def test_another_format_is_refused_whatever_else_it_has(space: Path, version: int, said: str, hint: str) -> None:
    change(space, format=version, tomorrow=[1, 2])
    with pytest.raises(EnvironmentFault) as raised:
        open_workspace(space)
    assert said in str(raised.value)
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "1"},
        {"primary": {"policy": "lru", "order": ["a:1", "a:1"]}},
        {"primary": {"policy": "arc", "t1": ["a:1"], "b2": ["a:1"]}},
        {"primary": {"policy": "fifo"}},
        {"requests": -1},
        {"requests": 1.5},
        {"block_tokens": 0},
        {"faults": {"s3": {"fail_rate": 2}}},
        {"totals": {"s3": {"asked": -1}}},
        {"unknown": 1},
    ],
)  # fmt: skip
def test_a_state_that_kvtier_never_writes_is_damage(space: Path, fields: dict[str, object]) -> None:
    change(space, **fields)
    with pytest.raises(EnvironmentFault, match=r"is damaged: its state\.json is not as kvtier writes it") as raised:
        open_workspace(space)
    assert "kvtier doctor --repair" in str(raised.value.hint)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"null", b'{"format": ' + b"9" * 5000 + b"}", b"\x80\x04K\x01."],
    ids=["empty", "cut", "binary", "brackets", "null", "digits", "pickle"],
)
def test_so_is_anything_that_is_no_state(space: Path, data: bytes) -> None:
    (space / "state.json").write_bytes(data)
    with pytest.raises(EnvironmentFault, match="is damaged"):
        open_workspace(space)


def test_and_one_that_is_gone(space: Path) -> None:
    (space / "state.json").unlink()
    with pytest.raises(EnvironmentFault, match=r"its state\.json is missing"):
        open_workspace(space)


def test_a_write_that_fails_leaves_the_state_before(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (space / "state.json").read_bytes()

    def encode(_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(msgspec.json, "encode", encode)
    with pytest.raises(EnvironmentFault, match="cannot be written: the disk is full"):
        write_state(space, State.empty())
    assert (space / "state.json").read_bytes() == before
    assert leftovers(space) == []


def test_what_a_killed_writer_left_is_removed_by_the_next(space: Path) -> None:
    (space / ".state.json.4121").write_text('{"format": ')
    open_workspace(space).close()
    assert len(leftovers(space)) == 1, "a reader removes nothing"
    open_workspace(space, write=True).close()
    assert leftovers(space) == []
