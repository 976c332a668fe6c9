"""Managers and tiers for the specifications, and what an observer has seen of a lookup."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, Locality, LookupResult, Medium, Verdict
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import PrimarySpec, TierSpec, Topology

NVME = TierSpec("nvme", Medium.STORAGE, Locality.LOCAL)
S3 = TierSpec("s3", Medium.STORAGE, Locality.REMOTE)
POOL = TierSpec("pool", Medium.CPU, Locality.REMOTE)
PEER = TierSpec("peer")
"""A tier that declares neither medium nor locality."""


def manager_of(
    capacity: int,
    *tiers: TierSpec,
    policy: str = "lru",
    seeds: Mapping[str, str] | None = None,
    observer: Observer | None = None,
    events: bool = False,
) -> TieringManager:
    """A manager with those secondary tiers; `seeds`: tier → the blocks that it holds, least recent first."""
    topology = Topology(primary=PrimarySpec(capacity, policy), tiers=tiers)
    manager = TieringManager(topology, observer=observer, events=events)
    for name, blocks in (seeds or {}).items():
        tier_of(manager, name).seed(blocks.split())
    return manager


def tier_of(manager: TieringManager, name: str) -> SecondaryTier:
    tier = next(tier for tier in manager.tiers if tier.name == name)
    assert isinstance(tier, SecondaryTier)
    return tier


def held(manager: TieringManager, name: str) -> str:
    """The blocks of a secondary tier, least recent first."""
    return " ".join(map(str, tier_of(manager, name).blocks()))


def positions(manager: TieringManager, req_id: Hashable, blocks: str) -> None:
    """The request's prompt is these blocks, 16 tokens each."""
    keys = blocks.split()
    manager.set_positions(req_id, keys, range(16, 16 * len(keys) + 1, 16))


def store(manager: TieringManager, req_id: Hashable, blocks: str) -> list[BlockKey] | None:
    """Store blocks and complete the write; what was evicted for them, None where it was refused."""
    prepared = manager.prepare_store(req_id, blocks.split())
    if prepared is None:
        return None
    manager.complete_store(req_id, prepared.keys)
    return prepared.evicted


def pending_store(manager: TieringManager, req_id: Hashable, blocks: str) -> list[BlockKey]:
    """Blocks whose GPU→primary write is under way."""
    prepared = manager.prepare_store(req_id, blocks.split())
    assert prepared is not None
    return prepared.keys


def fill(manager: TieringManager, req_id: Hashable, blocks: str) -> None:
    """A whole request that stores these blocks, its prompt, and finishes; two steps later all cascades are done."""
    manager.on_new_request(req_id)
    positions(manager, req_id, blocks)
    assert store(manager, req_id, blocks) is not None
    manager.on_request_finished(req_id)
    steps(manager, 2)


def steps(manager: TieringManager, count: int) -> None:
    for _ in range(count):
        manager.on_schedule_end()


def order(manager: TieringManager) -> str:
    """The blocks of an LRU primary, least recent first."""
    return " ".join(manager.primary.state()["order"])


def arc(manager: TieringManager) -> dict[str, str | float]:
    """The lists of an ARC primary, least recent first, without the empty ones; the target unless it is 0."""
    state = manager.primary.state()
    lists = {name: " ".join(state[name]) for name in ("t1", "t2", "b1", "b2") if state[name]}
    return {**lists, **({"target": state["target"]} if state["target"] else {})}


def jobs(manager: TieringManager) -> list[str]:
    """The jobs under way: number, tier, request and blocks."""
    return [
        f"{job.job_id} {job.kind.value} {job.tier} {job.req_id}: {' '.join(map(str, job.keys))}"
        for job in manager.transfers.jobs.values()
    ]


class Lookup(NamedTuple):
    """What an observer hears of a lookup, in words."""

    result: LookupResult
    verdicts: str
    promotion: str | None = None
    denied: str | None = None
    evicted: str = ""


class Lookups(Observer):
    """Keeps what was heard of each lookup."""

    def __init__(self) -> None:
        self.heard: list[Lookup] = []

    def on_lookup(
        self,
        req_id: Hashable,
        key: BlockKey,
        result: LookupResult,
        verdicts: Sequence[Verdict],
        *,
        promotion: str | None,
        denied: str | None,
        evicted: Sequence[BlockKey],
    ) -> None:
        words = " ".join(verdict.value for verdict in verdicts)
        self.heard.append(Lookup(result, words, promotion, denied, " ".join(map(str, evicted))))
