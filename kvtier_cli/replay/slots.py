"""What takes the primary's slots so that none can be had: reads, writes and promotions under way. Counts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple

from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.primary import PENDING


class SlotUser(Enum):
    """Why a slot cannot be freed: its block is pinned by what reads it, or pending until its write ends."""

    CASCADE = "cascade"
    LOAD = "load"
    PROMOTION = "promotion"
    STORE = "store"


class SlotUse(NamedTuple):
    """So many slots are taken for one reason. `tiers`: where cascades go, or where promotions come from; `own`: the
    request that asks takes them itself."""

    user: SlotUser
    tiers: tuple[str, ...]
    own: bool
    blocks: int


def slot_uses(manager: TieringManager, req_id: Hashable) -> tuple[SlotUse, ...]:
    """What takes those slots of the primary that cannot be freed at this moment, as `req_id` sees it.

    Each slot counts once, the largest share comes first. A block that both a cascade and a load read counts as the
    cascade's.
    """
    cascades: dict[BlockKey, set[str]] = {}
    promotions: dict[BlockKey, tuple[str, bool]] = {}
    for job in manager.transfers.jobs.values():
        for key in job.keys:
            if job.kind is JobKind.CASCADE:
                cascades.setdefault(key, set()).add(job.tier)
            else:
                promotions[key] = (job.tier, job.req_id == req_id)
    for queued in manager.transfers.queued():
        promotions.update((key, (queued.tier, queued.req_id == req_id)) for key in queued.keys)
    own_stores = {key for keys in manager.requests[req_id].storing for key in keys}
    names = [tier.name for tier in manager.tiers]

    uses: Counter[tuple[SlotUser, tuple[str, ...], bool]] = Counter()
    for key, pins in manager.primary.busy.items():
        if pins != PENDING:
            tiers = cascades.get(key)
            user = SlotUser.CASCADE if tiers else SlotUser.LOAD
            uses[user, tuple(sorted(tiers or (), key=names.index)), False] += 1
        elif key in promotions:
            tier, own = promotions[key]
            uses[SlotUser.PROMOTION, (tier,), own] += 1
        else:
            uses[SlotUser.STORE, (), key in own_stores] += 1
    return tuple(SlotUse(*use, blocks) for use, blocks in uses.most_common())
