"""What the manager knows of a live request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvtier_cli.tiering.model import BlockKey, RequestContext
from kvtier_cli.tiering.policies import RequestRecency


class RequestState(RequestRecency):
    """A request from its arrival until every tier was told that it is over.

    `scan`: the secondary tiers in lookup order, each as (index, tier, whether its filter admits it). `promoted`:
    block → index of the tier that it was promoted from by this request, as long as no such load has failed.
    `failed`: block → index of the tier, where this request's last promotion of it failed. `storing`: the prepared
    stores whose GPU→primary write is under way. `parked`:
    index of a request-level tier → offered blocks that were pending, once for each call that offered them.
    `denied`: block → index of the tier that hit while there was no slot, since the last look at the whole prefix.
    """

    __slots__ = ("context", "denied", "failed", "finished", "parked", "promoted", "scan", "storing")

    def __init__(self, context: RequestContext, scan: Sequence[tuple[int, Any, bool]]) -> None:
        super().__init__()
        self.context = context
        self.scan = scan
        self.finished = False
        self.forget_transfers()

    def forget_transfers(self) -> None:
        """Forget what is on its way and where blocks came from, as a reset of the cache does."""
        self.promoted: dict[BlockKey, int] = {}
        self.failed: dict[BlockKey, int] = {}
        self.denied: dict[BlockKey, int] = {}
        self.storing: list[list[BlockKey]] = []
        self.parked: dict[int, list[BlockKey]] = {}
