"""What a damaged workspace is told about, and what a repair makes of it: damage goes, everything else stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kvtier_cli.errors import EnvironmentFault
from kvtier_cli.replay.text_keys import label_of
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.checks import Check, check_workspace
from tests.tiering.disk_tampering import bomb, execute, filename_of
from tests.workspace.spaces import files_of, filled, loaded, topology, trace

BIG = 40_000


@pytest.fixture
def space(tmp_path: Path) -> Path:
    return filled(tmp_path, [[0, 1, 2, 3], [4, 5, 6, 7]])


def checks(space: Path, *, repair: bool = False) -> dict[str, Check]:
    return {check.name: check for check in check_workspace(space, repair=repair, lock_timeout=1)}


def wrong(space: Path) -> list[str]:
    return [name for name, check in checks(space).items() if not check.ok]


def labels(space: Path, tier: int = 0) -> list[str]:
    with open_workspace(space) as opened:
        return [label_of(str(key)) for key in opened.tiers[tier].blocks()]


def test_nothing_is_wrong_with_a_workspace_as_it_should_be_and_looking_changes_nothing(space: Path) -> None:
    before = files_of(space)
    found = checks(space)
    assert wrong(space) == []
    assert found["store nvme"].found == "8 blocks, all as they were written"
    assert found["state"].found == "format 1, 4 blocks of the CPU tier"
    checks(space, repair=True)
    assert files_of(space) == before


PLANTED = {
    "a pickled value": "UPDATE Cache SET mode = 4, value = :bomb WHERE key LIKE '1:%'",
    "a pickled name": "UPDATE Cache SET raw = 0, key = :bomb WHERE key LIKE '1:%'",
    "a file outside": "UPDATE Cache SET mode = 2, value = NULL, filename = '../../../letter' WHERE key LIKE '1:%'",
    "a foreign setting": "INSERT INTO Settings VALUES ('sqlite_foo', :bomb)",
    "other bytes of the right length": "UPDATE Cache SET value = zeroblob(84) WHERE key LIKE '1:%'",
    "another block's value": (
        "UPDATE Cache SET value = (SELECT value FROM Cache WHERE key LIKE '2:%') WHERE key LIKE '1:%'"
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_rows_do_no_harm_are_reported_and_go(space: Path, tmp_path: Path, planted: str) -> None:
    canary, letter = tmp_path / "canary", tmp_path / "letter"
    letter.write_text("dear")
    statement = PLANTED[planted]
    values = [bomb(canary)] if ":bomb" in statement else []
    execute(space / "tiers" / "nvme", statement.replace(":bomb", "?"), *values)
    assert wrong(space) == ["store nvme"]
    check = checks(space, repair=True)["store nvme"]
    assert (check.ok, check.repair) == (True, "mended")
    assert wrong(space) == []
    expected = ["3", "2", "1", "0", "7", "6", "5", "4"]
    lost = [] if planted == "a foreign setting" else ["1"]
    assert sorted(labels(space)) == sorted(label for label in expected if label not in lost)
    assert not canary.exists()
    assert letter.read_text() == "dear"


@pytest.mark.parametrize("how", ["cut", "gone", "other bytes"])
def test_value_files_that_are_not_what_was_written(tmp_path: Path, how: str) -> None:
    from kvtier_cli.traces.source import TraceSource
    from kvtier_cli.workspace.found import make_workspace

    space = tmp_path / "space"
    make_workspace(space, topology())
    file = trace(tmp_path / "t.jsonl", [[0, 1, 2]])
    with TraceSource(str(file)) as source, open_workspace(space, write=True) as opened:
        opened.run([source], payload_bytes=BIG).run()
    with open_workspace(space) as opened:
        key = next(str(key) for key in opened.tiers[0].blocks() if label_of(str(key)) == "1")
    value = space / "tiers" / "nvme" / filename_of(space / "tiers" / "nvme", key)
    if how == "gone":
        value.unlink()
    elif how == "cut":
        os.truncate(value, 100)
    else:
        value.write_bytes(bytes(value.stat().st_size))
    assert wrong(space) == ["store nvme"]
    assert "1:" in checks(space)["store nvme"].found
    checks(space, repair=True)
    assert wrong(space) == []
    assert sorted(labels(space)) == ["0", "2"]
    assert sorted(labels(space, 1)) == ["0", "1", "2"]


def test_a_store_of_which_nothing_can_be_saved_is_put_aside(space: Path) -> None:
    database = space / "tiers" / "nvme" / "cache.db"
    database.write_bytes(b"corrupt header" * 1000)
    assert wrong(space) == ["store nvme"]
    check = checks(space, repair=True)["store nvme"]
    assert check.ok
    assert "put aside as nvme~damaged-1" in check.repair
    assert wrong(space) == []
    assert (space / "tiers" / "nvme~damaged-1" / "cache.db").read_bytes() == b"corrupt header" * 1000
    assert (labels(space), len(labels(space, 1))) == ([], 8)
    loaded(space, trace(space.parent / "more.jsonl", [[20]]))
    assert labels(space) == ["20"]


def test_a_damaged_state_is_made_anew_and_the_stores_keep_their_blocks(space: Path) -> None:
    (space / "state.json").write_text("{")
    assert wrong(space) == ["state"]
    check = checks(space, repair=True)["state"]
    assert (check.ok, check.repair) == (
        True,
        "made anew, the CPU tier is empty; the old one is state.json~damaged",
    )
    assert wrong(space) == []
    assert len(labels(space)) == 8
    assert (space / "state.json~damaged").read_text() == "{"


def test_a_state_of_a_newer_kvtier_is_no_damage_and_is_not_touched(space: Path) -> None:
    (space / "state.json").write_text('{"format": 99}')
    assert wrong(space) == ["state"]
    assert not checks(space, repair=True)["state"].ok
    assert (space / "state.json").read_text() == '{"format": 99}'


def test_a_topology_that_cannot_be_read_is_not_repaired(space: Path) -> None:
    (space / "kvtier.toml").write_text("tiers = 3")
    assert wrong(space) == ["topology"]
    assert not checks(space, repair=True)["topology"].ok


def test_a_folder_that_others_may_look_into_is_closed(space: Path) -> None:
    space.chmod(0o755)
    assert wrong(space) == ["folder"]
    assert checks(space, repair=True)["folder"].ok
    assert stat.S_IMODE(space.stat().st_mode) == 0o700


def test_what_is_not_the_workspace_s_is_named_and_left_alone(space: Path) -> None:
    (space / "letter").write_text("dear")
    (space / "tiers" / "old").mkdir()
    found = checks(space, repair=True)
    assert found["letter"].found == "is not part of a workspace"
    assert found["tiers/old"].found == "no tier of the topology has this store"
    assert wrong(space) == []
    assert (space / "letter").exists()
    assert (space / "tiers" / "old").exists()


def test_what_a_killed_writer_left_is_no_fault(space: Path) -> None:
    (space / ".state.json.1").write_text("{")
    assert wrong(space) == []
    assert "1 unfinished file" in checks(space)["leftovers"].found
    checks(space, repair=True)
    assert not (space / ".state.json.1").exists()


def test_damage_is_refused_by_those_who_would_use_it(space: Path) -> None:
    (space / "tiers" / "nvme" / "cache.db").write_bytes(b"corrupt header" * 1000)
    for write in (False, True):
        with (
            pytest.raises(EnvironmentFault, match="is damaged"),
            open_workspace(space, write=write, lock_timeout=0) as opened,
        ):
            opened.run()
