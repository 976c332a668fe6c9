"""What a store on disk promises: the committed outlives the process, nothing is evicted unasked, readers only read."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import EnvironmentFault, InputError, ManagerError
from kvtier_cli.tiering.payload import check, payload_for
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.tiering.stores.disk_values import DamagedValue, pack, unpack
from kvtier_cli.tiering.stores.key_codec import KeyCodec
from tests.conftest import python_environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def order(folder: Path) -> list[object]:
    """What the store in a folder holds, least recent first."""
    with DiskStore(folder) as store:
        return list(store.least_recent_first())


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def crash(folder: Path, store: DiskStore) -> None:
    """What the disk looks like when the process dies now: nothing is closed, nothing written any more."""
    copy = folder.with_name("crashed")
    copy.mkdir()
    for name, data in files(folder).items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    store.close()


# Payloads


def test_a_payload_is_the_same_in_every_run() -> None:
    assert payload_for("b1", 8).hex() == "75db3f65dec39e2b"
    assert payload_for("b1", 200_000)[:8] == payload_for("b1", 8)


@pytest.mark.parametrize("length", [0, 1, 64, 65_521, 65_522, 200_000])
def test_a_payload_has_the_length_asked_for_and_is_its_blocks_alone(length: int) -> None:
    payload = payload_for("b1", length)
    assert len(payload) == length
    assert check("b1", payload)
    assert check("b2", payload) is (length == 0)


@pytest.mark.parametrize("length", [64, 200_000])
def test_one_wrong_byte_in_a_payload_is_noticed(length: int) -> None:
    payload = bytearray(payload_for("b1", length))
    payload[length // 2] ^= 1
    assert not check("b1", bytes(payload))


def test_no_two_pages_of_a_long_payload_are_alike() -> None:
    payload = payload_for("b1", 64 * 4096)
    assert len({payload[start : start + 4096] for start in range(0, len(payload), 4096)}) == 64


def test_a_value_gives_its_payload_back_to_its_own_block_only() -> None:
    value = pack("b1", payload_for("b1", 64))
    assert unpack("b1", value) == payload_for("b1", 64)
    with pytest.raises(DamagedValue):
        unpack("b2", value)


# What lasts


def test_blocks_payloads_and_order_outlive_the_process(folder: Path) -> None:
    with DiskStore(folder, payload_bytes=100) as store:
        store.write(["b1", "b2", "b3"])
        store.write(["b4"], ["b2"], ["b1", "b4"])
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == ["b3", "b1", "b4"]
        assert store.payload("b1") == payload_for("b1", 100)


def test_the_order_of_touched_blocks_is_written_at_the_close(folder: Path) -> None:
    with DiskStore(folder) as store:
        store.write(["b1", "b2", "b3"])
        store.refresh(["b1"])
        store.write(["b4"])
        store.refresh(["b2"])
    assert order(folder) == ["b3", "b1", "b4", "b2"]


def test_a_crash_costs_the_touches_since_the_start_and_nothing_else(folder: Path) -> None:
    store = DiskStore(folder)
    store.write(["b1", "b2", "b3"])
    store.refresh(["b1"])
    store.write(["b4"], ["b3"], ["b2", "b4"])
    crash(folder, store)
    assert order(folder) == ["b1", "b2", "b4"]
    assert order(folder.with_name("crashed")) == ["b1", "b2", "b4"]
    assert [damage for damage in DiskStore.check(folder.with_name("crashed")) if not damage.harmless] == []


def test_a_crash_before_a_touched_block_is_written_again_leaves_it_where_it_was(folder: Path) -> None:
    store = DiskStore(folder)
    store.write(["b1", "b2", "b3"])
    store.refresh(["b1"])
    crash(folder, store)
    assert order(folder) == ["b2", "b3", "b1"]
    assert order(folder.with_name("crashed")) == ["b1", "b2", "b3"]


def test_recency_goes_on_where_the_last_process_left_it(folder: Path) -> None:
    for name in ("b1", "b2", "b3"):
        with DiskStore(folder) as store:
            store.write([name])
            store.refresh(["b1"])
    assert order(folder) == ["b2", "b3", "b1"]


def test_payloads_of_different_lengths_live_in_one_store(folder: Path) -> None:
    for index, length in enumerate((0, 64, 32_767, 32_768, 100_000)):
        with DiskStore(folder, payload_bytes=length) as store:
            store.write([f"b{index}"])
    with DiskStore(folder) as store:
        assert [len(store.payload(f"b{index}")) for index in range(5)] == [0, 64, 32_767, 32_768, 100_000]


@pytest.mark.parametrize(("length", "count"), [(32_767, 0), (32_768, 1)])
def test_payloads_of_32_kib_and_more_have_files_of_their_own(folder: Path, length: int, count: int) -> None:
    with DiskStore(folder, payload_bytes=length) as store:
        store.write(["b1"])
    assert len(list(folder.rglob("*.val"))) == count


def test_the_file_of_an_evicted_block_goes_with_it(folder: Path) -> None:
    with DiskStore(folder, payload_bytes=40_000) as store:
        store.write(["b1", "b2"])
        store.write(["b3"], ["b1", "b2"])
        assert len(list(folder.rglob("*.val"))) == 1
        store.write([], ["b3"])
    assert [path.name for path in folder.iterdir()] == ["cache.db"]


def test_a_job_that_fails_keeps_none_of_its_blocks_and_evicts_none(folder: Path) -> None:
    with DiskStore(folder, payload_bytes=40_000) as store:
        store.write(["b1", "b2"])
        before = files(folder)
        with pytest.raises(TypeError, match="names blocks by text"):
            store.write(["b3", 4], ["b1"])
        assert list(store.least_recent_first()) == ["b1", "b2"]
        assert store.read(["b1", "b2"]) == {}
        assert [name for name in files(folder) if name.endswith(".val")] == [
            name for name in before if name.endswith(".val")
        ]
    assert order(folder) == ["b1", "b2"]
    assert DiskStore.check(folder) == []


@pytest.mark.soak
def test_nothing_is_evicted_that_capacity_did_not_evict(folder: Path) -> None:
    blocks = [f"b{index}" for index in range(1200)]
    with DiskStore(folder, payload_bytes=1024 * 1024) as store:
        for start in range(0, len(blocks), 16):
            store.write(blocks[start : start + 16])
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == blocks
        assert store.read(blocks) == {}


def test_diskcaches_own_limits_are_off(folder: Path) -> None:
    with DiskStore(folder) as store:
        cache = store._cache
        assert (cache.eviction_policy, cache.cull_limit, cache.statistics) == ("none", 0, 0)
        assert cache.size_limit > 2**60


# Keys that are not texts


def test_a_codec_stands_between_the_engines_keys_and_the_names_on_disk(folder: Path) -> None:
    codec = KeyCodec(lambda key: f"block {key}", lambda name: int(name.removeprefix("block ")))
    with DiskStore(folder, codec=codec) as store:
        store.write([1, 2, 3])
        store.refresh([1])
        assert store.read([3, 1]) == {}
    with DiskStore(folder, codec=codec) as store:
        assert list(store.least_recent_first()) == [2, 3, 1]
    with DiskStore.open_readonly(folder, codec=codec) as reader:
        assert list(reader.least_recent_first()) == [2, 3, 1]
    assert order(folder) == ["block 2", "block 3", "block 1"]


def test_a_codec_that_gives_no_text_is_refused_and_nothing_is_stored(folder: Path) -> None:
    def as_it_is(key: Any) -> Any:
        return key

    with DiskStore(folder, codec=KeyCodec(as_it_is, as_it_is)) as store:
        store.write(["b1"])
        with pytest.raises(TypeError, match="names blocks by text"):
            store.write(["b2", b"b3"])
        assert list(store.index) == ["b1"]
    assert order(folder) == ["b1"]


def test_a_job_may_evict_any_number_of_blocks(folder: Path) -> None:
    blocks = [f"b{index}" for index in range(3000)]
    with DiskStore(folder) as store:
        store.write(blocks)
        store.write(["b3000"], blocks[:2999])
    assert order(folder) == ["b2999", "b3000"]


def test_names_may_be_in_any_script_and_of_any_length(folder: Path) -> None:
    names = ["κλειδί", "鍵", "b" * 10_000, "it's", "a/b", "..", "b7@1", "\x00"]
    with DiskStore(folder) as store:
        store.write(names)
        assert store.read(names) == {}
    assert order(folder) == names


# The folder


def test_nobody_else_may_look_into_the_folder(folder: Path) -> None:
    DiskStore(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    DiskStore(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_store_takes_no_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    tmp_path.chmod(0o755)
    with pytest.raises(EnvironmentFault, match="is not empty and holds no store"):
        DiskStore(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_file_is_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="is no folder"):
        DiskStore(tmp_path / "file")


def test_a_folder_whose_name_diskcache_would_expand_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "/elsewhere")
    with pytest.raises(InputError, match="environment variable"):
        DiskStore(tmp_path / "$WHERE")
    folder = tmp_path / "~" / "100 % of it?#&$NOWHERE"
    with DiskStore(folder) as store:
        store.write(["b1"])
    with DiskStore.open_readonly(folder) as reader:
        assert list(reader.index) == ["b1"]


def test_a_store_given_as_relative_path_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DiskStore("store", payload_bytes=40_000) as store:
        monkeypatch.chdir("/")
        store.write(["b1"])
        assert store.read(["b1"]) == {}
    assert order(tmp_path / "store") == ["b1"]


def test_a_closed_store_says_so(folder: Path) -> None:
    store = DiskStore(folder)
    store.write(["b1"])
    store.close()
    store.close()
    with pytest.raises(ManagerError, match="is closed"):
        store.write(["b2"])
    with pytest.raises(ManagerError, match="is closed"):
        store.read(["b1"])


# Readers


def test_a_reader_sees_blocks_order_and_payloads_and_leaves_every_file_as_it_is(folder: Path) -> None:
    for length in (64, 40_000):
        with DiskStore(folder, payload_bytes=length) as store:
            store.write([f"small{length}", f"b{length}"])
            store.refresh([f"small{length}"])
    before = files(folder)
    reader = DiskStore.open_readonly(folder)
    assert list(reader.least_recent_first()) == ["b64", "small64", "b40000", "small40000"]
    assert reader.payload("b40000") == payload_for("b40000", 40_000)
    assert reader.read(list(reader.index)) == {}
    assert files(folder) == before
    reader.close()
    assert files(folder) == before


def test_what_a_reader_writes_stays_a_thought(folder: Path) -> None:
    with DiskStore(folder) as store:
        store.write(["b1", "b2"])
    before = files(folder)
    reader = DiskStore.open_readonly(folder)
    reader.write(["b3"], ["b1"])
    reader.refresh(["b2"])
    assert list(reader.least_recent_first()) == ["b3", "b2"]
    assert reader.read(["b3", "b2"]) == {}
    reader.close()
    assert files(folder) == before


def test_a_reader_sees_what_a_killed_writer_had_committed(folder: Path) -> None:
    store = DiskStore(folder)
    store.write(["b1"])
    store.write(["b2"])
    crash(folder, store)
    before = files(folder.with_name("crashed"))
    assert "cache.db-wal" in before
    reader = DiskStore.open_readonly(folder.with_name("crashed"))
    assert list(reader.index) == ["b1", "b2"]
    assert reader.read(["b1", "b2"]) == {}
    reader.close()
    assert files(folder.with_name("crashed")) == before


@pytest.mark.parametrize("index", [None, b"", bytes(32768), b"\xff" * 32768], ids=["gone", "empty", "zeros", "junk"])
def test_so_it_does_where_the_index_of_the_log_is_lost(folder: Path, index: bytes | None) -> None:
    store = DiskStore(folder)
    store.write(["b1", "b2"])
    crash(folder, store)
    crashed = folder.with_name("crashed")
    if index is None:
        (crashed / "cache.db-shm").unlink()
    else:
        (crashed / "cache.db-shm").write_bytes(index)
    log = (crashed / "cache.db-wal").read_bytes()
    reader = DiskStore.open_readonly(crashed)
    assert list(reader.index) == ["b1", "b2"]
    reader.close()
    assert DiskStore.check(crashed) == []
    assert (crashed / "cache.db-wal").read_bytes() == log
    assert order(crashed) == ["b1", "b2"]


def test_looking_into_a_store_does_not_load_diskcache(folder: Path) -> None:
    DiskStore(folder).close()
    code = (
        "import sys; from kvtier_cli.tiering.stores.disk_reader import DiskReader; "
        f"DiskReader({str(folder)!r}).read([]); print('diskcache' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=python_environment(), check=True, timeout=60
    )
    assert done.stdout == "False\n"


def test_two_readers_and_a_writer_get_along(folder: Path) -> None:
    with DiskStore(folder) as store:
        store.write(["b1"])
        first = DiskStore.open_readonly(folder)
        store.write(["b2"])
        second = DiskStore.open_readonly(folder)
        assert list(first.index) == ["b1"]
        assert list(second.index) == ["b1", "b2"]
        assert first.read(["b1"]) == second.read(["b1", "b2"]) == {}
        first.close()
        second.close()


def test_a_reader_that_is_overtaken_by_a_writer_says_so_and_calls_nothing_damaged(folder: Path) -> None:
    with DiskStore(folder) as store:
        store.write(["b1", "b2"])
    reader = DiskStore.open_readonly(folder)
    with DiskStore(folder) as store:
        store.write([], ["b1"])
    with pytest.raises(EnvironmentFault, match="was changed while it was read"):
        reader.read(["b1"])
    reader.close()


@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal", "cache.db-journal"])
def test_a_store_that_was_killed_while_it_was_made_is_an_empty_one(folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / "cache.db").touch()
    (folder / name).touch()
    with DiskStore.open_readonly(folder) as reader:
        assert list(reader.index) == []
    assert DiskStore.check(folder) == []
    with DiskStore(folder) as store:
        store.write(["b1"])
    assert order(folder) == ["b1"]


def test_a_store_makes_the_folders_on_the_way_to_it(folder: Path) -> None:
    with DiskStore(folder / "deep" / "down") as store:
        store.write(["b1"])
    assert order(folder / "deep" / "down") == ["b1"]
