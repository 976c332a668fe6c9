"""Random topologies and small random traces, with everything in them that a replay can come upon."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology

FILTERS = (None, [], [{"medium": "storage"}], [{"locality": "remote"}], [{"medium": "nonsense"}])

tiers = st.builds(
    TierSpec,
    name=st.just("t"),
    medium=st.sampled_from([None, *Medium]),
    locality=st.sampled_from([None, *Locality]),
    capacity=st.sampled_from([None, 0, 3, 12]),
    load_latency=st.integers(0, 4),
    store_latency=st.integers(0, 4),
    lookup_retry=st.integers(0, 2),
    request_level=st.booleans(),
    fail_loads=st.sampled_from([frozenset(), frozenset({"3", "8"})]),
    fail_stores=st.sampled_from([frozenset(), frozenset({"5"})]),
    fail_rate=st.sampled_from([0.0, 0.3]),
)
topologies = st.builds(
    lambda capacity, policy, tiers, wait, batch, identity: Topology(
        primary=PrimarySpec(capacity, policy),
        tiers=tuple(replace(tier, name=f"t{index}") for index, tier in enumerate(tiers)),
        replay=ReplaySpec(max_wait_steps=wait, store_batch_blocks=batch, identity=identity),
    ),
    st.integers(1, 12),
    st.sampled_from(["lru", "arc"]),
    st.lists(tiers, max_size=3),
    st.integers(0, 4),
    st.sampled_from([0, 2]),
    st.sampled_from(["chain", "id"]),
)


def trace_of(seed: int, requests: int) -> str:
    """Prompts that begin like earlier ones, some under filters and with caps of their own."""
    draw = random.Random(seed)
    prompts: list[list[int]] = [[1]]
    lines = []
    for index in range(requests):
        head = draw.choice(prompts)
        prompt = head[: draw.randrange(len(head) + 1)] + [draw.randrange(12) for _ in range(draw.randrange(5))]
        prompts.append(prompt)
        line: dict[str, Any] = {"timestamp": index, "input_length": 16 * len(prompt), "hash_ids": prompt}
        line["output_length"] = 1
        params: dict[str, Any] = {}
        if (given := draw.choice(FILTERS)) is not None:
            params["kv_load_tiers"] = given
        for cap in ("max_load_tokens", "max_offload_tokens"):
            if draw.random() < 0.2:
                params[cap] = 512 * draw.randrange(5)
        if params:
            line["kv_transfer_params"] = params
        lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"
