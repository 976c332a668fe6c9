"""All figures of a replay, under the names of the recordings and of `--json`. Counts and formats nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import OutcomeSums
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology


def figures(loop: ReplayLoop, sums: OutcomeSums, topology: Topology) -> dict[str, Any]:
    """The figures of what `loop` has replayed so far. Blocks are references: one that is asked for twice counts twice.

    By-tier maps have every secondary tier, in lookup order. `bytes` is None unless the size of a block is known.
    """
    manager = loop.manager
    counters = manager.counters
    names = [tier.name for tier in manager.tiers]

    def by_tier(counts: Iterable[int]) -> dict[str, int]:
        return dict(zip(names, counts, strict=True))

    promoted = loop.loaded_promoted
    outcomes = dict(sums.counts, promoted=sum(promoted), primary=counters.blocks_loaded - sum(promoted))
    resident = {"primary": len(manager.primary.resident)}
    resident.update({tier.name: tier.size() for tier in manager.tiers})
    return {
        "requests": loop.requests,
        "blocks": loop.blocks,
        "lookups": counters.lookups,
        "primary_hits": counters.primary_hits,
        "steps": counters.steps,
        "wait_steps": loop.wait_steps,
        "gave_up": loop.gave_up,
        "blocks_loaded": counters.blocks_loaded,
        "loaded_by_source": {source.value: count for source, count in loop.loaded_by_source.items()},
        "blocks_stored": counters.blocks_stored,
        "stores_refused": counters.refused,
        "blocks_evicted_by_stores": counters.evicted_by_stores,
        "blocks_evicted_by_promotions": counters.evicted_by_promotions,
        "promotions_started": sum(counters.promoted),
        "promotions_denied": counters.denied,
        "promotions_failed": sum(counters.failed),
        "promoted_by_tier": by_tier(counters.promoted),
        "failed_by_tier": by_tier(counters.failed),
        "asked_by_tier": by_tier(counters.asked),
        "hits_by_tier": by_tier(counters.hits),
        "skipped_by_tier": by_tier(counters.skipped),
        "evicted_unread": sums.history.evicted_unread,
        "resident": resident,
        "outcomes": outcomes,
        "served_by_tier": {PRIMARY_NAME: outcomes["primary"], **by_tier(promoted)},
        "filtered_by_tier": by_tier(sums.filtered),
        "denied_by_tier": by_tier(sums.denied),
        "absent_by_reason": dict(sums.absent),
        "unreached_held_by_tier": by_tier(sums.unreached_held),
        "requests_served_whole": sums.served_whole,
        "requests_capped": sums.requests_capped,
        "unreached_capped": sums.unreached_capped,
        "unstored_capped": sums.unstored_capped,
        "lost_to_filter": sums.lost_to_filter,
        "bytes": _bytes(loop, topology, names),
        "rates": _rates(loop, outcomes["primary"], names),
    }


def _bytes(loop: ReplayLoop, topology: Topology, names: list[str]) -> dict[str, dict[str, int]] | None:
    """Bytes read from and written to each secondary tier, None where nobody told how large a block is."""
    per_token = topology.block.bytes_per_token
    if per_token is None:
        return None
    size = per_token * loop.block_tokens
    return {
        name: {"read": loaded * size, "written": stored * size}
        for name, loaded, stored in zip(names, loop.manager.counters.read, loop.manager.counters.written, strict=True)
    }


def _rates(loop: ReplayLoop, primary: int, names: list[str]) -> dict[str, dict[str, Any]]:
    """Shares with the words of their formula; None where nothing was there to take a share of."""
    counters = loop.manager.counters
    rates = {
        "served_of_all": _rate(counters.blocks_loaded, loop.blocks, "blocks_loaded / blocks"),
        f"{PRIMARY_NAME}_of_all": _rate(primary, loop.blocks, "outcomes.primary / blocks"),
    }
    rates[f"{PRIMARY_NAME}_of_asked"] = _rate(counters.primary_hits, counters.lookups, "primary_hits / lookups")
    for index, name in enumerate(names):
        rates[f"{name}_of_asked"] = _rate(
            counters.hits[index], counters.asked[index], f"hits_by_tier.{name} / asked_by_tier.{name}"
        )
        rates[f"{name}_of_all"] = _rate(loop.loaded_promoted[index], loop.blocks, f"served_by_tier.{name} / blocks")
    return rates


def _rate(part: int, whole: int, formula: str) -> dict[str, Any]:
    return {"value": part / whole if whole else None, "formula": formula}
