"""The whole state of a manager in the shape that scripted fixtures show."""

from __future__ import annotations

from typing import Any

from kvtier_cli.tiering.manager import TieringManager


def manager_state(manager: TieringManager) -> dict[str, Any]:
    """Blocks with their pins, the policy's lists, the tiers' blocks, what is running, queued and live."""
    transfers, primary = manager.transfers, manager.primary
    return {
        "blocks": primary.pins(transfers.hidden_pins()),
        "policy": primary.state(),
        "free": primary.free,
        "evictable": primary.evictable,
        "tiers": {tier.name: list(tier.blocks()) for tier in manager.tiers},
        "jobs": [
            {
                "job": job.job_id,
                "tier": job.tier,
                "kind": job.kind.value,
                "req": job.req_id,
                "blocks": list(job.keys),
            }
            for job in transfers.jobs.values()
        ],
        "queued": [
            {"tier": queued.tier, "req": queued.req_id, "blocks": list(queued.keys)} for queued in transfers.queued()
        ],
        "pending_work": manager.has_pending_work(),
        "live": list(manager.requests),
    }
