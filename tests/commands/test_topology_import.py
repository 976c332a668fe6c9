"""`kvtier topology import`, and vLLM's configuration wherever a topology is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.tiering.topology_file import read_topology_text
from tests.conftest import RunsKvtier
from tests.tiering.vllm.configs import FS, OBJ, P2P, extra, transfer

CONFIG = json.dumps(transfer(extra({**FS, "locality": "LOCAL"}, {**OBJ, "locality": "REMOTE"})))
SWALLOWED = json.dumps(extra({**P2P, "locality": "LOCAL"}))
EACH = ("--bytes-per-token", "128KiB")


def test_import_prints_a_topology_file_that_says_how_it_came_about(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "import", CONFIG, *EACH)
    found = read_topology_text(ran.stdout, "kvtier.toml")
    assert (found.primary.capacity, [tier.name for tier in found.tiers]) == (4096, ["1:fs", "2:obj"])
    assert found.tiers[0].about == "root_dir /mnt/kv"
    assert "# blocks: 8,589,934,592 // 2,097,152 = 4,096\n" in ran.stdout
    assert (ran.stderr, ran.status) == ("", 0)


def test_import_writes_the_file_and_shows_the_arithmetic(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "vllm.json").write_text(CONFIG)
    ran = kvtier("topology", "import", "vllm.json", *EACH, "--out", "kvtier.toml", cwd=tmp_path)
    assert "  blocks            8,589,934,592 // 2,097,152 = 4,096\n" in ran.stdout
    assert (ran.stderr, ran.status) == ("note: written to kvtier.toml\n", 0)
    shown = kvtier("filter", "storage:local", "--topology", "kvtier.toml", cwd=tmp_path)
    assert "Admits 1 of 2 secondary tiers: 1:fs. Skips 2:obj." in shown.stdout


def test_import_as_json_has_topology_arithmetic_warnings_and_notes(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "import", "-", *EACH, "--json", stdin=SWALLOWED)
    found = json.loads(ran.stdout)
    assert (found["schema"], found["name"], ran.stderr) == ("kvtier.topology-import/1", "stdin", "")
    assert found["topology"]["primary"]["capacity"] == 4096
    assert found["arithmetic"][-1] == {"what": "blocks", "how": "8,589,934,592 // 2,097,152 = 4,096"}
    assert len(found["warnings"]) == 1
    assert found["notes"]


@pytest.mark.parametrize(
    "args",
    [
        ("topology", "import", CONFIG),
        ("topology", "show", "--toml", "--topology", CONFIG),
        ("init", "--topology", CONFIG),
    ],
)
def test_the_bytes_of_a_token_are_asked_for_in_three_ways_where_blocks_count(
    kvtier: RunsKvtier, tmp_path: Path, args: tuple[str, ...]
) -> None:
    ran = kvtier(*args, cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert all(way in ran.stderr for way in ("--bytes-per-token", "--model-config", "--metrics"))
    assert list(tmp_path.iterdir()) == []


def test_a_variable_gives_them_to_every_command(kvtier: RunsKvtier, tmp_path: Path) -> None:
    ran = kvtier("init", "--topology", CONFIG, cwd=tmp_path, env={"KVTIER_BYTES_PER_TOKEN": "128KiB"})
    assert ran.status == 0
    assert "capacity = 4096" in (tmp_path / ".kvtier" / "kvtier.toml").read_text()


def test_filter_and_show_need_no_bytes(kvtier: RunsKvtier) -> None:
    ran = kvtier("filter", "storage:local", "--topology", CONFIG)
    assert ran.stdout.startswith("Admits 1 of 2 secondary tiers: 1:fs. Skips 2:obj.\n")
    ran = kvtier("topology", "show", "--topology", CONFIG)
    assert "not known without the KV bytes of a token" in ran.stdout
    assert (ran.stderr, ran.status) == ("", 0)
    found = json.loads(kvtier("topology", "show", "--topology", CONFIG, "--json").stdout)
    assert found["topology"]["primary"] == {"capacity": None, "policy": "lru"}


def test_the_topology_in_the_environment_may_be_vllms(kvtier: RunsKvtier) -> None:
    assert "1:fs" in kvtier("filter", "cpu", env={"KVTIER_TOPOLOGY": CONFIG}).stdout


def test_what_vllm_swallows_is_a_warning_everywhere_and_a_no_under_strict(kvtier: RunsKvtier) -> None:
    for args in (("filter", "cpu", "--topology", SWALLOWED), ("topology", "check", SWALLOWED)):
        ran = kvtier(*args)
        assert "warning: secondary_tiers[0].locality: vLLM ignores it" in ran.stderr
        assert ran.status == 0
    assert kvtier("topology", "check", SWALLOWED, "--strict").status == 1
    assert kvtier("topology", "import", SWALLOWED, *EACH, "--strict").status == 1
    assert json.loads(kvtier("filter", "cpu", "--json", "--topology", SWALLOWED).stdout)["topology_warnings"]


def test_what_vllm_refuses_is_an_error_with_its_place(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{"cpu_bytes_to_use": 1,\n "eviction_policy": "fifo"}')
    ran = kvtier("topology", "check", "v.json", cwd=tmp_path)
    assert ran.stderr.startswith('error: v.json:2:21: eviction_policy: vLLM refuses it: Unknown cache policy: "fifo"')
    assert ran.status == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((CONFIG, *EACH, "--metrics", "m"), "--bytes-per-token and --metrics tell the same"),
        ((CONFIG, "--bytes-per-token", "0"), "--bytes-per-token: expected a number from 1"),
        ((CONFIG, "--bytes-per-token", "many"), '--bytes-per-token: "many" is not understood'),
        ((CONFIG, "--model-config", "missing.json"), "missing.json: cannot be read"),
        ((CONFIG, *EACH, "--out", "-", "--json"), "--out - and --json both write to stdout"),
        (("v.json", *EACH, "--out", "v.json"), "is the configuration itself"),
        (("kvtier.toml",), "there is nothing to import"),
        (("kvtier.toml", *EACH), "--bytes-per-token is for vLLM's own configuration"),
        (("",), "there is no topology"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    kvtier: RunsKvtier, tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    (tmp_path / "v.json").write_text(CONFIG)
    (tmp_path / "kvtier.toml").write_text("version = 1\n")
    ran = kvtier("topology", "import", *args, cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert said in ran.stderr
    assert (tmp_path / "v.json").read_text() == CONFIG


def test_an_option_puts_the_variables_aside(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "import", CONFIG, *EACH, env={"KVTIER_METRICS": "missing", "KVTIER_BLOCK_SIZE": "32"})
    assert "capacity = 2048" in ran.stdout


def test_foreign_text_stays_inert_in_comments_and_output(kvtier: RunsKvtier) -> None:
    own = {"type": "T\x1b[31m\nevil = 1", "module_path": "m"}
    ran = kvtier("topology", "import", json.dumps(extra(own, **{"k\n[x]\x1b": 1})), *EACH)
    assert "\x1b" not in ran.stdout + ran.stderr
    assert read_topology_text(ran.stdout, "x").tiers[0].name == "1:T\x1b[31m\nevil = 1"


@pytest.mark.parametrize("width", [40, 80])
def test_every_line_fits_the_width(kvtier: RunsKvtier, width: int) -> None:
    ran = kvtier("topology", "show", *EACH, "--topology", CONFIG, env={"COLUMNS": str(width)})
    assert all(len(line) <= width for line in ran.stdout.splitlines())
