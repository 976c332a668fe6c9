"""A store that is asked about single blocks answers as one that was read whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.stores import BlockStore
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.workspace.peeking_store import PeekingStore
from tests.tiering.disk_tampering import bomb, execute
from tests.workspace.spaces import files_of

HELD = [f"b{number}:{number}" for number in range(6)]
KEYS = st.sampled_from([*HELD, "b7:7", "b8:8"])


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        with DiskStore(Path(name) / "store") as store:
            store.write(HELD)
        yield Path(name) / "store"


def peek(folder: Path) -> PeekingStore:
    return PeekingStore(folder, lock_timeout=0.1)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("holds"), st.lists(KEYS, max_size=3)),
        st.tuples(st.just("read"), st.lists(KEYS, max_size=3, unique=True)),
        st.tuples(st.just("refresh"), st.lists(KEYS, max_size=3, unique=True)),
        st.tuples(st.just("put"), st.lists(KEYS, max_size=3, unique=True)),
        st.tuples(st.just("oldest"), st.lists(KEYS, max_size=3)),
    ),
    max_size=6,
)


def answers(store: BlockStore, operations: list[tuple[str, list[str]]]) -> list[object]:
    found: list[object] = []
    for name, keys in operations:
        held = [key for key in keys if key in store.index]
        if name == "holds":
            found.append(held)
        elif name == "read":
            found.append(store.read(held))
        elif name == "refresh":
            store.refresh(held)
        elif name == "put":
            store.write([key for key in keys if key not in store.index], store.oldest(0))
        else:
            found.append(list(store.oldest(len(keys))))
    return [*found, len(store.index), list(store.index), list(store.least_recent_first())]


@given(OPERATIONS)
def test_whatever_is_asked_in_whatever_order(folder: Path, operations: list[tuple[str, list[str]]]) -> None:
    before = files_of(folder)
    with DiskStore.open_readonly(folder) as whole:
        expected = answers(whole, operations)
    peeking = peek(folder)
    found = answers(peeking, operations)
    peeking.close()
    assert found[:-3] == expected[:-3]
    assert (found[-3], set(found[-2]), found[-1]) == (expected[-3], set(expected[-2]), expected[-1])  # type: ignore[call-overload]
    assert files_of(folder) == before


def test_blocks_are_found_by_the_beginning_of_their_keys(folder: Path) -> None:
    store = peek(folder)
    assert store.with_start("b1:") == ["b1:1"]
    assert sorted(store.with_start("b")) == HELD
    assert store.with_start("x") == []
    assert not store.is_whole
    store.close()


@pytest.mark.parametrize("key", ["", "\ud800", "\x00", 7, None, b"b1:1"])
def test_what_is_no_block_s_name_is_not_held(folder: Path, key: object) -> None:
    store = peek(folder)
    assert key not in store.index
    store.close()


def test_planted_rows_are_no_blocks_and_nothing_of_them_is_executed(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with DiskStore(tmp_path / "store") as store:
        store.write(["a:1", "b:2", "c:3", "d:4"])
    execute(tmp_path / "store", "UPDATE Cache SET raw = 0 WHERE key = 'a:1'")
    execute(tmp_path / "store", "UPDATE Cache SET mode = 4, value = ? WHERE key = 'b:2'", bomb(canary))
    execute(tmp_path / "store", "UPDATE Cache SET expire_time = 1 WHERE key = 'c:3'")
    found = peek(tmp_path / "store")
    assert [key for key in ("a:1", "b:2", "c:3", "d:4") if key in found.index] == ["b:2", "d:4"]
    assert found.read(["b:2", "d:4"]) == {"b:2": "its value has mode 4, a pickle or a text, which is never read"}
    assert "b:2" not in found.index
    assert found.read(["d:4"]) == {}
    found.close()
    assert not canary.exists()


def test_a_store_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        store.write(["a:1"])
    database = tmp_path / "store" / "cache.db"
    database.write_bytes(b"no database" * 1000)
    with pytest.raises(EnvironmentFault, match="is damaged"):
        peek(tmp_path / "store")
    database.unlink()
    with pytest.raises(EnvironmentFault, match="cannot be used"):
        peek(tmp_path / "store")
