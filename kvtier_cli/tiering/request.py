"""What the manager knows of a live request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvtier_cli.tiering.jobs import RequestContext
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.policies import RequestRecency
from kvtier_cli.tiering.token_caps import BlockLimits


class RequestState(RequestRecency):
    """A request from its arrival until every tier was told that it is over.

    `scan`: the secondary tiers in lookup order, each as (index, tier, whether its filter admits it). `promoted`:
    block → index of the tier that it was promoted from by this request, as long as no such load has failed.
    `failed`: block → index of the tier, where this request's last promotion of it failed. `storing`: the prepared
    stores whose GPU→primary write is under way. `parked`:
    index of a request-level tier → offered blocks that were pending, once for each call that offered them.
    `denied`: block → index of the tier that hit while there was no slot, since the last look at the whole prefix.
    `limits`: the caps that it carries, for those who drive the manager and who explain; the manager has none.
    """

    __slots__ = ("context", "denied", "failed", "finished", "limits", "parked", "promoted", "scan", "storing")

    def __init__(self, context: RequestContext, scan: Sequence[tuple[int, Any, bool]]) -> None:
        super().__init__()
        self.context = context
        self.scan = scan
        self.finished = False
        self.limits: BlockLimits | None = None
        self.forget_transfers()

    def forget_transfers(self) -> None:
        """Forget what is on its way and where blocks came from, as a reset of the cache does."""
        self.promoted: dict[BlockKey, int] = {}
        self.failed: dict[BlockKey, int] = {}
        self.denied: dict[BlockKey, int] = {}
        self.storing: list[list[BlockKey]] = []
        self.parked: dict[int, list[BlockKey]] = {}

    def dump_state(self) -> dict[str, Any]:
        """What a finished request still stands for, for `load_state`; its recency has been settled at its finish."""
        return {
            "promoted": dict(self.promoted),
            "failed": dict(self.failed),
            "denied": dict(self.denied),
            "storing": list(map(tuple, self.storing)),
            "parked": {tier: tuple(keys) for tier, keys in self.parked.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Be finished, as a request was that `dump_state` told of; its state may be loaded again."""
        self.finished = True
        self.promoted, self.failed, self.denied = (dict(state[name]) for name in ("promoted", "failed", "denied"))
        self.storing = list(map(list, state["storing"]))
        self.parked = {tier: list(keys) for tier, keys in state["parked"].items()}
