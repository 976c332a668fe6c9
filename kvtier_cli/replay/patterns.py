"""Warnings of a finished run about the patterns that people suffer from without seeing them. Shows nothing.

Each is a line with its numbers and what to do. They are told only where they matter; `pattern_warnings` has the rules.
Filters that fail open are told by the run itself, and tiers that are waited for in vain before it, by
`topology_checks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import AbsentReason, OutcomeSums
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.wording import count, shown

UNREAD_SHARE: Final = 0.1
UNREAD_LEAST: Final = 10
REQUEST_SHARE: Final = 0.01


def pattern_warnings(loop: ReplayLoop, sums: OutcomeSums, *, own_filters: bool) -> list[str]:
    """What happened so often in the run that `loop` and `sums` counted that its reader should know.

    - Requests that gave up since their prefix is longer than the primary: any, as vLLM would hang.
    - Blocks promoted and evicted unread: from a tenth of the promotions on, and ten blocks.
    - Stores larger than the primary: any, as they can never succeed. Requests whose every store found the slots pinned
      or pending: from one request in a hundred on.
    - A tier that no request's filter admitted (only of `own_filters`; a filter for all requests is its user's word):
      where one request in a hundred stopped at a block that the tier holds.
    - Holes, absent blocks with blocks behind them that a tier holds: where one request in a hundred stopped at one.
    """
    return [
        *_prefix_too_long(loop, sums),
        *_evicted_unread(loop, sums),
        *_stores_refused(loop),
        *(_never_admitted(loop, sums) if own_filters else ()),
        *_holes(loop, sums),
    ]


def _prefix_too_long(loop: ReplayLoop, sums: OutcomeSums) -> Iterator[str]:
    if sums.too_long:
        yield (
            f"{_requests(sums.too_long)} gave up: the prefix that is there, of up to {sums.longest:,} blocks, is "
            f"longer than the primary ({loop.manager.primary.capacity:,}), and promotes and evicts itself; vLLM would "
            f"wait for ever; give primary.capacity {sums.longest:,} or more"
        )


def _evicted_unread(loop: ReplayLoop, sums: OutcomeSums) -> Iterator[str]:
    unread, promoted = sums.history.evicted_unread, sum(loop.manager.counters.promoted)
    if unread >= max(UNREAD_LEAST, UNREAD_SHARE * promoted):
        yield (
            f"{unread:,} of {promoted:,} promoted blocks ({100 * unread / promoted:.0f} %) were evicted before they "
            "were loaded: the primary has too little room for what is promoted into it; give it more, or admit fewer "
            "tiers"
        )


def _stores_refused(loop: ReplayLoop) -> Iterator[str]:
    if loop.too_large:
        yield (
            f"{count(loop.too_large, 'store')} of up to {loop.largest:,} blocks "
            f"{'was' if loop.too_large == 1 else 'were'} refused: the primary has {loop.manager.primary.capacity:,} "
            f"slots, and a store is all or nothing; give primary.capacity {loop.largest:,} or more, or set "
            "replay.store_batch_blocks (a server stores while it computes)"
        )
    if loop.stored_nothing and loop.stored_nothing >= REQUEST_SHARE * loop.requests:
        yield (
            f"{_requests(loop.stored_nothing)} of {loop.requests:,} could store nothing: the slots of the primary were "
            "pinned or pending, and stay so until the slowest tier has its copy; give the primary more, or that tier a "
            "lower store_latency"
        )


def _never_admitted(loop: ReplayLoop, sums: OutcomeSums) -> Iterator[str]:
    manager = loop.manager
    for tier, admitted, stopped in zip(manager.tiers, manager.ever_admitted(), sums.filtered, strict=True):
        if not admitted and stopped and stopped >= REQUEST_SHARE * loop.requests:
            yield (
                f"no request's filter admits tier {shown(tier.name)}: {_requests(stopped)} of {loop.requests:,} "
                "stopped at a block that it holds; `kvtier filter` tells what a filter admits"
            )


def _holes(loop: ReplayLoop, sums: OutcomeSums) -> Iterator[str]:
    if not sums.holes or sums.holes < REQUEST_SHARE * loop.requests:
        return
    cause, count = max(sums.hole_causes.items(), key=lambda item: item[1])
    yield (
        f"{_requests(sums.holes)} of {loop.requests:,} stopped at a hole: an absent block with blocks behind it that a "
        f"tier holds and nobody can use, {sums.behind_holes:,} in all; {_cause(cause, count, sums.holes)}"
    )


def _cause(cause: str, count: int, holes: int) -> str:
    """What made most holes, and what to do about it."""
    whose = "each" if count == holes else f"{count:,} of them"
    if cause == AbsentReason.REFUSED.value:
        return f"the store of {whose} was refused; give the primary more slots"
    if cause == AbsentReason.OFFLINE.value:
        return f"{whose} is held by a tier that is offline"
    if cause == AbsentReason.COLD.value:
        return f"{whose} was never stored"
    tier = "the primary" if cause == PRIMARY_NAME else f"tier {shown(cause)}"
    return f"{whose} was last evicted from {tier}; give it more room, or add a tier that keeps everything"


def _requests(number: int) -> str:
    return count(number, "request")
