"""`kvtier topology`, as its users see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.tiering.topology_file import read_topology_text
from tests.conftest import RunsKvtier

SLOW = '{"tiers":[{"name":"slow","medium":"storage","lookup_retry":16,"offline":true,"read_latency":"2ms"}]}'


def test_show_lists_the_built_in_tiers_in_lookup_order(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "show")
    assert ran.stdout == (
        "built-in topology: the primary and 2 secondary tiers\n"
        "\n"
        "  tier  medium   locality     blocks  settings\n"
        "  cpu   primary               10,000  policy lru\n"
        "  nvme  storage  local        40,000\n"
        "  s3    storage  remote    unlimited\n"
        "\n"
        "  block: tokens as the trace says; bytes not known, so there are no byte figures\n"
        "  replay: max_wait_steps 16, store_batch_blocks 0, tail keep, identity chain\n"
    )
    assert (ran.stderr, ran.status) == ("", 0)


def test_show_tells_what_departs_from_the_defaults_and_what_is_odd(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "show", "--topology", SLOW)
    assert "lookup_retry 16; offline; read_latency 2ms" in ran.stdout
    assert "lookup_retry 16 is not below replay.max_wait_steps 16" in ran.stderr
    assert ran.status == 0


def test_show_prints_a_file_to_start_from(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "show", "--toml")
    assert read_topology_text(ran.stdout, BUILT_IN.name) == BUILT_IN


def test_show_as_json_has_every_field(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "show", "--json")
    found = json.loads(ran.stdout)
    assert (found["schema"], found["name"], found["warnings"]) == ("kvtier.topology/1", "built-in topology", [])
    assert read_topology_text(json.dumps(found["topology"]), BUILT_IN.name) == BUILT_IN
    assert ran.stderr == ""


def test_toml_and_json_exclude_each_other(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "show", "--toml", "--json")
    assert (ran.stdout, ran.status) == ("", 2)


def test_check_accepts_a_file_that_is_right(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "kvtier.toml").write_text(kvtier("topology", "show", "--toml").stdout)
    ran = kvtier("topology", "check", "kvtier.toml", "--strict", cwd=tmp_path)
    assert (ran.stdout, ran.stderr, ran.status) == (
        "ok  kvtier.toml  the primary and 2 secondary tiers\n",
        "",
        0,
    )


def test_check_warns_and_under_strict_says_no(kvtier: RunsKvtier) -> None:
    ran = kvtier("topology", "check", SLOW)
    assert ran.stdout == "warn  inline topology  the primary and 1 secondary tier\n"
    assert ran.stderr.startswith('warning: tier "slow": lookup_retry 16')
    assert ran.status == 0
    assert kvtier("topology", "check", SLOW, "--strict").status == 1
    found = json.loads(kvtier("topology", "check", SLOW, "--json").stdout)
    assert (found["ok"], len(found["warnings"])) == (False, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiers:\n- name: cpu\n", "error: t:2:9: tiers[0].name: \"cpu\" is the primary's name"),
        ("[primary]\npolicy = lru\n", "error: t:2:10: not TOML: invalid value\n       texts stand in double quotes\n"),
        ('{"kv_connector":"OffloadingConnector"}', "error: t:1:1: vLLM refuses it: Please specify kv_role"),
        ("", "error: t: is empty, expected a topology\n"),
    ],
)  # fmt: skip
def test_check_refuses_what_is_wrong_with_its_place(kvtier: RunsKvtier, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t").write_text(text)
    ran = kvtier("topology", "check", "t", cwd=tmp_path)
    assert (ran.stdout, ran.status) == ("", 2)
    assert ran.stderr.startswith(said)


def test_names_and_remarks_are_shown_as_inert_text(kvtier: RunsKvtier) -> None:
    tier = {"name": "\x1b[31mred", "about": "[bold]\x07\n"}
    ran = kvtier("topology", "show", "--topology", json.dumps({"tiers": [tier]}))
    assert "\x1b" not in ran.stdout
    assert "\x07" not in ran.stdout
    assert "\\x1b[31mred" in ran.stdout
    assert "about [bold]\\x07\\n" in ran.stdout


@pytest.mark.parametrize("width", [40, 80])
def test_every_line_fits_the_width(kvtier: RunsKvtier, width: int) -> None:
    topology = {"tiers": [{"name": "n" * 100, "about": "many words " * 30}, {"name": "b", "offline": True}]}
    ran = kvtier("topology", "show", "--topology", json.dumps(topology), env={"COLUMNS": str(width)})
    assert all(len(line) <= width for line in ran.stdout.splitlines())
