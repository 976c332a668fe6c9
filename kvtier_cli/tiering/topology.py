"""The shape of a topology: block size, primary, secondary tiers, replay settings. Reading one is `topology_file.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kvtier_cli.tiering.model import BlockKey, Locality, Medium

PRIMARY_NAME = "cpu"
RESERVED_NAMES = ("cpu", "primary")
POLICIES = ("lru", "arc")
BACKENDS = ("diskcache", "memory")


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """`tokens`: tokens a block, None where the trace says; `bytes_per_token`: KV bytes, None where not known."""

    tokens: int | None = None
    bytes_per_token: int | None = None


@dataclass(frozen=True, slots=True)
class PrimarySpec:
    """The CPU tier: `capacity` in blocks, `policy` one of `POLICIES`."""

    capacity: int = 10_000
    policy: str = "lru"


@dataclass(frozen=True, slots=True)
class TierSpec:
    """One secondary tier. Latencies count steps; a `capacity` of None is unlimited; the last three fields but
    one are estimates (seconds, bytes a second) and decide nothing; `about` is a remark for people."""

    name: str
    medium: Medium | None = None
    locality: Locality | None = None
    backend: str = "diskcache"
    capacity: int | None = None
    load_latency: int = 0
    store_latency: int = 0
    lookup_retry: int = 0
    request_level: bool = False
    fail_loads: frozenset[BlockKey] = frozenset()
    fail_stores: frozenset[BlockKey] = frozenset()
    offline: bool = False
    fail_rate: float = 0.0
    seed: int = 0
    read_latency: float | None = None
    bandwidth: float | None = None
    about: str | None = None


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """How a trace is driven through the manager; see `replay/loop.py`."""

    max_wait_steps: int = 16
    store_batch_blocks: int = 0
    tail: str = "keep"
    identity: str = "chain"


@dataclass(frozen=True, slots=True)
class Topology:
    """The tiers of one server. `name` says in outputs where it came from ("built-in topology", a file's name).

    `warnings` are what was noticed when it was imported from vLLM's configuration; no part of what it is.
    """

    block: BlockSpec = field(default_factory=BlockSpec)
    primary: PrimarySpec = field(default_factory=PrimarySpec)
    tiers: tuple[TierSpec, ...] = ()
    replay: ReplaySpec = field(default_factory=ReplaySpec)
    name: str = "built-in topology"
    warnings: tuple[str, ...] = field(default=(), compare=False)


class Tiers(Protocol):
    """What a filter is held against: secondary tiers and where they are from, whatever else is known."""

    @property
    def name(self) -> str: ...

    @property
    def tiers(self) -> tuple[TierSpec, ...]: ...


class SizedPrimary(Protocol):
    """A CPU tier, its `capacity` in blocks None where it is not known."""

    @property
    def capacity(self) -> int | None: ...

    @property
    def policy(self) -> str: ...


class AnyTopology(Tiers, Protocol):
    """A topology that may not know the size of its primary."""

    @property
    def block(self) -> BlockSpec: ...

    @property
    def primary(self) -> SizedPrimary: ...

    @property
    def replay(self) -> ReplaySpec: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


BUILT_IN = Topology(
    tiers=(
        TierSpec("nvme", Medium.STORAGE, Locality.LOCAL, capacity=40_000),
        TierSpec("s3", Medium.STORAGE, Locality.REMOTE),
    )
)
"""What holds without `--topology`: cpu 10,000 blocks (LRU), nvme 40,000 (storage, local), s3 without limit."""
