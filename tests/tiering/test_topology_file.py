"""Topologies as people write them: TOML, JSON, YAML, what may stand in them, and what their errors say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.block_names import check_block_name
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import (
    BUILT_IN,
    BlockSpec,
    PrimarySpec,
    ReplaySpec,
    TierSpec,
    Topology,
)
from kvtier_cli.tiering.topology_file import (
    load_topology,
    read_topology_text,
    topology_as_json,
    topology_as_toml,
    topology_from_builtins,
    topology_warnings,
)

FULL = """
version = 1
[block]
tokens = 16
bytes_per_token = "128KiB"
[primary]
capacity = "8GiB"
policy = "arc"
[[tiers]]
name = "nvme"
medium = "storage"
locality = "LOCAL"
backend = "memory"
capacity = "64k"
load_latency = 1
store_latency = 2
lookup_retry = 3
request_level = true
fail_loads = ["b1", "b1@1"]
fail_stores = ["b2"]
offline = true
fail_rate = 0.25
seed = 7
read_latency = "120us"
bandwidth = "3GB/s"
about = "a remark"
[[tiers]]
name = "peer"
[replay]
max_wait_steps = 8
store_batch_blocks = 4
tail = "drop"
identity = "id"
"""
READ = Topology(
    BlockSpec(16, 128 * 1024),
    PrimarySpec(4096, "arc"),
    (
        TierSpec(
            "nvme",
            Medium.STORAGE,
            Locality.LOCAL,
            "memory",
            64_000,
            1,
            2,
            3,
            True,
            frozenset({"b1", "b1@1"}),
            frozenset({"b2"}),
            True,
            0.25,
            7,
            0.00012,
            3e9,
            "a remark",
        ),
        TierSpec("peer"),
    ),
    ReplaySpec(8, 4, "drop", "id"),
    "kvtier.toml",
)


def refused(text: str, form: str | None = None) -> InputError:
    with pytest.raises(InputError) as raised:
        read_topology_text(text, "f", form=form)
    return raised.value


def in_tier(fields: str) -> str:
    return f'{{"tiers":[{{"name":"a"}},\n{{"name":"b",{fields}}}]}}'


class TestReading:
    def test_each_field_of_a_toml_file_is_read(self) -> None:
        assert read_topology_text(FULL, "kvtier.toml") == READ

    def test_what_is_left_out_is_at_its_default(self) -> None:
        assert topology_from_builtins({}, "x") == Topology(name="x")
        assert topology_from_builtins({"tiers": [{"name": "a"}]}, "x").tiers == (TierSpec("a"),)

    def test_null_means_not_declared_not_limited_not_known(self) -> None:
        value = {"block": {"tokens": None}, "tiers": [{"name": "a", "medium": None, "capacity": None, "about": None}]}
        assert topology_from_builtins(value, "x") == Topology(tiers=(TierSpec("a"),), name="x")

    @pytest.mark.parametrize(
        ("file_name", "text"),
        [
            ("t.toml", '[[tiers]]\nname = "a"\n'),
            ("t.json", '\ufeff{"tiers": [{"name": "a"}]}'),
            ("t.yaml", "tiers:\r\n- name: a\r\n"),
            ("t.yml", "{tiers: [{name: a}]}"),
            ("toml", 'tiers = [{name = "a"}]'),
            ("json", '  {"tiers": [{"name": "a"}]}'),
            ("yaml", "# a remark\ntiers: [{name: a}]"),
            ("json-in-a.toml", '{"tiers": [{"name": "a"}]}'),
        ],
    )
    def test_the_format_of_a_file_is_told_from_its_content(self, tmp_path: Path, file_name: str, text: str) -> None:
        file = tmp_path / file_name
        file.write_text(text, newline="")
        assert load_topology(str(file)) == Topology(tiers=(TierSpec("a"),), name=str(file))

    def test_json_may_stand_on_the_command_line_itself(self) -> None:
        assert load_topology(' {"tiers": [{"name": "a"}]}') == Topology(tiers=(TierSpec("a"),), name="inline topology")

    def test_every_recorded_topology_is_read(self, recordings: Path) -> None:
        found = [json.loads(file.read_text())["topology"] for file in recordings.glob("scenarios*/*.json")]
        for file in recordings.glob("replay/*.json"):
            found += [run["topology"] for run in json.loads(file.read_text())["runs"].values()]
        assert len(found) > 400
        for value in found:
            topology = topology_from_builtins(value, "recorded")
            assert topology.primary.capacity == value["primary"]["capacity"]
            assert [tier.name for tier in topology.tiers] == [tier["name"] for tier in value["tiers"]]
            for tier, recorded in zip(topology.tiers, value["tiers"], strict=True):
                assert (tier.medium.value if tier.medium else "") == recorded.get("medium", "").upper()
                assert (tier.locality.value if tier.locality else "") == recorded.get("locality", "").upper()
                assert (tier.capacity, tier.fail_loads) == (
                    recorded.get("capacity"),
                    set(recorded.get("fail_loads", [])),
                )


class TestCapacities:
    @pytest.mark.parametrize(
        ("capacity", "blocks"), [(0, 0), (10_000, 10_000), ("10k", 10_000), ("2MiB", 1), ("5MiB", 2), ("0B", 0)]
    )
    def test_a_capacity_is_blocks_or_a_size_in_whole_blocks(self, capacity: object, blocks: int) -> None:
        value = {"block": {"tokens": 16, "bytes_per_token": "128KiB"}, "primary": {"capacity": capacity}}
        assert topology_from_builtins(value, "x").primary.capacity == blocks

    @pytest.mark.parametrize(
        ("block", "missing"),
        [
            ({}, "block.tokens and block.bytes_per_token are not given"),
            ({"tokens": 16}, "block.bytes_per_token is not given"),
            ({"bytes_per_token": 1}, "block.tokens is not given"),
        ],
    )
    def test_a_size_without_the_size_of_a_block_shows_what_is_missing(self, block: object, missing: str) -> None:
        with pytest.raises(InputError) as raised:
            topology_from_builtins({"block": block, "primary": {"capacity": "8GiB"}}, "x")
        assert str(raised.value) == (
            f'primary.capacity: blocks = "8GiB" / (block.tokens x block.bytes_per_token), but {missing}'
        )

    def test_a_size_below_one_block_shows_the_arithmetic(self) -> None:
        value = {
            "block": {"tokens": 16, "bytes_per_token": "128KiB"},
            "tiers": [{"name": "a", "capacity": "1MiB"}],
        }
        with pytest.raises(InputError) as raised:
            topology_from_builtins(value, "x")
        assert str(raised.value) == (
            'tiers[0].capacity: "1MiB" (1,048,576 bytes) is less than one block: '
            "16 tokens x 131,072 bytes = 2,097,152 bytes"
        )


class TestFieldsThatAreWrong:
    @pytest.mark.parametrize(
        ("text", "path", "said", "hint"),
        [
            (in_tier('"capasity":^1'), "tiers[1].capasity", "unknown field", 'did you mean "capacity"?'),
            ('{"teirs":^[]}', "teirs", "unknown field", 'did you mean "tiers"?'),
            ('{"block":{"x":^1}}', "block.x", "unknown field", "known are tokens, bytes_per_token"),
            ('{"primary":{"policy":^"lfu"}}', "primary.policy", 'unknown policy "lfu"', 'did you mean "lru"?'),
            ('{"primary":{"policy":^"ARC"}}', "primary.policy", 'unknown policy "ARC"', 'did you mean "arc"?'),
            (in_tier('"medium":^"storge"'), "tiers[1].medium", 'unknown medium "storge"', 'did you mean "storage"?'),
            (in_tier('"medium":^"nvme"'), "tiers[1].medium", 'unknown medium "nvme"', 'did you mean "storage"?'),
            (in_tier('"medium":^5'), "tiers[1].medium", "expected cpu or storage, found 5", None),
            (
                in_tier('"locality":^"x"'),
                "tiers[1].locality",
                'unknown locality "x"',
                "known are local, remote; left out it is not declared",
            ),
            (in_tier('"backend":^"disk"'), "tiers[1].backend", 'unknown backend "disk"', 'did you mean "diskcache"?'),
            ('{"replay":{"tail":^"kep"}}', "replay.tail", 'unknown tail "kep"', 'did you mean "keep"?'),
            ('{"tiers":[{"name":^"cpu"}]}', "tiers[0].name", "is the primary's name", None),
            ('{"tiers":[{"name":^"primary"}]}', "tiers[0].name", "is the primary's name", None),
            ('{"tiers":[{"name":^" "}]}', "tiers[0].name", "may not be empty", None),
            ('{"tiers":[{"name":^"\\ud800"}]}', "tiers[0].name", "half a surrogate pair", None),
            ('{"tiers":[{"name":"a"},{"name":^"a"}]}', "tiers[1].name", "is the name of tiers[0] already", None),
            ('{"tiers":[^{}]}', "tiers[0]", "has no name", 'each tier needs one, such as name = "nvme"'),
            ('{"tiers":[^1]}', "tiers[0]", "expected a table of fields, found 1", None),
            ('{"tiers":^{}}', "tiers", "expected a list of tiers, found {}", None),
            ('{"primary":^null}', "primary", "expected a table of fields, found null", None),
            ('{"version":^2}', "version", "version 2 of a topology is not known, only 1 is", None),
            ('{"version":^true}', "version", "expected 1, found true", None),
            ('{"block":{"tokens":^0}}', "block.tokens", "a number from 1, found 0", None),
            ('{"block":{"bytes_per_token":^"0"}}', "block.bytes_per_token", 'found "0"', None),
            (
                in_tier('"load_latency":^-1'),
                "tiers[1].load_latency",
                "expected a number of steps from 0, found -1",
                None,
            ),
            (in_tier('"capacity":^-1'), "tiers[1].capacity", 'or a size such as "8GiB", found -1', None),
            (in_tier('"capacity":^1.5'), "tiers[1].capacity", "found 1.5", None),
            (in_tier('"capacity":^NaN'), "tiers[1].capacity", "found NaN", None),
            (in_tier('"capacity":^true'), "tiers[1].capacity", "found true", None),
            (in_tier('"capacity":^"8G"'), "tiers[1].capacity", 'found "8G"', None),
            (in_tier(f'"capacity":^{10**30}'), "tiers[1].capacity", "found 1000", None),
            (in_tier('"fail_rate":^NaN'), "tiers[1].fail_rate", "expected a share from 0 to 1, found NaN", None),
            (in_tier('"fail_rate":^1.01'), "tiers[1].fail_rate", "expected a share from 0 to 1", None),
            (in_tier('"offline":^1'), "tiers[1].offline", "expected true or false, found 1", None),
            (in_tier('"read_latency":^5'), "tiers[1].read_latency", 'expected a time such as "120us", found 5', None),
            (in_tier('"read_latency":^"5"'), "tiers[1].read_latency", "no unit of time", None),
            (in_tier('"bandwidth":^"3GB"'), "tiers[1].bandwidth", "expected a rate such as 3GB/s", None),
            (
                in_tier('"fail_loads":["x",^5]'),
                "tiers[1].fail_loads[1]",
                "expected a block's name, found 5",
                "names are texts: quote it",
            ),
            (in_tier('"fail_stores":^"x"'), "tiers[1].fail_stores", 'expected a list of blocks, found "x"', None),
        ],
    )
    def test_an_error_says_where_what_was_found_and_what_was_meant(
        self, text: str, path: str, said: str, hint: str | None
    ) -> None:
        before, after = text.split("^")
        error = refused(before + after)
        assert (error.line, error.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
        assert error.path == path
        assert said in error.message
        assert error.hint == hint

    def test_in_toml_the_path_alone_says_where(self) -> None:
        assert str(refused('[[tiers]]\nname = "a"\ncapacity = nan')).startswith("f: tiers[0].capacity: expected")
        assert (
            str(refused("[[tiers]]\nname = 2024-01-01"))
            == "f: tiers[0].name: expected a name in quotes, found 2024-01-01"
        )

    def test_yaml_words_that_look_like_names_or_switches_are_not_converted(self) -> None:
        assert str(refused("tiers:\n- name: a\n  offline: yes\n")) == (
            'f:3:12: tiers[0].offline: expected true or false, found "yes"'
        )
        assert refused("tiers: [{name: a, fail_loads: [0123]}]").hint == "names are texts: quote it"
        tier = read_topology_text("tiers: [{name: a, fail_loads: [12:30, 2024-01-01]}]", "f").tiers[0]
        assert tier.fail_loads == {"12:30", "2024-01-01"}

    @pytest.mark.parametrize("text", ["1: x", "primary: {1: x}", "tiers: [{null: x}]", "true: x"])
    def test_keys_that_are_no_texts_are_unknown_fields(self, text: str) -> None:
        assert refused(text).message == "unknown field"

    @pytest.mark.parametrize("text", ['"a"', "just text", "- a", "5"])
    def test_what_is_no_table_is_no_topology(self, text: str) -> None:
        assert "expected a topology (block, primary, tiers, replay)" in str(refused(text, "yaml"))

    @pytest.mark.parametrize("key", ["cpu_bytes_to_use", "secondary_tiers"])
    def test_vllms_own_configuration_is_recognised(self, key: str) -> None:
        assert refused(json.dumps({key: []})).message.startswith("vLLM refuses it")

    def test_vllms_own_configuration_inside_a_larger_file_is_refused(self) -> None:
        with pytest.raises(InputError, match="expected a topology of kvtier's"):
            topology_from_builtins({"cpu_bytes_to_use": 1}, "x", at=("topology",))

    def test_an_error_inside_a_larger_file_has_the_whole_path(self) -> None:
        with pytest.raises(InputError) as raised:
            topology_from_builtins({"tiers": [{"name": "cpu"}]}, "x", file="f.yaml", at=("topology",))
        assert str(raised.value).startswith("f.yaml: topology.tiers[0].name: ")


class TestTextThatIsWrong:
    @pytest.mark.parametrize(
        ("text", "form", "fault"),
        [
            ('{"tiers":[{"name":"a"}', None, 'f:1:23: not JSON: expected "," or the closing bracket'),
            ('{"tiers":[\n{"name":"a","name":"b"}]}', None, 'f:2:13: the key "name" stands twice in one object'),
            ("[primary]\ncapacity = 5\npolicy = lru\n", None, "f:3:10: not TOML: invalid value"),
            ("[primary\n", None, "f:1:9: not TOML: "),
            ("a = 1\na = 2", None, "f:2: not TOML: cannot overwrite a value"),
            ("primary: {capacity: 4\n", None, "f:2:1: not YAML: expected ',' or '}'"),
            ("primary: 1\nprimary: 2", None, 'f:2:1: not YAML: the key "primary" stands twice'),
            ("tiers: []", "toml", "f:1:6: not TOML: "),
            ("[]", "json", "f:1:1: expected a topology"),
            ("tiers", "json", "f:1:1: not JSON: "),
            ("", None, "f: is empty, expected a topology"),
            (" \n", "toml", "f: is empty, expected a topology"),
            ("x = " + "[" * 100_000, None, "f: not TOML: nested too deeply"),
            ('{"a":' * 100_000, None, "f: brackets are nested too deeply"),
            ("[primary]\ncapacity = " + "9" * 5000, None, "f: holds a number that cannot be read"),
        ],
    )  # fmt: skip
    def test_a_syntax_error_has_file_line_and_column(self, text: str, form: str | None, fault: str) -> None:
        assert str(refused(text, form)).startswith(fault)

    def test_a_file_that_is_none_or_too_long_is_told_plainly(self, tmp_path: Path) -> None:
        with (tmp_path / "long.toml").open("wb") as file:
            file.truncate(5 * 1024 * 1024)
        for path, said in (
            (tmp_path, "is a folder"),
            (tmp_path / "nothing.toml", "no such file"),
            (tmp_path / "long.toml", "is longer than 4 MiB"),
        ):
            with pytest.raises(InputError, match=said) as raised:
                load_topology(str(path))
            assert str(path) in str(raised.value)
        with pytest.raises(InputError, match="there is no topology"):
            load_topology("")


class TestWriting:
    @pytest.mark.parametrize("topology", [BUILT_IN, READ, Topology()])
    def test_what_is_written_reads_back_as_the_same_topology(self, topology: Topology) -> None:
        assert read_topology_text(topology_as_toml(topology), topology.name) == topology
        assert read_topology_text(json.dumps(topology_as_json(topology)), topology.name) == topology

    @given(
        name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name.strip()),
        rate=st.floats(0, 1),
        seconds=st.floats(1e-9, 1e6),
        size=st.integers(1, 2**40),
    )
    def test_any_name_and_number_reads_back(self, name: str, rate: float, seconds: float, size: int) -> None:
        tier = TierSpec(f"n{name}", fail_rate=rate, read_latency=seconds, bandwidth=seconds, about=name)
        topology = Topology(BlockSpec(None, size), tiers=(tier,), name="x")
        assert read_topology_text(topology_as_toml(topology), "x", form="toml") == topology
        assert read_topology_text(json.dumps(topology_as_json(topology)), "x") == topology

    def test_toml_leaves_out_a_tiers_defaults(self) -> None:
        assert topology_as_toml(BUILT_IN) == (
            'version = 1\n\n[primary]\ncapacity = 10000\npolicy = "lru"\n\n'
            '[[tiers]]\nname = "nvme"\nmedium = "storage"\nlocality = "local"\ncapacity = 40000\n\n'
            '[[tiers]]\nname = "s3"\nmedium = "storage"\nlocality = "remote"\n\n'
            '[replay]\nmax_wait_steps = 16\nstore_batch_blocks = 0\ntail = "keep"\nidentity = "chain"\n'
        )


class TestWarnings:
    @pytest.mark.parametrize(
        ("tier", "steps", "said"),
        [
            (TierSpec("a", lookup_retry=17), 16, "max_wait_steps 16: every request with a cold block gives up"),
            (TierSpec("a", lookup_retry=16), 16, "max_wait_steps 16: every request that finds a block there gives up"),
            (TierSpec("a", lookup_retry=10, load_latency=7), 16, "takes 17 steps to load"),
            (TierSpec("a", load_latency=17), 16, "takes 17 steps to load"),
            (TierSpec("a"), 0, "takes 1 step to load"),
            (TierSpec("a", capacity=0), 16, "keeps nothing"),
        ],
    )
    def test_a_tier_that_is_waited_for_in_vain_or_keeps_nothing_is_told(
        self, tier: TierSpec, steps: int, said: str
    ) -> None:
        (warning,) = topology_warnings(Topology(tiers=(tier,), replay=ReplaySpec(max_wait_steps=steps)))
        assert said in warning

    def test_a_tier_that_answers_in_time_is_not(self) -> None:
        slow = TierSpec("a", lookup_retry=15, load_latency=1)
        assert topology_warnings(replace(BUILT_IN, tiers=(*BUILT_IN.tiers, slow))) == []

    def test_a_primary_without_a_slot_is_told(self) -> None:
        assert len(topology_warnings(Topology(primary=PrimarySpec(0)))) == 1


class TestBlockNames:
    @pytest.mark.parametrize("name", ["b1", "b1@1", "0123", "12:30", "block 7", "\u00e9"])
    def test_a_name_may_carry_a_group(self, name: str) -> None:
        assert check_block_name(name) == name

    @pytest.mark.parametrize(
        "name", ["", " b", "b@", "@1", "b@0", "b@01", "b@x", "b@1@2", "b~2", "b\n", "b\ud800", 1, None]
    )
    def test_other_uses_of_the_marks_and_what_is_no_text_are_refused(self, name: object) -> None:
        with pytest.raises(InputError):
            check_block_name(name)


@pytest.mark.parametrize(
    "text", [r'{"primary": "\ud800"}', r'{"primary": {"policy": "\ud800"}}', r'{"tiers": "\udfff"}']
)
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(text: str) -> None:
    with pytest.raises(InputError):
        read_topology_text(text, "tiers.json")
