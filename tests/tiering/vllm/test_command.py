"""A vllm serve command line, pasted in: read as vLLM's parser reads it, and nothing of it executed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.topology_file import load_any_topology, read_any_topology
from kvtier_cli.tiering.vllm.command import looks_like_command
from kvtier_cli.tiering.vllm.imported import VllmTopology, import_command
from tests.tiering.vllm.configs import FS, SIZES, extra, transfer

CONFIG = json.dumps(transfer(extra(FS)))
PASTED = """\
#!/bin/bash
# the node with the disks
HF_HOME=/models vllm serve meta-llama/Llama-3.1-8B-Instruct \\
    --tensor-parallel-size 2 --block_size=32 \\
    --kv-transfer-config '{
      "kv_connector": "OffloadingConnector", "kv_role": "kv_both",
      "kv_connector_extra_config": {
        "spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 8589934592, "blocks_per_chunk": 2,
        "secondary_tiers": [{"type": "fs", "root_dir": "/mnt/kv", "locality": "LOCAL"}]
      }
    }' \\
    --port 8000
"""


def read(text: str) -> VllmTopology:
    return import_command(text, "pasted", SIZES, file="pasted")


def test_a_command_of_many_lines_is_read_with_all_that_bears_on_its_tiers() -> None:
    found = read(PASTED)
    assert [tier.name for tier in found.tiers] == ["1:fs"]
    assert (found.block.tokens, found.primary.capacity) == (64, 1024)
    assert found.warnings == ()


def test_line_ends_of_windows_and_blanks_behind_the_backslash_do_no_harm() -> None:
    assert read(PASTED.replace("\\\n", "\\  \r\n")).primary.capacity == 1024


@pytest.mark.parametrize(
    "option",
    [
        f"--kv-transfer-config '{CONFIG}'",
        f"--kv_transfer_config='{CONFIG}'",
        "--kv-transfer-config \"" + CONFIG.replace('"', '\\"') + '"',
        "--kv-transfer-config.kv_connector OffloadingConnector --kv-transfer-config.kv_role=kv_both "
        "--kv-transfer-config.kv_connector_extra_config.spec_name TieringOffloadingSpec "
        "--kv_transfer_config.kv_connector_extra_config.cpu_bytes_to_use 8G "
        f"--kv-transfer-config.kv_connector_extra_config.secondary_tiers '[{json.dumps(FS)}]'",
    ],
    ids=["two words", "one word", "double quotes", "dots"],
)  # fmt: skip
@pytest.mark.parametrize(
    "start", ["vllm serve m", "python -m vllm.entrypoints.openai.api_server --model m", "docker run v"]
)
def test_each_way_of_writing_the_option_says_the_same(start: str, option: str) -> None:
    found = read(f"{start} {option} --seed 1")
    assert (found.primary.capacity, [tier.name for tier in found.tiers]) == (4096, ["1:fs"])


@pytest.mark.parametrize(
    ("options", "blocks"),
    [
        ("--kv-offloading-size 8", 4096),
        ("--kv-offloading-size 0.5", 256),
        ("""--kv-offloading-size 4 --kv-transfer-config '{"kv_connector_extra_config":{"block_size":16}}'""", 2048),
    ],
)  # fmt: skip
def test_the_shortcut_sets_connector_role_and_bytes(options: str, blocks: int) -> None:
    found = read(f"vllm serve m {options}")
    assert (found.primary.capacity, found.tiers) == (blocks, ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm serve m --port 1", "offloads nothing"),
        ("vllm serve m --kv-offloading-size 8 --kv-offloading-backend lmcache", "no connector in it is Offloading"),
        ("VLLM_USE_SIMPLE_KV_OFFLOAD=1 vllm serve m --kv-offloading-size 8", "no connector in it is Offloading"),
        ("vllm serve m --kv-offloading-size many", 'expected a number of GiB, found "many"'),
        ("vllm serve m --kv-transfer-config", "--kv-transfer-config: has no value"),
        ("vllm serve m --kv-transfer-confg '{}'", "unrecognized arguments: --kv-transfer-confg"),
        ("vllm serve m --block-size 0 --kv-offloading-size 8", "expected a number from 1"),
        ("vllm serve a --kv-offloading-size 8; vllm serve b --kv-offloading-size 4", "2 vllm serve commands"),
        ("vllm serve m --kv-transfer-config '{", "a quote has no partner"),
        ("vllm serve m --kv-transfer-config '[]'", "expected a KVTransferConfig, found a list"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read(text)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"vllm serve m --kv-transfer-config '{{}}' --kv-transfer-config '{CONFIG}'", "stands twice"),
        (f"vllm serve m --config f.yaml --kv-transfer-config '{CONFIG}'", "the file is not read"),
        (f"vllm serve m --kv-offloading-size 8 --kv-transfer-config '{CONFIG}'", "--kv-offloading-size replaces it"),
        ("vllm serve m --kv-transfer-config '" + CONFIG.replace("{", '{"kv_role":"kv_producer",', 1) + "'", "last"),
    ],
)
def test_what_is_replaced_is_a_warning(text: str, warning: str) -> None:
    assert any(warning in found for found in read(text).warnings)


def test_options_with_dots_replace_the_whole_of_the_json() -> None:
    text = f"vllm serve m --kv-transfer-config '{CONFIG}' --kv-transfer-config.kv_role kv_both"
    with pytest.raises(InputError, match="kv_connector is not set"):
        read(text)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('"kv_both",', '"kv_both"', 'pasted:7:7: --kv-transfer-config is not JSON: expected ","'),
        ('"kv_role":', '"kv_role"::', 'pasted:6:56: --kv-transfer-config is not JSON: expected a value, found ":"'),
    ],
)
def test_a_fault_in_its_json_is_placed_in_the_command(right: str, wrong: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read(PASTED.replace(right, wrong))
    assert str(raised.value).startswith(said)


def test_a_fault_in_its_json_in_double_quotes_has_the_column_of_the_json() -> None:
    with pytest.raises(InputError, match=r"--kv-transfer-config: not JSON: .* \(column 6 of its text\)"):
        read('vllm serve m --kv-transfer-config "{\\"a\\" 1}"')


def test_other_commands_around_it_and_hashes_within_words_do_no_harm() -> None:
    text = f"cd /srv && vllm serve m --api-key a#b --kv-transfer-config '{CONFIG}' > log 2>&1; echo done  # isn't it"
    assert read(text).primary.capacity == 4096


def test_a_refusal_of_a_value_is_placed_in_the_command() -> None:
    with pytest.raises(InputError) as raised:
        read(PASTED.replace('"LOCAL"', '"local"'))
    line = PASTED.splitlines()[(raised.value.line or 0) - 1]
    assert line[(raised.value.column or 0) - 1 :].startswith('"LOCAL"')


def test_a_shells_variable_is_not_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_BYTES", "8589934592")
    with pytest.raises(InputError) as raised:
        read(PASTED.replace("8589934592", "$CPU_BYTES"))
    assert "No variable of the shell is expanded" in (raised.value.hint or "")


def test_nothing_in_it_is_executed(tmp_path: Path) -> None:
    read(f"vllm serve $(touch {tmp_path}/ran) `touch {tmp_path}/ran` --kv-offloading-size 8; touch {tmp_path}/ran")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("vllm serve m", True),
        ("/opt/bin/vllm serve m", True),
        ("--kv-transfer-config '{}'", True),
        ('{"kv_connector": "vllm serve"}', False),
        ("vllm.json", False),
        ("configs/vllm serve.toml", False),
        ("tiers:\n- name: vllm\n", False),
    ],
)
def test_a_command_is_told_from_files_names_and_files(text: str, is_one: bool) -> None:
    assert looks_like_command(text) is is_one


def test_each_form_is_found_by_its_content(tmp_path: Path) -> None:
    forms = {
        "serve": PASTED,
        "transfer": CONFIG,
        "extra.json": json.dumps(extra(FS)),
        "file.yaml": f"kv-transfer-config: {CONFIG}\nblock-size: 32\n",
        "text.yaml": f"kv_transfer_config: '{CONFIG}'\n",
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        for given_as in (str(tmp_path / name), f"@{tmp_path / name}"):
            found = load_any_topology(given_as, SIZES)
            assert isinstance(found, VllmTopology)
            assert [tier.name for tier in found.tiers] == ["1:fs"]
    assert isinstance(load_any_topology(PASTED), VllmTopology)
    assert isinstance(load_any_topology(CONFIG), VllmTopology)


@given(
    st.text(max_size=60),
    st.sampled_from(["vllm serve m ", "--kv-transfer-config ", "vllm serve --kv-transfer-config='"]),
)
def test_any_text_behind_a_command_is_read_or_refused(text: str, start: str) -> None:
    with contextlib.suppress(InputError):
        read_any_topology(start + text, "f")


def test_a_command_line_longer_than_any_is_refused() -> None:
    with pytest.raises(InputError, match="longer than 256 KiB"):
        read_any_topology("vllm serve " + "a " * 200_000, "f")


@pytest.mark.parametrize("depth", [50, 5_000, 100_000])
def test_deep_nesting_is_refused_or_read(depth: int) -> None:
    nested = f'{{"cpu_bytes_to_use": {"[" * depth}{"]" * depth}}}'
    with pytest.raises(InputError):
        load_any_topology(nested, SIZES)


@pytest.mark.parametrize("value", ["1e400", "NaN", "-1", "9" * 5000, '"\\ud800"', "[1]", "{}", "true", "1" + "0" * 30])
def test_hostile_sizes_are_refused(value: str) -> None:
    with pytest.raises(InputError):
        load_any_topology(f'{{"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": {value}}}', SIZES)
