"""`kvtier tiers` and `kvtier tiers set`, as their users see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ran, RunsKvtier
from tests.workspace.in_process import run_here


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


CHAT = str(CHECKOUT / "fixtures" / "chat.jsonl")
DEMO = str(CHECKOUT / "fixtures" / "demo.toml")


@pytest.fixture(scope="module")
def here(kvtier: RunsKvtier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose workspace has the shipped chat trace in it, to be read only."""
    folder = tmp_path_factory.mktemp("tiers")
    kvtier("init", "--topology", DEMO, cwd=folder)
    assert kvtier("load", CHAT, cwd=folder).status == 0
    return folder


@pytest.fixture
def own(kvtier: RunsKvtier, tmp_path: Path) -> Path:
    kvtier("init", "--topology", DEMO, cwd=tmp_path)
    return tmp_path


def test_each_tier_is_told_with_what_it_holds_and_was_asked(kvtier: RunsKvtier, here: Path) -> None:
    replayed = json.loads(kvtier("replay", CHAT, "--topology", DEMO, "--json").stdout)["figures"]
    found = json.loads(kvtier("tiers", "--json", cwd=here).stdout)
    assert (found["schema"], found["workspace"], found["requests"]) == ("kvtier.tiers/1", ".kvtier", 299)
    cpu, nvme, s3 = found["tiers"]
    assert [tier["name"] for tier in (cpu, nvme, s3)] == ["cpu", "nvme", "s3"]
    assert [tier["role"] for tier in (cpu, nvme, s3)] == ["primary", "secondary", "secondary"]
    assert (cpu["resident"], cpu["capacity"], cpu["hits"]) == (96, 96, replayed["primary_hits"])
    assert cpu["bytes"] == 96 * 512 * 128 * 1024
    for tier in (nvme, s3):
        assert tier["asked"] == replayed["asked_by_tier"][tier["name"]]
        assert tier["hits"] == replayed["hits_by_tier"][tier["name"]]
        assert tier["promoted"] == replayed["promoted_by_tier"][tier["name"]]
        assert tier["on_disk"] > 64 * tier["resident"]
    assert (nvme["resident"], nvme["capacity"], s3["capacity"]) == (300, 300, None)
    assert s3["resident"] >= replayed["resident"]["s3"]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_table_fits_the_width_and_lines_up(kvtier: RunsKvtier, here: Path, width: int) -> None:
    ran = kvtier("tiers", cwd=here, env={"COLUMNS": str(width)})
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= width
    [head] = [line for line in lines if line.startswith("  tier")]
    rows = [line for line in lines if line.startswith(("  cpu", "  nvme", "  s3"))]
    assert len(rows) == 3
    assert "resident" in head
    assert "96/96" in rows[0]
    assert all(row[: head.index("resident") + 8].endswith(("96/96", "300/300")) for row in rows[:2])


def test_a_workspace_without_loads_says_so(kvtier: RunsKvtier, own: Path) -> None:
    ran = kvtier("tiers", cwd=own)
    assert ".kvtier: nothing was loaded into it yet" in ran.stdout
    assert json.loads(kvtier("tiers", "--json", cwd=own).stdout)["block_tokens"] is None


def test_where_there_is_none_the_error_says_how_to_make_one(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = kvtier("tiers", cwd=tmp_path, env={"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)})
    assert ran == Ran(
        "",
        "error: there is no workspace here, and none of your own\n"
        "       Make one here with kvtier init, or your own with kvtier load FILE.\n",
        2,
    )


def test_faults_persist_until_they_are_taken_back(kvtier: RunsKvtier, own: Path) -> None:
    def faults() -> tuple[object, ...]:
        s3 = json.loads(kvtier("tiers", "--json", cwd=own).stdout)["tiers"][2]
        return s3["offline"], s3["fail_rate"], s3["seed"]

    assert faults() == (False, 0.0, 0)
    ran = kvtier("tiers", "set", "s3", "--offline", "--fail-rate", "0.1", "--seed", "7", cwd=own)
    assert ran.status == 0
    assert "s3 has a fault on demand: it is offline, and 10 % of what is transferred fails (seed 7)" in " ".join(
        ran.stdout.split()
    )
    assert faults() == (True, 0.1, 7)
    kvtier("tiers", "set", "s3", "--online", cwd=own)
    assert faults() == (False, 0.1, 7)
    kvtier("tiers", "--workspace", ".kvtier", "set", "s3", "--fail-rate", "0", cwd=own)
    assert faults() == (False, 0.0, 7)


@pytest.mark.parametrize(
    ("args", "said", "hint"),
    [
        (["s4", "--offline"], 'the workspace has no secondary tier "s4"', "known are nvme, s3"),
        (["nvem", "--offline"], 'the workspace has no secondary tier "nvem"', 'did you mean "nvme"?'),
        (["cpu", "--offline"], 'the workspace has no secondary tier "cpu"', "known are nvme, s3"),
        (["s3"], "nothing to set", "Give --offline, --online, --fail-rate SHARE, --seed N or --path DIR."),
        (["s3", "--fail-rate", "1.5"], "--fail-rate 1.5 is no share, expected 0 to 1", None),
        (["s3", "--fail-rate", "nan"], "--fail-rate nan is no share, expected 0 to 1", None),
    ],
)
def test_what_cannot_be_set(kvtier: RunsKvtier, own: Path, args: list[str], said: str, hint: str | None) -> None:
    ran = kvtier("tiers", "set", *args, cwd=own)
    assert ran == Ran("", f"error: {said}\n" + (f"       {hint}\n" if hint else ""), 2)


def test_names_are_shown_as_inert_text(kvtier: RunsKvtier, tmp_path: Path) -> None:
    names = ["[red]x", "\x1b[31mred", "漢字", "../up"]
    given = json.dumps({"tiers": [{"name": name, "medium": "storage"} for name in names]})
    kvtier("init", "--topology", given, cwd=tmp_path)
    assert kvtier("load", CHAT, cwd=tmp_path).status == 0
    ran = kvtier("tiers", cwd=tmp_path)
    assert "\x1b" not in ran.stdout
    assert all(text in ran.stdout for text in ("[red]x", "\\x1b[31mred", "漢字", "../up"))
    assert not (tmp_path / ".kvtier" / "up").exists()
    assert len(list((tmp_path / ".kvtier" / "tiers").iterdir())) == 4


def test_a_tier_s_store_may_lie_anywhere(kvtier: RunsKvtier, own: Path) -> None:
    mount = own / "mnt" / "kv"
    assert kvtier("tiers", "set", "s3", "--path", "mnt/kv", cwd=own).status == 0
    assert kvtier("load", CHAT, cwd=own).status == 0
    assert (mount / "cache.db").exists()
    found = json.loads(kvtier("tiers", "--json", cwd=own).stdout)["tiers"]
    assert [tier["path"] for tier in found] == [None, None, str(mount)]
    assert found[2]["resident"] > 1000
    assert kvtier("doctor", cwd=own).status == 0

    mount.rename(own / "unmounted")
    for command in (["tiers"], ["load", CHAT]):
        ran = kvtier(*command, cwd=own)
        assert (ran.stdout, ran.status) == ("", 3)
        assert ran.stderr.startswith(f"error: the store of the tier s3 lies in {mount}, which is not there\n")
    assert kvtier("doctor", cwd=own).status == 1


def test_but_not_where_something_else_is(kvtier: RunsKvtier, own: Path) -> None:
    def refused(path: str) -> str:
        ran = kvtier("tiers", "set", "s3", "--path", path, cwd=own)
        assert (ran.stdout, ran.status) == ("", 2)
        return ran.stderr

    (own / "mine").mkdir()
    (own / "mine" / "letter").write_text("dear")
    (own / "file").write_text("text")
    assert kvtier("tiers", "set", "nvme", "--path", "place", cwd=own).status == 0
    assert "is not empty and holds no store of kvtier's" in refused("mine")
    assert "is not empty and holds no store of kvtier's" in refused("file")
    assert "has the store of the tier nvme" in refused("place")
    kvtier("load", CHAT, cwd=own)
    assert "the tier s3 has its store in" in refused("other")
    assert not (own / "other").exists()
    assert (own / "mine" / "letter").read_text() == "dear"
