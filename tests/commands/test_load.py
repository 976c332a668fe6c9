"""`kvtier load`, as its users see it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kvtier_cli.commands import load
from kvtier_cli.errors import ExitStatus
from kvtier_cli.workspace import Workspace, open_workspace
from kvtier_cli.workspace.state import read_state
from tests.conftest import CHECKOUT, RunsKvtier, in_terminal
from tests.workspace.in_process import run_here
from tests.workspace.spaces import TOKENS, topology, trace


@pytest.fixture(scope="module")
def kvtier() -> RunsKvtier:
    """The command line in this process."""
    return run_here


CHAT = str(CHECKOUT / "fixtures" / "chat.jsonl")
DEMO = str(CHECKOUT / "fixtures" / "demo.toml")


@pytest.fixture
def here(kvtier: RunsKvtier, tmp_path: Path) -> Path:
    assert kvtier("init", "--topology", DEMO, cwd=tmp_path).status == 0
    return tmp_path


@pytest.mark.parametrize("tiers", [[], ["--tiers", "storage:local"]])
def test_the_figures_are_those_of_a_replay(kvtier: RunsKvtier, here: Path, tiers: list[str]) -> None:
    replayed = json.loads(kvtier("replay", CHAT, "--topology", DEMO, "--json", *tiers).stdout)
    ran = kvtier("load", CHAT, "--json", *tiers, cwd=here)
    found = json.loads(ran.stdout)
    assert (ran.stderr, ran.status) == ("", 0)
    assert (found["schema"], found["workspace"]) == ("kvtier.load/1", ".kvtier")
    assert found["figures"] == replayed["figures"]
    assert found["filter"] == replayed["filter"]


def test_so_is_the_text(kvtier: RunsKvtier, here: Path) -> None:
    replayed = kvtier("replay", CHAT, "--topology", ".kvtier/kvtier.toml", cwd=here)
    assert kvtier("load", CHAT, cwd=here) == replayed


def test_storing_on_disk_without_a_workspace_gives_the_same_figures_and_events(
    kvtier: RunsKvtier, tmp_path: Path
) -> None:
    args = ["replay", CHAT, "--topology", DEMO, "--json", "--events"]
    in_memory = kvtier(*args, str(tmp_path / "one"))
    on_disk = kvtier(*args, str(tmp_path / "two"), "--store", str(tmp_path / "store"))
    assert on_disk == in_memory
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["nvme", "s3"]
    again = kvtier("replay", CHAT, "--store", str(tmp_path / "store"))
    assert (again.stdout, again.status) == ("", 2)
    assert "is not empty" in again.stderr


def test_several_traces_are_loaded_one_after_another(kvtier: RunsKvtier, here: Path) -> None:
    one, two = trace(here / "one.jsonl", [[0, 1]]), trace(here / "two.jsonl", [[0, 1], [2]])
    both = json.loads(kvtier("load", str(one), str(two), "--json", cwd=here).stdout)
    assert (both["formats"], both["figures"]["blocks_loaded"]) == (["mooncake", "mooncake"], 2)
    assert json.loads(kvtier("load", "-", "--json", cwd=here, stdin=one.read_bytes()).stdout)["files"] == ["stdin"]
    found = json.loads(kvtier("tiers", "--json", cwd=here).stdout)
    assert (found["requests"], found["blocks"], found["block_tokens"]) == (4, 7, TOKENS)


@pytest.mark.parametrize(("payload", "expected"), [("0", 0), ("1KiB", 1024), ("real", TOKENS * 2)])
def test_payloads_have_the_size_that_was_asked_for(
    kvtier: RunsKvtier, tmp_path: Path, payload: str, expected: int
) -> None:
    given = '{"block": {"bytes_per_token": 2}, "tiers": [{"name": "nvme"}]}'
    kvtier("init", "--topology", given, cwd=tmp_path)
    assert kvtier("load", str(trace(tmp_path / "t", [[0, 1]])), "--payload", payload, cwd=tmp_path).status == 0
    with open_workspace(tmp_path / ".kvtier", write=True) as space:
        store = space.tiers[0].store
        assert [len(store.payload(key)) for key in store.index] == [expected] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([CHAT, "--payload", "many"], "error: --payload: "),
        ([CHAT, "--lock-timeout", "soon"], "error: --lock-timeout: "),
        ([CHAT, "--tiers", "storage:lcoal"], "error: "),
        (["-", "--tiers", "-"], "error: the trace and --tiers both come from stdin"),
        ([str(CHECKOUT / "fixtures" / "deny-all.yaml")], "error: "),
        (["gone.jsonl"], "error: gone.jsonl: "),
        ([CHAT, "--workspace", "gone"], "error: there is no workspace in gone\n"),
    ],
)
def test_a_wrong_command_line_loads_nothing(kvtier: RunsKvtier, here: Path, args: list[str], said: str) -> None:
    ran = kvtier("load", *args, cwd=here)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith(said)
    assert json.loads(kvtier("tiers", "--json", cwd=here).stdout)["requests"] == 0


def test_real_payloads_need_the_size_of_a_token(kvtier: RunsKvtier, tmp_path: Path) -> None:
    kvtier("init", cwd=tmp_path)
    ran = kvtier("load", CHAT, "--payload", "real", cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert "bytes_per_token" in ran.stderr


def test_a_bad_line_stops_the_load_and_what_was_before_it_stays(kvtier: RunsKvtier, here: Path) -> None:
    file = trace(here / "t.jsonl", [[0, 1], [2, 3], [4]])
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], "{", lines[2]]) + "\n")
    ran = kvtier("load", "t.jsonl", cwd=here)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith("error: t.jsonl:3:")
    found = json.loads(kvtier("tiers", "--json", cwd=here).stdout)
    assert found["requests"] == 2
    assert kvtier("load", "t.jsonl", "--skip-bad", cwd=here).status == 0
    assert json.loads(kvtier("tiers", "--json", cwd=here).stdout)["requests"] == 5


def test_without_any_workspace_the_user_s_own_is_made(kvtier: RunsKvtier, tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}
    (tmp_path / "here").mkdir()
    ran = kvtier("load", CHAT, env=env, cwd=tmp_path / "here")
    assert ran.status == 0
    assert ran.stderr.startswith("note: made a workspace of your own, ")
    assert kvtier("load", CHAT, env=env, cwd=tmp_path / "here").stderr == ""
    assert json.loads(kvtier("tiers", "--json", env=env, cwd=tmp_path / "here").stdout)["requests"] == 598


def test_the_second_load_is_told_who_has_the_workspace(kvtier: RunsKvtier, here: Path) -> None:
    with open_workspace(here / ".kvtier", write=True, command="kvtier load"):
        ran = kvtier("load", CHAT, "--lock-timeout", "50ms", cwd=here)
        assert (ran.stdout, ran.status) == ("", ExitStatus.ENVIRONMENT)
        assert ran.stderr.startswith(
            f"error: the workspace .kvtier is in use by `kvtier load` (pid {os.getpid()}, since "
        )
    with open_workspace(here / ".kvtier", command="kvtier dash"):
        assert kvtier("tiers", cwd=here).status == 0, "two who read do not mind each other"
        assert "`kvtier dash`" in kvtier("load", CHAT, "--lock-timeout", "0", cwd=here).stderr
    assert kvtier("load", CHAT, cwd=here).status == 0


def test_what_earlier_loads_evicted_is_said_not_to_be_known(kvtier: RunsKvtier, tmp_path: Path) -> None:
    from kvtier_cli.tiering.topology_write import topology_as_toml

    (tmp_path / "t.toml").write_text(topology_as_toml(topology(primary=2, nvme=2, s3=2)))
    kvtier("init", "--topology", "t.toml", cwd=tmp_path)
    file = trace(tmp_path / "t.jsonl", [[0], [1], [2], [3]])
    assert kvtier("load", str(file), cwd=tmp_path).stderr == ""
    assert "what earlier loads evicted is not remembered" in kvtier("load", str(file), cwd=tmp_path).stderr


def test_faults_on_demand_are_said(kvtier: RunsKvtier, here: Path) -> None:
    kvtier("tiers", "set", "s3", "--offline", cwd=here)
    ran = kvtier("load", CHAT, cwd=here)
    assert "warning: s3 has a fault on demand: it is offline\n" in ran.stderr
    found = json.loads(kvtier("load", CHAT, "--json", cwd=here).stdout)
    assert "s3 has a fault on demand: it is offline" in found["warnings"]


def test_a_long_load_shows_a_progress_bar_on_a_terminal(here: Path) -> None:
    file = trace(here / "long.jsonl", [range(at, at + 8) for at in range(0, 24_000, 8)])
    command = [sys.executable, "-m", "kvtier_cli.main", "load", str(file), "--workspace", str(here / ".kvtier")]
    seen = in_terminal(command, {"LANG": "C.UTF-8"}, columns=200)
    assert "long.jsonl" in seen
    assert "MB/s" in seen
    assert "left" in seen


def test_the_cpu_tier_is_written_down_now_and_then(
    kvtier: RunsKvtier, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a load that is killed loses of it is bounded."""
    saved: list[int] = []
    save = Workspace.save

    def noted(space: Workspace) -> None:
        save(space)
        saved.append(read_state(space.path).requests)

    monkeypatch.setattr(Workspace, "save", noted)
    monkeypatch.setattr(load, "_SAVE_EVERY", -1.0)
    kvtier("load", str(trace(here / "t.jsonl", [[0], [1], [2]])), cwd=here)
    assert saved == [1, 2, 3, 3]
