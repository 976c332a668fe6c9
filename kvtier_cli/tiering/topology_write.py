"""A topology as JSON values or as TOML text; read again, either gives the same topology (but for its name)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kvtier_cli.tiering.topology import AnyTopology, BlockSpec, TierSpec, Topology
from kvtier_cli.units import exact_rate, exact_size, exact_time

_ALWAYS = ("name", "medium", "locality", "capacity")


def topology_as_json(topology: AnyTopology) -> dict[str, object]:
    """The topology with every field, in the order of the documentation. What is not set, limited or known is None."""
    return {
        "version": 1,
        "block": {"tokens": topology.block.tokens, "bytes_per_token": topology.block.bytes_per_token},
        "primary": _primary(topology),
        "tiers": [tier_fields(tier) for tier in topology.tiers],
        "replay": _replay(topology),
    }


def topology_as_toml(topology: Topology) -> str:
    """The topology as a `kvtier.toml`. Of a tier's fields, those at their defaults are left out."""
    lines = ["version = 1"]
    defaults = tier_fields(TierSpec(""))
    if topology.block != BlockSpec():
        size = topology.block.bytes_per_token
        bytes_per_token = None if size is None else exact_size(size)
        lines += _table("[block]", {"tokens": topology.block.tokens, "bytes_per_token": bytes_per_token})
    lines += _table("[primary]", _primary(topology))
    for tier in topology.tiers:
        fields = {key: value for key, value in tier_fields(tier).items() if key in _ALWAYS or value != defaults[key]}
        lines += _table("[[tiers]]", fields)
    lines += _table("[replay]", _replay(topology))
    return "\n".join(lines) + "\n"


def _primary(topology: AnyTopology) -> dict[str, object]:
    return {"capacity": topology.primary.capacity, "policy": topology.primary.policy}


def _replay(topology: AnyTopology) -> dict[str, object]:
    return {
        "max_wait_steps": topology.replay.max_wait_steps,
        "store_batch_blocks": topology.replay.store_batch_blocks,
        "tail": topology.replay.tail,
        "identity": topology.replay.identity,
    }


def tier_fields(tier: TierSpec) -> dict[str, object]:
    """Every field of a secondary tier as a topology file states it."""
    return {
        "name": tier.name,
        "medium": tier.medium.value.lower() if tier.medium else None,
        "locality": tier.locality.value.lower() if tier.locality else None,
        "backend": tier.backend,
        "capacity": tier.capacity,
        "load_latency": tier.load_latency,
        "store_latency": tier.store_latency,
        "lookup_retry": tier.lookup_retry,
        "request_level": tier.request_level,
        "fail_loads": sorted(map(str, tier.fail_loads)),
        "fail_stores": sorted(map(str, tier.fail_stores)),
        "offline": tier.offline,
        "fail_rate": tier.fail_rate,
        "seed": tier.seed,
        "read_latency": None if tier.read_latency is None else exact_time(tier.read_latency),
        "bandwidth": None if tier.bandwidth is None else exact_rate(tier.bandwidth),
        "about": tier.about,
    }


def _table(head: str, fields: Mapping[str, object]) -> list[str]:
    return ["", head] + [f"{key} = {_value(value)}" for key, value in fields.items() if value is not None]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        # JSON's strings are TOML's, but for the one control character that JSON lets stand.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
