"""What comes of a --kv-transfer-config: the tiers vLLM 0.33.0 would have, or its reason to refuse."""

from __future__ import annotations

from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.vllm.capacity import Sizes
from tests.tiering.vllm.configs import DETECTOR, FS, GIB, OBJ, P2P, extra, imported, multi, transfer

NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
OWN = {"type": "RedisTier", "module_path": "ours.redis", "url": "redis://r", "password": "hunter2"}


def _declared(value: object) -> list[str]:
    found = imported(value)
    return [
        " ".join([tier.name, *(side.value.lower() for side in (tier.medium, tier.locality) if side)])
        for tier in found.tiers
    ]


@pytest.mark.parametrize(
    ("config", "tiers"),
    [
        (transfer(extra({**FS, "locality": "LOCAL"})), ["1:fs storage local"]),
        (transfer(extra(FS, OBJ | {"locality": "REMOTE"})), ["1:fs storage", "2:obj storage remote"]),
        (transfer(extra(P2P, {"type": "example"})), ["1:p2p", "2:example cpu"]),
        (transfer(extra(FS, FS)), ["1:fs storage", "2:fs storage"]),
        (multi(NIXL, transfer(extra(FS))), ["1:fs storage"]),
        (multi(multi(transfer(extra(FS)))), ["1:fs storage"]),
        (transfer(extra(OWN)), ["1:RedisTier"]),
        (transfer(extra(FS, blocks_per_chunk=4)), ["1:fs storage"]),
        (transfer(extra({**FS, "backpressure": DETECTOR})), ["1:fs storage"]),
        (
            transfer(extra({"type": "kvcr", "router_capabilities": ["a"], "control_ports": [5000]})),
            ["1:kvcr"],
        ),
        (transfer({"cpu_bytes_to_use": 8 * GIB}), []),
        (extra(FS, eviction_policy="arc"), ["1:fs storage"]),
    ],
    ids=[
        "fs", "obj", "p2p and example", "two of a type", "multi", "multi in multi", "own class", "blocks_per_chunk",
        "backpressure", "kvcr", "one tier only", "bare extra config",
    ],
)  # fmt: skip
def test_tiers_are_named_and_declared_as_in_vllm(config: object, tiers: list[str]) -> None:
    assert _declared(config) == tiers


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (extra({**FS, "locality": "local"}), 'secondary_tiers[0].locality: vLLM refuses it: "local" is not a valid'),
        (extra(FS, cpu_bytes_to_use=None), "cpu_bytes_to_use must be specified"),
        (extra(FS, cpu_bytes_to_use=0), "cpu_bytes_to_use must be specified"),
        (extra(FS, cpu_bytes_to_use="8GiB"), 'expected a number of bytes, found "8GiB"'),
        (extra(FS, cpu_bytes_to_use=4096), "4,096 bytes are less than one block of 2,097,152"),
        (extra(FS, store_threshold=2), "store_threshold is not supported for TieringOffloadingSpec"),
        (extra(FS, eviction_policy="LRU"), 'Unknown cache policy: "LRU"'),
        (extra(FS, block_size=20), "must be a multiple of the GPU KV cache block size (16 tokens)"),
        (extra(FS, block_size=32, blocks_per_chunk=2), "Specify only one of"),
        (extra(FS, blocks_per_chunk=0), "'blocks_per_chunk' must be greater than 0"),
        (extra(FS, spec_name="Tiering"), 'Unsupported spec type: "Tiering"'),
        (extra(secondary_tiers={}), "secondary_tiers must be a list"),
        (extra({"root_dir": "/mnt/kv"}), "Secondary tier configuration must include 'type'"),
        (extra({"type": "nfs"}), 'Unknown secondary tier type: "nfs"'),
        (extra({"type": "fs"}), "missing 1 required positional argument: 'root_dir'"),
        (extra({**FS, "medium": "STORAGE"}), 'unexpected keyword argument "medium"'),
        (extra({**FS, "tier_type": "x"}), "multiple values for keyword argument 'tier_type'"),
        (extra({"type": "obj", "store_config": {"bucket": "b"}}), "missing 1 required positional argument: 'endpoint"),
        (extra({**FS, "backpressure": {}}), "backpressure config must include 'backpressure_cls'"),
        (extra({**FS, "backpressure": None}), "backpressure config must include 'backpressure_cls'"),
        (extra({**FS, "backpressure": {**DETECTOR, "alpha": 2}}), "alpha must be in (0, 1], got 2"),
        (extra({**FS, "backpressure": {**DETECTOR, "low_water_s": 0.02}}), "must be <= high_water_s (0.01)"),
        (extra({**P2P, "backpressure": DETECTOR}), "Backpressure is not supported for the P2P secondary tier"),
        (extra(FS, P2P, backpressure=DETECTOR), "Backpressure is not supported for the P2P secondary tier"),
        (extra({**P2P, "unbound_store_timeout_s": 0}), "must be a positive number, got 0"),
        (extra({"type": "kvcr", "control_ports": [5000]}), "requires router capabilities"),
        (transfer(extra(FS), kv_role=None), "Please specify kv_role when kv_connector is set"),
        (transfer(extra(FS), kv_role="both"), 'Unsupported kv_role: "both"'),
        (transfer(extra(FS), kv_rolle="x"), "kv_rolle: vLLM refuses it: Unexpected keyword argument"),
        (transfer(extra(FS), kv_connector="OffloadConnector"), 'Unsupported connector type: "OffloadConnector"'),
        (multi({**transfer(extra(FS)), "engine_id": "e"}), "multiple values for keyword argument 'engine_id'"),
    ],
)  # fmt: skip
def test_what_vllm_refuses_is_refused_with_its_reason(config: object, reason: str) -> None:
    with pytest.raises(InputError) as raised:
        imported(config)
    assert reason in str(raised.value)
    assert "vLLM refuses it" in str(raised.value)


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        (extra({**P2P, "locality": "LOCAL"}), "secondary_tiers[0].locality: vLLM ignores it"),
        (extra({**P2P, "prot": 5}), 'secondary_tiers[0].prot: vLLM ignores it: no such key, did you mean "port"?'),
        (extra(FS, evicton_policy="arc"), 'no such key, did you mean "eviction_policy"?'),
        (extra(FS, spec_name=None), "secondary_tiers: vLLM ignores it: CPUOffloadingSpec, which holds without"),
        (extra({**FS, "module_path": "x"}), "module_path: vLLM ignores it: fs is a type of vLLM's own"),
        (extra(FS, max_tracker_size=5), "max_tracker_size: vLLM ignores it"),
        (extra({**FS, "root_dir": None}), "root_dir: null is no path"),
        (extra(), "there is no secondary tier"),
        (multi(NIXL, transfer(extra(FS))), "connectors[0]: NixlConnector is asked for blocks in its turn"),
        (multi(transfer(extra(FS)), transfer(extra(OBJ))), "connectors[1]: another OffloadingConnector, not read"),
        (
            transfer({"connectors": [transfer(extra(FS))], "cpu_bytes_to_use": 1}, kv_connector="MultiConnector"),
            "cpu_bytes_to_use: vLLM ignores it",
        ),
    ],
)  # fmt: skip
def test_what_vllm_swallows_without_a_word_is_a_warning(config: object, warning: str) -> None:
    assert any(warning in found for found in imported(config).warnings)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (extra(FS, eviction_policy="S3Fifo", cache_policy_module_path="ours"), "an eviction policy of one's own"),
        (extra(FS, spec_name="Ours", spec_module_path="ours"), "a spec of one's own"),
        (transfer(extra(FS), kv_connector="Ours", kv_connector_module_path="ours"), "a connector of one's own"),
        ({"cpu_bytes_to_use": GIB, "store_threshold": 2}, "keeps blocks back"),
    ],
)
def test_what_vllm_takes_and_kvtier_cannot_stand_for_is_an_error_of_its_own(config: object, said: str) -> None:
    with pytest.raises(InputError, match="which is not modelled") as raised:
        imported(config)
    assert said in raised.value.message
    assert "refuses" not in raised.value.message


@pytest.mark.parametrize("config", [NIXL, multi(NIXL), {"kv_connector_extra_config": extra(FS)}])
def test_a_configuration_that_offloads_nothing_has_no_tiers_to_read(config: object) -> None:
    with pytest.raises(InputError, match=r"OffloadingConnector|offloads nothing"):
        imported(config)


def _everything_said(config: object) -> str:
    found = imported(config)
    return " ".join([*found.warnings, *found.notes, *(tier.about or "" for tier in found.tiers)])


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        (
            transfer(extra(FS), engine_id="e", kv_port=1, kv_buffer_device="cuda", kv_load_failure_policy="recompute"),
            ["engine_id", "kv_port", "kv_buffer_device", "kv_load_failure_policy"],
        ),
        (
            extra(
                {**FS, "n_read_threads": 8, "enable_kv_events": True, "backpressure": DETECTOR},
                tier_poll_interval_s=0.1,
                offload_prompt_only=False,
                self_describing_kv_events=True,
                canonical_layout=True,
                sync_load_budget_bytes=5,
            ),
            [
                "root_dir /mnt/kv", "n_read_threads 8", "enable_kv_events true", "backpressure", "tier_poll_interval_s",
                "offload_prompt_only", "self_describing_kv_events", "canonical_layout", "sync_load_budget_bytes",
            ],
        ),
        (extra(OBJ | {"prefix": "p", "io_threads": 2}), ["bucket kv", "http://s3:9000", "prefix p", "io_threads 2"]),
        (extra(OWN), ["module_path ours.redis", "url redis://r", "password set", "medium and locality"]),
    ],
)  # fmt: skip
def test_no_key_is_dropped_without_a_word(config: object, keys: list[str]) -> None:
    said = _everything_said(config)
    assert [key for key in keys if key not in said] == []


@pytest.mark.parametrize("key", ["access_key", "secret_key", "session_token"])
def test_credentials_are_never_repeated(key: str) -> None:
    store: dict[str, Any] = {**OBJ["store_config"], key: "hunter2"}
    found = _everything_said(extra({**OBJ, "store_config": store}, OWN))
    assert f"{key} set" in found
    assert "hunter2" not in found
    with pytest.raises(InputError) as raised:
        imported(extra({**OBJ, "store_config": [store]}))
    assert "hunter2" not in str(raised.value)


def test_without_the_bytes_of_a_token_the_tiers_are_known_and_the_blocks_are_asked_for() -> None:
    found = imported(transfer(extra(FS)), Sizes())
    assert [tier.name for tier in found.tiers] == ["1:fs"]
    assert found.primary.capacity is None
    with pytest.raises(InputError) as raised:
        found.topology()
    assert all(way in (raised.value.hint or "") for way in ("--bytes-per-token", "--model-config", "--metrics"))
