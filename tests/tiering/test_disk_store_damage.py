"""A tampered or worn store is damage, said as such: it costs its blocks a promotion, and nobody anything else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import diskcache
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import LookupResult, Medium
from kvtier_cli.tiering.payload import payload_for
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.stores.disk import DiskStore
from kvtier_cli.tiering.stores.disk_check import Damage
from kvtier_cli.tiering.stores.disk_database import SETTINGS
from kvtier_cli.tiering.stores.disk_values import pack
from kvtier_cli.tiering.stores.raw_disk import RawDisk
from kvtier_cli.tiering.topology import PrimarySpec, TierSpec, Topology
from tests.tiering.disk_tampering import INDEX_LEAF, TABLE_LEAF, bomb, corrupt_page, execute, filename_of

BLOCKS = ["b1", "b2", "b3"]
IN_FILES = 40_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed store that holds b1, b2 and b3, payloads in their rows."""
    return make(tmp_path / "store")


@pytest.fixture
def with_files(tmp_path: Path) -> Path:
    """The same with payloads that have files of their own."""
    return make(tmp_path / "store", payload_bytes=IN_FILES)


def make(folder: Path, payload_bytes: int = 64) -> Path:
    for name, data in sound_store(payload_bytes).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@cache
def sound_store(payload_bytes: int) -> dict[str, bytes]:
    """What such a store has on disk: its files with their contents."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with DiskStore(folder, payload_bytes=payload_bytes) as store:
            store.write(BLOCKS)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def value_file(folder: Path, block: str) -> Path:
    return folder / filename_of(folder, block)


# Planted: one block, b2, that is not what was written

Plant = Callable[[Path], object]
SET = "UPDATE Cache SET {} WHERE key = 'b2'"


def canary_of(folder: Path) -> Path:
    return folder.parent / "executed"


def valid_elsewhere(folder: Path) -> Path:
    """A file outside the store that would pass for b2's value if it were read."""
    path = folder.parent / "outside.val"
    path.write_bytes(pack("b2", payload_for("b2", 64)))
    return path


def point_to(folder: Path, filename: str) -> None:
    execute(folder, SET.format("mode = 2, value = NULL, filename = ?"), filename)


def link_folder_of(folder: Path) -> None:
    path = value_file(folder, "b2")
    elsewhere = folder.parent / "elsewhere"
    shutil.move(path.parent, elsewhere)
    path.parent.symlink_to(elsewhere)


def link(folder: Path) -> None:
    path = value_file(folder, "b2")
    path.rename(folder.parent / "elsewhere.val")
    path.symlink_to(folder.parent / "elsewhere.val")


def pipe(folder: Path) -> None:
    path = value_file(folder, "b2")
    path.unlink()
    os.mkfifo(path)


def other_bytes(folder: Path) -> None:
    path = value_file(folder, "b2")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut(folder: Path, to: int) -> None:
    os.truncate(value_file(folder, "b2"), to)


IN_ROWS: dict[str, tuple[Plant, str]] = {
    "a pickled value": (
        lambda folder: execute(folder, SET.format("mode = 4, value = ?"), bomb(canary_of(folder))),
        "a pickle or a text",
    ),
    "a text value": (lambda folder: execute(folder, SET.format("mode = 3, filename = 'x'")), "a pickle or a text"),
    "a text that is no UTF-8": (lambda folder: execute(folder, SET.format("value = CAST(value AS TEXT)")), "no bytes"),
    "a file name that is no UTF-8": (
        lambda folder: execute(folder, SET.format("mode = 2, filename = CAST(x'ff' AS TEXT)")),
        "a name that kvtier never gives",
    ),
    "no bytes": (lambda folder: execute(folder, SET.format("value = 7")), "no bytes"),
    "nothing": (lambda folder: execute(folder, SET.format("mode = 0, value = NULL")), "mode 0"),
    "another block's value": (
        lambda folder: execute(folder, SET.format("value = (SELECT value FROM Cache WHERE key = 'b3')")),
        "do not match their checksum",
    ),
    "other bytes": (
        lambda folder: execute(folder, SET.format("value = CAST(substr(value, 1, 50) || zeroblob(34) AS BLOB)")),
        "do not match their checksum",
    ),
    "other bytes with a checksum of their own": (
        lambda folder: execute(folder, SET.format("value = ?"), pack("b2", bytes(64))),
        "not those of this block",
    ),
    "a cut value": (
        lambda folder: execute(folder, SET.format("value = substr(value, 1, 60)")),
        "cut short: 60 bytes, not 84",
    ),
    "less than a header": (lambda folder: execute(folder, SET.format("value = x'4b56'")), "less than a header"),
    "too many bytes": (lambda folder: execute(folder, SET.format("value = CAST(value || x'00' AS BLOB)")), "too long"),
    "no header": (lambda folder: execute(folder, SET.format("value = zeroblob(84)")), "no header"),
    "a later format": (
        lambda folder: execute(
            folder, SET.format("value = CAST(substr(value, 1, 4) || x'09' || substr(value, 6) AS BLOB)")
        ),
        "format version 9",
    ),
    "a path outside": (
        lambda folder: point_to(folder, str(valid_elsewhere(folder))),
        "a name that kvtier never gives",
    ),
    "a path upwards": (
        lambda folder: point_to(folder, f"../{valid_elsewhere(folder).name}"),
        "a name that kvtier never gives",
    ),
}
IN_THE_FILES: dict[str, tuple[Plant, str]] = {
    "other bytes in the file": (other_bytes, "do not match their checksum"),
    "a cut file": (lambda folder: cut(folder, 20_000), "cut short: 20000 bytes, not 40020"),
    "a file cut to nothing": (lambda folder: cut(folder, 0), "cut short: 0 bytes"),
    "a missing file": (lambda folder: value_file(folder, "b2").unlink(), "its file is missing"),
    "a link to elsewhere": (link, "its file is a link"),
    "a folder that is a link to elsewhere": (link_folder_of, "behind a link"),
    "a pipe": (pipe, "no regular file"),
    "another block's file": (
        lambda folder: point_to(folder, filename_of(folder, "b3")),
        "do not match their checksum",
    ),
}


@pytest.fixture(params=[*IN_ROWS, *IN_THE_FILES])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A store with a damaged b2, and what is said of it."""
    if request.param in IN_ROWS:
        (plant, words), folder = IN_ROWS[request.param], make(tmp_path / "store")
    else:
        (plant, words), folder = IN_THE_FILES[request.param], make(tmp_path / "store", payload_bytes=IN_FILES)
    plant(folder)
    return folder, words


def outside(folder: Path) -> dict[str, bytes]:
    """What lies beside the store."""
    return {
        path.name: path.read_bytes()
        for path in folder.parent.rglob("*")
        if path.is_file() and folder not in path.parents
    }


def test_a_damaged_block_leaves_the_store_when_it_is_read_and_the_others_stay(planted: tuple[Path, str]) -> None:
    folder, words = planted
    before = outside(folder)
    with DiskStore(folder) as store:
        damaged = store.read(["b1", "b2"])
        assert list(damaged) == ["b2"]
        assert words in damaged["b2"]
        assert list(store.index) == ["b1", "b3"]
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == ["b1", "b3"]
    assert outside(folder) == before
    assert not canary_of(folder).exists()


def test_a_reader_tells_it_too_and_changes_nothing(planted: tuple[Path, str]) -> None:
    folder, words = planted
    with DiskStore.open_readonly(folder) as reader:
        damaged = reader.read(["b2", "b1"])
    assert list(damaged) == ["b2"]
    assert words in damaged["b2"]
    with DiskStore.open_readonly(folder) as reader:
        assert list(reader.index) == BLOCKS
    assert not canary_of(folder).exists()


def test_a_check_reports_it_and_a_repair_removes_that_block_alone(planted: tuple[Path, str]) -> None:
    folder, words = planted
    before = outside(folder)
    found = [damage for damage in DiskStore.check(folder) if damage.kind != "file"]
    assert [(damage.kind, damage.subject, damage.mended) for damage in found] == [("block", "b2", False)]
    assert words in found[0].reason
    assert all(damage.mended for damage in DiskStore.check(folder, repair=True))
    assert outside(folder) == before
    assert not canary_of(folder).exists()
    assert DiskStore.check(folder) == []
    assert [path.name for path in folder.iterdir() if len(path.name) > 2] == ["cache.db"]
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == ["b1", "b3"]


def test_a_block_put_back_after_its_damage_is_sound(planted: tuple[Path, str]) -> None:
    folder, _ = planted
    with DiskStore(folder) as store:
        store.read(["b2"])
        store.write(["b2"])
        assert store.read(["b2"]) == {}
    assert [damage for damage in DiskStore.check(folder) if damage.subject == "b2"] == []


# Rows that are no blocks

NO_BLOCKS: dict[str, Plant] = {
    "a pickled name": lambda folder: insert(folder, bomb(canary_of(folder)), raw=0),
    "a name said to be pickled": lambda folder: insert(folder, "b9", raw=0),
    "a name in bytes": lambda folder: insert(folder, b"b9"),
    "a number as name": lambda folder: insert(folder, 9),
    "a name that is no UTF-8": lambda folder: execute(
        folder, "INSERT INTO Cache (key, raw, tag, mode) VALUES (CAST(x'ff62' AS TEXT), 1, 9, 1)"
    ),
    "a block that expires": lambda folder: insert(folder, "b9", expire_time=1.0),
}


def insert(folder: Path, key: object, *, raw: int = 1, expire_time: float | None = None) -> None:
    execute(
        folder,
        "INSERT INTO Cache (key, raw, tag, expire_time, mode, value) VALUES (?, ?, 9, ?, 1, ?)",
        *(key, raw, expire_time, pack("b9", payload_for("b9", 64))),
    )


@pytest.mark.parametrize("kind", NO_BLOCKS)
def test_a_row_that_is_no_block_is_not_in_the_index_but_in_the_report(folder: Path, kind: str) -> None:
    NO_BLOCKS[kind](folder)
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == BLOCKS
        assert store.read(BLOCKS) == {}
    assert [damage.kind for damage in DiskStore.check(folder)] == ["block"]
    DiskStore.check(folder, repair=True)
    assert DiskStore.check(folder) == []
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == BLOCKS
    assert not canary_of(folder).exists()


def test_a_block_that_a_foreign_row_stands_in_the_way_of_is_not_stored(folder: Path) -> None:
    NO_BLOCKS["a block that expires"](folder)
    with DiskStore(folder) as store:
        with pytest.raises(EnvironmentFault, match="has rows that kvtier did not write") as raised:
            store.write(["b8", "b9"], ["b1"])
        assert list(store.index) == BLOCKS
        assert store.read(BLOCKS) == {}
    assert "--repair" in str(raised.value.hint)
    DiskStore.check(folder, repair=True)
    with DiskStore(folder) as store:
        store.write(["b8", "b9"], ["b1"])
        assert list(store.index) == ["b2", "b3", "b8", "b9"]


@pytest.mark.parametrize("place", ["-5", "NULL", "'first'", "1.5", "9223372036854775807"])
def test_a_block_whose_place_in_the_order_is_no_place_counts_as_the_least_recent(folder: Path, place: str) -> None:
    execute(folder, f"UPDATE Cache SET tag = {place} WHERE key = 'b3'")
    with DiskStore(folder) as store:
        store.write(["b4"])
        assert list(store.least_recent_first()) == ["b3", "b1", "b2", "b4"]
    assert [(damage.subject, damage.harmless) for damage in DiskStore.check(folder)] == [("b3", True)]
    DiskStore.check(folder, repair=True)
    assert DiskStore.check(folder) == []
    with DiskStore(folder) as store:
        assert set(store.oldest(2)) == {"b1", "b3"}
        assert list(store.least_recent_first())[2:] == ["b2", "b4"]


def test_names_with_line_breaks_are_names(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        store.write(["b1", "b\n2", ""])
    with DiskStore(tmp_path / "store") as store:
        assert list(store.least_recent_first()) == ["b1", "b\n2", ""]


# Settings and schema: what diskcache would execute or trip over when it opens the store

FOREIGN_SETTINGS: dict[str, tuple[str, object]] = {
    "an unknown setting of the disk": ("disk_x", 1),
    "a pragma": ("sqlite_writable_schema", 1),
    "more than a pragma": ("sqlite_mmap_size = 5 --", 1),
    "the name of a method": ("transact", "x"),
    "diskcache's own size limit": ("size_limit", 2**30),
    "an eviction policy": ("eviction_policy", "least-recently-used"),
    "a number as text": ("cull_limit", "0"),
    "a number that is no integer": ("cull_limit", 0.0),
    "a counter that is none": ("count", "many"),
    "a key that is no text": (b"x", 1),  # type: ignore[dict-item]
}


@pytest.fixture(params=FOREIGN_SETTINGS)
def with_setting(request: pytest.FixtureRequest, folder: Path) -> Path:
    key, value = FOREIGN_SETTINGS[request.param]
    execute(folder, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", key, value)
    return folder


@pytest.mark.parametrize("open_it", [DiskStore, DiskStore.open_readonly], ids=["writer", "reader"])
def test_a_foreign_setting_keeps_the_store_shut_in_plain_words(
    with_setting: Path, open_it: Callable[[Path], object]
) -> None:
    before = (with_setting / "cache.db").read_bytes()
    with pytest.raises(EnvironmentFault, match="damaged, or another program's: the setting") as raised:
        open_it(with_setting)
    assert "doctor" in str(raised.value.hint)
    assert (with_setting / "cache.db").read_bytes() == before


def test_a_repair_takes_a_foreign_setting_out_and_keeps_the_blocks(with_setting: Path) -> None:
    assert [damage.kind for damage in DiskStore.check(with_setting)] == ["setting"]
    DiskStore.check(with_setting, repair=True)
    with DiskStore(with_setting) as store:
        assert list(store.least_recent_first()) == BLOCKS
        assert store.read(BLOCKS) == {}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE extra (x)",
        "CREATE VIEW extra AS SELECT 1",
        "CREATE TRIGGER extra AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
        "CREATE INDEX extra ON Cache (size)",
    ],
)
def test_a_foreign_trigger_or_table_keeps_the_store_shut_until_it_is_repaired(folder: Path, statement: str) -> None:
    execute(folder, statement)
    with pytest.raises(EnvironmentFault, match="extra"):
        DiskStore(folder)
    assert [damage.kind for damage in DiskStore.check(folder)] == ["schema"]
    DiskStore.check(folder, repair=True)
    assert DiskStore.check(folder) == []
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == BLOCKS


def test_a_trigger_of_diskcaches_that_does_something_else_is_noticed(folder: Path) -> None:
    execute(folder, "DROP TRIGGER Settings_size_delete")
    execute(folder, "CREATE TRIGGER Settings_size_delete AFTER DELETE ON Cache BEGIN DELETE FROM Cache; END")
    assert [(damage.kind, damage.subject) for damage in DiskStore.check(folder)] == [
        ("schema", "trigger Settings_size_delete")
    ]


def test_the_store_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    with diskcache.Cache(tmp_path) as cache:
        cache["theirs"] = (1, 2)
    before = (tmp_path / "cache.db").read_bytes()
    with pytest.raises(EnvironmentFault, match="another program's"):
        DiskStore(tmp_path)
    assert (tmp_path / "cache.db").read_bytes() == before


def test_every_setting_that_diskcache_has_is_set_by_kvtier() -> None:
    assert set(diskcache.DEFAULT_SETTINGS) == set(SETTINGS)


# The database itself


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A closed store of 3,000 blocks."""
    with DiskStore(tmp_path / "store") as store:
        for start in range(0, 3000, 100):
            store.write([f"b{index}" for index in range(start, start + 100)])
    return tmp_path / "store"


def test_a_corrupt_page_costs_the_blocks_on_it_and_no_others(large: Path) -> None:
    corrupt_page(large, TABLE_LEAF)
    with pytest.raises(EnvironmentFault, match="is damaged"):
        DiskStore(large)
    reasons = [damage.reason for damage in DiskStore.check(large)]
    assert any("corrupt pages" in reason for reason in reasons)
    lost = next(int(reason.split()[0]) for reason in reasons if "of its rows cannot be read" in reason)
    assert 0 < lost < 50
    assert all(damage.mended for damage in DiskStore.check(large, repair=True))
    assert DiskStore.check(large) == []
    with DiskStore(large) as store:
        left = list(store.least_recent_first())
        assert len(left) == 3000 - lost
        assert left == sorted(left, key=lambda name: int(str(name)[1:]))
        assert store.read(left) == {}


def test_a_corrupt_page_of_the_index_costs_no_block(large: Path) -> None:
    corrupt_page(large, INDEX_LEAF)
    assert {damage.kind for damage in DiskStore.check(large)} == {"database"}
    DiskStore.check(large, repair=True)
    with DiskStore(large) as store:
        assert len(store.index) == 3000
        assert store.read(list(store.index)) == {}


def test_a_page_that_becomes_corrupt_while_the_store_is_open_is_a_failed_read(large: Path) -> None:
    with DiskStore(large) as store:
        blocks = list(store.index)
        corrupt_page(large, TABLE_LEAF)
        damaged = store.read(blocks)
        assert 0 < len(damaged) < 3000
        assert set(damaged.values()) == {"its page in the database is corrupt"}
        assert len(store.index) == 3000 - len(damaged)


@pytest.mark.parametrize("content", [b"no database at all, whatever its name says" * 99, b"\0" * 8192])
def test_a_corrupt_header_is_said_and_cannot_be_mended(folder: Path, content: bytes) -> None:
    (folder / "cache.db").write_bytes(content)
    for open_it in (DiskStore, DiskStore.open_readonly):
        with pytest.raises(EnvironmentFault, match="is damaged: its database cannot be read"):
            open_it(folder)
    for repair in (False, True):
        assert [(damage.kind, damage.mended) for damage in DiskStore.check(folder, repair=repair)] == [
            ("database", False)
        ]
    assert (folder / "cache.db").read_bytes() == content


def test_a_database_cut_in_the_middle_is_damage(large: Path) -> None:
    os.truncate(large / "cache.db", (large / "cache.db").stat().st_size // 2)
    with pytest.raises(EnvironmentFault, match="is damaged"):
        DiskStore(large)
    assert "database" in {damage.kind for damage in DiskStore.check(large)}


@pytest.mark.parametrize("sql", [b"CREATE TABLE junk (", b"CREATE \xff\xfe"])
def test_a_schema_that_is_no_sql_is_damage(folder: Path, sql: bytes) -> None:
    data = (folder / "cache.db").read_bytes()
    written = b"CREATE TABLE Cache ("
    assert written in data
    (folder / "cache.db").write_bytes(data.replace(written, sql.ljust(len(written), b"\xff")))
    for open_it in (DiskStore, DiskStore.open_readonly):
        with pytest.raises(EnvironmentFault, match="is damaged"):
            open_it(folder)
    assert [damage.kind for damage in DiskStore.check(folder)] == ["database"]


@given(st.data())
def test_whatever_becomes_of_the_database_no_read_gives_wrong_bytes(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = bytearray(sound_store(64)["cache.db"])
        place = st.integers(0, len(database) - 1)
        for start, junk in data.draw(st.lists(st.tuples(place, st.binary(min_size=1, max_size=40)), max_size=8)):
            database[start : start + len(junk)] = junk
        (folder / "cache.db").write_bytes(database[: data.draw(st.none() | place)])
        found = DiskStore.check(folder)
        try:
            reader = DiskStore.open_readonly(folder)
        except EnvironmentFault:
            assert found
            return
        reader.read(list(reader.index))
        for block in list(reader.index):
            assert reader.payload(block) == payload_for(str(block), 64)
        reader.close()
        if all(damage.mended for damage in DiskStore.check(folder, repair=True)):
            assert DiskStore.check(folder) == []


def test_a_repair_that_fails_leaves_the_store_as_it_was(folder: Path) -> None:
    execute(folder, "UPDATE Cache SET value = x'00' WHERE key = 'b2'")
    before = (folder / "cache.db").read_bytes()
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EnvironmentFault, match="is locked by another process"):
            DiskStore.check(folder, repair=True, lock_timeout=0.1)
    assert (folder / "cache.db").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir() if "cache.db" not in path.name) == []


# Files that no block has


def test_an_orphan_file_is_reported_and_a_repair_removes_it(with_files: Path) -> None:
    orphan = with_files / "aa" / "bb" / f"{'0' * 28}.val"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"left over")
    assert DiskStore.check(with_files) == [
        Damage("file", f"aa/bb/{'0' * 28}.val", "no block has this file", harmless=True)
    ]
    DiskStore.check(with_files, repair=True)
    assert not orphan.exists()
    assert DiskStore.check(with_files) == []
    with DiskStore(with_files) as store:
        assert store.read(BLOCKS) == {}


def test_a_file_that_is_not_the_stores_is_nobodys_business(with_files: Path) -> None:
    note = with_files / "README"
    note.write_text("mine")
    (with_files / "aa").mkdir(exist_ok=True)
    (with_files / "aa" / "note.val").write_text("mine too")
    assert DiskStore.check(with_files, repair=True) == []
    assert note.exists()
    assert (with_files / "aa" / "note.val").exists()


def test_there_is_nothing_to_check_where_no_store_is(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="holds no store"):
        DiskStore.check(tmp_path)
    with pytest.raises(EnvironmentFault, match="no such file"):
        DiskStore.open_readonly(tmp_path)


# The disk of ours, called as diskcache calls it


@pytest.mark.parametrize("key", [b"b1", 1, 1.0, None, ("b1",), True])
def test_nothing_but_text_is_a_name(folder: Path, key: object) -> None:
    with pytest.raises(TypeError, match="names blocks by text"):
        RawDisk(str(folder)).put(key)


@pytest.mark.parametrize("value", ["text", 1, 1.0, None, bytearray(b"x"), [b"x"], {"a": 1}])
def test_nothing_but_bytes_is_a_value(folder: Path, value: object) -> None:
    with pytest.raises(TypeError, match="takes bytes"):
        RawDisk(str(folder)).store(value, False)


# What a tier makes of it


def test_a_damaged_payload_is_one_failed_promotion_and_then_a_miss(folder: Path) -> None:
    execute(folder, "UPDATE Cache SET value = zeroblob(84) WHERE key = 'b2'")
    spec = TierSpec("nvme", Medium.STORAGE)
    with DiskStore(folder) as store:
        tier = SecondaryTier(spec, store)
        manager = TieringManager(Topology(primary=PrimarySpec(4), tiers=(spec,)), [tier])
        manager.on_new_request("r1")
        assert [manager.lookup("r1", block) for block in BLOCKS] == [LookupResult.HIT_PENDING] * 3
        manager.on_schedule_end()
        assert [manager.lookup("r1", block) for block in BLOCKS] == [
            LookupResult.HIT,
            LookupResult.MISS,
            LookupResult.HIT,
        ]
        assert tier.damaged == {"b2": "its value has no header of kvtier's"}
        assert manager.counters.failed == [1]
        assert not tier.holds("b2")
