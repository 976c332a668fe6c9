"""What the manager counts whether anybody observes it or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Counters:
    """Numbers of events since the manager was made. Lists have one entry a secondary tier, in lookup order.

    `lookups` counts blocks looked up, repeats included, `primary_hits` those of them that the primary had ready;
    `asked`, `hits` and `skipped` a tier's lookups, those that it answered with a hit (denied ones too), and those in
    which the filter passed it over. `promoted` counts started promotions (vLLM: `chunk_hits` less
    `promotion_allocation_failures`), `denied` vLLM's `promotion_allocation_failures`. `read` and `written` count the
    blocks that a tier's finished jobs moved: what arrived, not what was tried.
    """

    __slots__ = (
        "asked",
        "blocks_loaded",
        "blocks_stored",
        "denied",
        "evicted_by_promotions",
        "evicted_by_stores",
        "failed",
        "hits",
        "lookups",
        "primary_hits",
        "promoted",
        "read",
        "refused",
        "skipped",
        "steps",
        "written",
    )

    def __init__(self, tiers: int) -> None:
        self.lookups = 0
        self.primary_hits = 0
        self.steps = 0
        self.blocks_stored = 0
        self.blocks_loaded = 0
        self.evicted_by_stores = 0
        self.evicted_by_promotions = 0
        self.denied = 0
        self.refused = 0
        self.asked = [0] * tiers
        self.hits = [0] * tiers
        self.skipped = [0] * tiers
        self.promoted = [0] * tiers
        self.failed = [0] * tiers
        self.read = [0] * tiers
        self.written = [0] * tiers

    def dump_state(self) -> dict[str, Any]:
        """A copy of all numbers."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to numbers that `dump_state` gave; they may be loaded again."""
        for name, value in state.items():
            setattr(self, name, list(value) if isinstance(value, list) else value)
