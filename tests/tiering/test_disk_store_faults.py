"""When the machine stands in the way of a store: said plainly, in bounded time, and nothing half-written is left."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault, ExitStatus
from kvtier_cli.tiering.stores.disk import DiskStore
from tests.conftest import python_environment

NOBODY = 65534
IN_FILES = 40_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def names(start: int, count: int) -> list[str]:
    return [f"b{index}" for index in range(start, start + count)]


def value_files(folder: Path) -> int:
    return len(list(folder.rglob("*.val")))


# A foreign lock


@contextmanager
def locked_by_another(folder: Path) -> Iterator[None]:
    """Somebody else is in the middle of a transaction."""
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_locked_store_is_not_opened_and_not_waited_for_longer_than_told(folder: Path) -> None:
    DiskStore(folder).close()
    with locked_by_another(folder):
        start = time.monotonic()
        with pytest.raises(EnvironmentFault, match="is locked by another process") as raised:
            DiskStore(folder, lock_timeout=0.2)
        # diskcache itself would wait for a minute.
        assert time.monotonic() - start < 20
    assert raised.value.exit_status is ExitStatus.ENVIRONMENT
    assert "--lock-timeout" in str(raised.value.hint)


def test_a_job_that_meets_a_lock_leaves_nothing_behind_and_can_be_done_again(folder: Path) -> None:
    with DiskStore(folder, lock_timeout=0.1, payload_bytes=IN_FILES) as store:
        store.write(["b1"])
        with locked_by_another(folder):
            with pytest.raises(EnvironmentFault, match="is locked by another process"):
                store.write(["b2"], ["b1"])
            assert list(store.index) == ["b1"]
            assert value_files(folder) == 1
        store.write(["b2"], ["b1"])
        assert list(store.index) == ["b2"]
        assert store.read(["b2"]) == {}


def test_a_store_that_cannot_write_its_order_at_the_close_says_so_and_is_closed(folder: Path) -> None:
    store = DiskStore(folder, lock_timeout=0.1)
    store.write(["b1", "b2"])
    store.refresh(["b1"])
    with locked_by_another(folder), pytest.raises(EnvironmentFault, match="is locked by another process"):
        store.close()
    store.close()
    with DiskStore(folder) as again:
        assert list(again.least_recent_first()) == ["b1", "b2"]


# A full disk


def limit_pages(store: DiskStore, more: int | None) -> None:
    """Let the database grow by so many pages and no further: SQLite then says what it says of a full disk."""
    connection = store._cache._con
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {2**30 if more is None else pages + more}")


@pytest.mark.parametrize("payload_bytes", [1000, IN_FILES])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_a_full_disk_costs_the_job_that_meets_it_and_nothing_else(folder: Path, payload_bytes: int, more: int) -> None:
    with DiskStore(folder, payload_bytes=payload_bytes) as store:
        store.write(names(0, 50))
        files = value_files(folder)
        limit_pages(store, more)
        with pytest.raises(EnvironmentFault, match="is on a full disk") as raised:
            store.write(names(100, 400), names(0, 10))
        assert "Make room" in str(raised.value.hint)
        assert list(store.least_recent_first()) == names(0, 50)
        assert value_files(folder) == files
        assert store.read(names(0, 50)) == {}
        limit_pages(store, None)
        store.write(names(100, 400), names(0, 10))
        assert len(store.index) == 440
    with DiskStore(folder) as store:
        assert list(store.least_recent_first()) == names(10, 40) + names(100, 400)
        assert store.read(list(store.index)) == {}
    assert DiskStore.check(folder) == []


@contextmanager
def limited(what: int, soft: int) -> Iterator[None]:
    """This process may have no more of something for a while."""
    old, hard = resource.getrlimit(what)
    resource.setrlimit(what, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (old, hard))


def test_a_value_file_that_cannot_be_written_whole_is_not_left_behind(folder: Path) -> None:
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with DiskStore(folder, payload_bytes=2_000_000) as store:
            store.write(["b1"])
            with limited(resource.RLIMIT_FSIZE, 1_000_000), pytest.raises(EnvironmentFault, match="file too large"):
                store.write(["b2"])
            assert list(store.index) == ["b1"]
            assert value_files(folder) == 1
        assert DiskStore.check(folder) == []
    finally:
        signal.signal(signal.SIGXFSZ, old)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True, capture_output=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True, timeout=60)


@pytest.mark.parametrize("payload_bytes", [64, 1000, IN_FILES])
def test_a_really_full_disk_is_the_same(small_disk: Path, payload_bytes: int) -> None:
    folder = small_disk / "store"
    held: list[object] = []
    with DiskStore(folder, payload_bytes=payload_bytes) as store:
        with pytest.raises(EnvironmentFault, match="is on a full disk"):  # noqa: PT012 - some job or other
            for start in range(0, 100_000, 10):
                store.write(names(start, 10))
                held += names(start, 10)
        assert list(store.least_recent_first()) == held
        assert store.read(held) == {}
    reader = DiskStore.open_readonly(folder)
    assert list(reader.least_recent_first()) == held
    assert reader.read(held) == {}
    reader.close()
    assert [damage for damage in DiskStore.check(folder) if not damage.harmless] == []


def test_a_store_is_not_made_on_a_full_disk(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(2**21))
    with pytest.raises(EnvironmentFault, match="is on a full disk"):
        DiskStore(small_disk / "store")


# No right to write


def without_rights(code: str, folder: Path) -> str:
    """What a Python that is not the folder's owner prints; it has loaded all it needs before it gives up its rights."""
    lines = [
        "import os, sys",
        "from pathlib import Path",
        "from kvtier_cli.errors import EnvironmentFault",
        "from kvtier_cli.tiering.stores.disk import DiskStore",
        "import kvtier_cli.tiering.stores.raw_disk, kvtier_cli.tiering.stores.disk_check, urllib.parse",
        f"os.geteuid() or os.setuid({NOBODY})",
        "folder = sys.argv[1]",
        textwrap.dedent(code),
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), str(folder)],
        capture_output=True,
        text=True,
        env=python_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A store with b1 in it that anybody may read and nobody may write, where others than its owner can get to."""
    with tempfile.TemporaryDirectory(prefix="kvtier-tests-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "store"
        with DiskStore(folder, payload_bytes=IN_FILES) as store:
            store.write(["b1"])
        inside = [folder, *folder.rglob("*")]
        for path in inside:
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(name).chmod(0o555)
        yield folder
        for path in [Path(name), *inside]:
            path.chmod(0o755)


def test_a_read_only_folder_can_be_read_and_is_not_opened_for_writing(read_only: Path) -> None:
    said = without_rights(
        """
        try:
            DiskStore(folder)
        except EnvironmentFault as fault:
            print(fault.message.replace(folder, "F"))
        with DiskStore.open_readonly(folder) as reader:
            print(list(reader.index), reader.read(["b1"]), DiskStore.check(folder))
        """,
        read_only,
    )
    assert said.splitlines() == ["the store F may not be written", "['b1'] {} []"]


def test_a_store_is_not_made_where_one_may_not_write(read_only: Path) -> None:
    said = without_rights(
        """
        for where in (folder, folder + "/inner"):
            try:
                DiskStore(where if where != folder else folder + "-new")
            except EnvironmentFault as fault:
                print(fault.message.replace(folder, "F"))
        """,
        read_only,
    )
    assert said.splitlines() == ["the store F-new may not be written", "the store F/inner may not be written"]


def test_a_value_file_that_may_not_be_read_is_no_damage(read_only: Path) -> None:
    next(read_only.rglob("*.val")).chmod(0)
    said = without_rights(
        """
        try:
            DiskStore.open_readonly(folder).read(["b1"])
        except EnvironmentFault as fault:
            print(fault.message.rpartition(": ")[2])
        """,
        read_only,
    )
    assert said == "permission denied\n"


# No file handles left


@contextmanager
def no_more_files() -> Iterator[None]:
    """Opening one more file fails."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    with limited(resource.RLIMIT_NOFILE, free):
        yield


def test_too_many_open_files_are_said_and_call_no_block_damaged(folder: Path) -> None:
    with DiskStore(folder, payload_bytes=IN_FILES) as store:
        store.write(["b1", "b2"])
        with no_more_files():
            with pytest.raises(EnvironmentFault, match="too many open files") as read:
                store.read(["b1"])
            with pytest.raises(EnvironmentFault, match="too many files are open") as wrote:
                store.write(["b3"], ["b1"])
        assert "ulimit" in str(read.value.hint)
        assert "ulimit" in str(wrote.value.hint)
        assert list(store.least_recent_first()) == ["b1", "b2"]
        assert store.read(["b1", "b2"]) == {}
        store.write(["b3"], ["b1"])
    assert DiskStore.check(folder) == []


def test_a_store_is_not_opened_without_a_file_handle(folder: Path) -> None:
    DiskStore(folder).close()
    with no_more_files():
        for open_it in (DiskStore, DiskStore.open_readonly):
            with pytest.raises(EnvironmentFault, match="too many files are open"):
                open_it(folder)
    DiskStore(folder).close()


# A commit that fails, an interrupt at the worst moments


def test_a_commit_that_fails_is_taken_back_and_the_next_job_goes_through(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DiskStore(folder, payload_bytes=IN_FILES)
    store.write(["b1"])
    cache = store._cache

    @contextmanager
    def failing_to_commit() -> Iterator[None]:
        """As diskcache leaves it: the transaction stays open."""
        cache._sql("BEGIN IMMEDIATE")
        cache._txn_id = threading.get_ident()
        yield
        cache._txn_id = None
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(cache, "transact", failing_to_commit)
    with pytest.raises(EnvironmentFault, match="disk i/o error"):
        store.write(["b2"], ["b1"])
    monkeypatch.undo()
    assert list(store.index) == ["b1"]
    assert store.read(["b1"]) == {}
    store.write(["b3"], ["b1"])
    store.close()
    with DiskStore(folder) as again:
        assert list(again.index) == ["b3"]
    assert DiskStore.check(folder) == []


@pytest.mark.parametrize("payload_bytes", [64, IN_FILES])
@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_an_interrupted_job_is_done_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str, payload_bytes: int
) -> None:
    store = DiskStore(folder, payload_bytes=payload_bytes)
    store.write(["b1", "b2"])
    cache = store._cache
    transact = cache.transact

    @contextmanager
    def interrupted() -> Iterator[None]:
        with transact():
            yield
            if moment == "before the commit":
                raise KeyboardInterrupt
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "transact", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write(["b3"], ["b1"])
    monkeypatch.undo()
    store.close()
    with DiskStore(folder) as again:
        expected = ["b1", "b2"] if moment == "before the commit" else ["b2", "b3"]
        assert list(again.least_recent_first()) == expected
        assert again.read(expected) == {}
    assert DiskStore.check(folder) == []
