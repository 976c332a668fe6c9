"""Records what one request heard in each look at its prefix. Judges nothing: `story.py` makes a story of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kvtier_cli.replay.slots import SlotUse, slot_uses
from kvtier_cli.replay.story_model import Look
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Observer


class StoryRecorder(Observer):
    """Hears the lookups of one request, block by block, from its arrival until `stop` is called.

    Lists have one entry a block. `deciding`: the last lookup that reached the tiers, else the last one; `last`: the
    last one whatever it reached; None where a block was never looked up. `looks`: how often it was looked up.
    `waits`: how often it has answered that it is on its way, from the promotion in `deciding` on. `promotions`: how
    many were started for it. `slots`: what took the primary's slots when a promotion was denied last.

    `pass_looks` has an entry a pass: the step in which it was, and its lookups. `stores`, which go on after `stop`: the
    step, the absent blocks of a batch, and whether it was refused.
    """

    def __init__(self, manager: TieringManager, blocks: int) -> None:
        self._manager = manager
        self._at = 0
        self._listening = True
        self.passes = 1
        self.deciding: list[Look | None] = [None] * blocks
        self.last: list[Look | None] = [None] * blocks
        self.looks = [0] * blocks
        self.waits = [0] * blocks
        self.promotions = [0] * blocks
        self.slots: tuple[SlotUse, ...] = ()
        self.pass_looks: list[tuple[int, list[Look]]] = [(manager.counters.steps, [])]
        self.stores: list[tuple[int, Sequence[BlockKey], bool]] = []

    def stop(self) -> None:
        """The request's last pass has ended."""
        self._listening = False

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
        if not self._listening:
            return
        at = self._at  # a prefix is looked up in order, and a block may stand in it twice
        self._at += 1
        look = Look(result, tuple(verdicts), promotion, denied)
        self.pass_looks[-1][1].append(look)
        before = self.deciding[at]
        self.last[at] = look
        self.looks[at] += 1
        if look.reached_tiers:
            self.waits[at] = 0
        if look.reached_tiers or before is None or not before.reached_tiers:
            self.deciding[at] = look
        self.waits[at] += result is LookupResult.HIT_PENDING
        self.promotions[at] += promotion is not None
        if denied is not None:
            self.slots = slot_uses(self._manager, req_id)

    def on_step(self) -> None:
        if self._listening:
            self._at = 0
            self.passes += 1
            self.pass_looks.append((self._manager.counters.steps, []))

    def on_stored(self, req_id: Hashable, keys: Sequence[BlockKey], evicted: Sequence[BlockKey]) -> None:
        self.stores.append((self._manager.counters.steps, tuple(keys), False))

    def on_refused(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        self.stores.append((self._manager.counters.steps, tuple(keys), True))
