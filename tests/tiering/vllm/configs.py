"""Configurations of vLLM for tests: whole ones around the part that a test is about."""

from __future__ import annotations

from typing import Any

from kvtier_cli.tiering.vllm.capacity import Sizes
from kvtier_cli.tiering.vllm.imported import VllmTopology, import_value

GIB = 1 << 30
SIZES = Sizes(bytes_per_token=128 * 1024)
FS: dict[str, Any] = {"type": "fs", "root_dir": "/mnt/kv"}
OBJ: dict[str, Any] = {"type": "obj", "store_config": {"bucket": "kv", "endpoint_override": "http://s3:9000"}}
P2P: dict[str, Any] = {"type": "p2p"}
DETECTOR: dict[str, Any] = {"backpressure_cls": "EMABackpressureDetector"}


def extra(*tiers: object, **changes: object) -> dict[str, Any]:
    """A kv_connector_extra_config with those secondary tiers; a change to None leaves the key out."""
    whole = {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 8 * GIB, "secondary_tiers": list(tiers)}
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


def transfer(inner: object, **changes: object) -> dict[str, Any]:
    """A KVTransferConfig of the OffloadingConnector; a change to None leaves the key out."""
    whole = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": inner}
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


def multi(*children: object) -> dict[str, Any]:
    """A MultiConnector over those connectors."""
    return transfer({"connectors": list(children)}, kv_connector="MultiConnector")


def imported(value: object, sizes: Sizes = SIZES) -> VllmTopology:
    """What `value` is read as."""
    return import_value(value, "vllm.json", sizes)
