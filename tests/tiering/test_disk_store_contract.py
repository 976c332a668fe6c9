"""A store on disk is a store: whatever a tier does to it, it holds the same blocks in the same order as in memory."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.stores import BlockStore, MemoryStore
from kvtier_cli.tiering.stores.disk import DiskStore
from tests.conformance.corpus import HERE, SETS, first_difference, paths, read, runner

MAKES: dict[str, Callable[[Path], BlockStore]] = {"memory": lambda _: MemoryStore(), "disk": DiskStore}


@pytest.fixture(params=MAKES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockStore]:
    made = MAKES[request.param](tmp_path / "store")
    yield made
    made.close()


def order(store: BlockStore) -> list[BlockKey]:
    return list(store.least_recent_first())


def test_a_new_store_is_empty(store: BlockStore) -> None:
    assert order(store) == []
    assert store.oldest(3) == []
    assert "b1" not in store.index


def test_blocks_of_a_job_are_most_recent_in_its_order(store: BlockStore) -> None:
    store.write(["b1", "b2"])
    store.write(["b3"])
    assert order(store) == ["b1", "b2", "b3"]
    assert set(store.index) == {"b1", "b2", "b3"}


def test_the_oldest_are_the_least_recent_and_all_where_there_are_fewer(store: BlockStore) -> None:
    store.write(["b1", "b2", "b3"])
    assert store.oldest(2) == ["b1", "b2"]
    assert store.oldest(9) == ["b1", "b2", "b3"]


def test_a_job_takes_out_what_it_evicts(store: BlockStore) -> None:
    store.write(["b1", "b2"])
    store.write(["b3"], ["b1"])
    assert order(store) == ["b2", "b3"]


def test_a_block_that_left_may_come_back(store: BlockStore) -> None:
    store.write(["b1", "b2"])
    store.write([], ["b1"])
    store.write(["b1"])
    assert order(store) == ["b2", "b1"]


def test_a_job_may_bring_blocks_that_are_held_already(store: BlockStore) -> None:
    store.write(["b1", "b2", "b3"])
    store.write(["b4"], [], ["b2", "b4", "b1"])
    assert order(store) == ["b3", "b2", "b4", "b1"]


def test_refreshed_blocks_become_the_most_recent(store: BlockStore) -> None:
    store.write(["b1", "b2", "b3"])
    store.refresh(["b2", "b1"])
    assert order(store) == ["b3", "b2", "b1"]


def test_payloads_that_nobody_touched_are_sound(store: BlockStore) -> None:
    store.write(["b1", "b2"])
    assert store.read(["b2", "b1"]) == {}
    assert order(store) == ["b1", "b2"]


# Any sequence of what a tier does, with the store on disk closed and opened again in between

NAMES = [f"b{index}" for index in range(12)]
names = st.lists(st.sampled_from(NAMES), unique=True, max_size=6)
moves = st.one_of(
    st.tuples(st.just("job"), names, names, st.integers(0, 99)),
    st.tuples(st.just("refresh"), names),
    st.tuples(st.just("reopen")),
)


@given(st.lists(moves, max_size=12), st.sampled_from([0, 64, 40_000]))
def test_a_store_on_disk_is_as_one_in_memory_whatever_happens_to_it(
    sequence: list[tuple[Any, ...]], payload_bytes: int
) -> None:
    memory = MemoryStore()
    with tempfile.TemporaryDirectory() as name:
        disk = DiskStore(name, payload_bytes=payload_bytes)
        for kind, *given_names in sequence:
            if kind == "reopen":
                disk.close()
                disk = DiskStore(name, payload_bytes=payload_bytes)
                continue
            if kind == "refresh":
                held = [key for key in given_names[0] if key in memory.index]
                memory.refresh(held)
                disk.refresh(held)
            else:
                offered, leaving, seed = given_names
                deletes = [key for key in leaving if key in memory.index and key not in offered]
                puts = [key for key in offered if key not in memory.index]
                recent = list(offered)
                random.Random(seed).shuffle(recent)
                memory.write(puts, deletes, recent)
                disk.write(puts, deletes, recent)
            assert order(disk) == order(memory)
            assert set(disk.index) == set(memory.index)
        assert disk.read(order(disk)) == {}
        disk.close()
        with DiskStore(name) as again:
            assert order(again) == order(memory)
        reader = DiskStore.open_readonly(name)
        assert order(reader) == order(memory)
        reader.close()
        assert DiskStore.check(name) == []


# What vLLM's manager did, over stores that do not stay open


class Index(Mapping[BlockKey, object]):
    """The index of the store that is open now."""

    def __init__(self, owner: Reopened) -> None:
        self.owner = owner

    def __getitem__(self, key: BlockKey) -> object:
        return self.owner.inner.index[key]

    def __contains__(self, key: object) -> bool:
        return key in self.owner.inner.index

    def __iter__(self) -> Iterator[BlockKey]:
        return iter(self.owner.inner.index)

    def __len__(self) -> int:
        return len(self.owner.inner.index)


class Reopened:
    """A store on disk that `reopen` closes and opens again under the tier that uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inner = DiskStore(folder)
        self.index = Index(self)

    def reopen(self) -> None:
        self.inner.close()
        self.inner = DiskStore(self.folder)

    def oldest(self, count: int) -> Sequence[BlockKey]:
        return self.inner.oldest(count)

    def least_recent_first(self) -> Iterator[BlockKey]:
        return self.inner.least_recent_first()

    def write(
        self, puts: Sequence[BlockKey], deletes: Collection[BlockKey] = (), recent: Sequence[BlockKey] | None = None
    ) -> None:
        self.inner.write(puts, deletes, recent)

    def read(self, keys: Sequence[BlockKey]) -> Mapping[BlockKey, str]:
        return self.inner.read(keys)

    def refresh(self, keys: Sequence[BlockKey]) -> None:
        self.inner.refresh(keys)

    def close(self) -> None:
        self.inner.close()


def difference_with_reopening(path: Path, folder: Path, every: int) -> str | None:
    """What differs first from the recording when all stores are closed and opened again every so many ops."""
    stores: list[Reopened] = []

    def make(spec: object, where: Path) -> Reopened:
        stores.append(Reopened(where / str(len(stores))))
        return stores[-1]

    scenario = read(path)
    with runner(scenario.topology, make, folder) as ops:
        run, done = ops.run, 0

        def run_and_reopen(op: Mapping[str, object]) -> dict[str, object]:
            nonlocal done
            outcome = run(op)
            done += 1
            if done % every == 0:
                for store in stores:
                    store.reopen()
            return outcome

        ops.run = run_and_reopen  # type: ignore[method-assign]
        difference = first_difference(scenario, ops)
    return None if difference is None else str(difference)


SHIPPED = [path for name in SETS for path in paths(HERE / name)]


@pytest.mark.parametrize(
    "path", SHIPPED[:: max(1, len(SHIPPED) // 40)], ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_a_recording_comes_out_the_same_though_its_stores_are_reopened_every_tenth_op(
    path: Path, tmp_path: Path
) -> None:
    assert difference_with_reopening(path, tmp_path, 10) is None


@pytest.mark.soak
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_comes_out_the_same_though_its_stores_are_reopened_after_every_op(
    path: Path, tmp_path: Path
) -> None:
    assert difference_with_reopening(path, tmp_path, 1) is None
