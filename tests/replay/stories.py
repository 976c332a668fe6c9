"""A server with a history, for the specifications of stories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology
from tests.tiering.managers import tier_of


class Server(NamedTuple):
    """A manager with what a story needs beside it."""

    manager: TieringManager
    loop: ReplayLoop
    history: BlockHistory

    def replay(self, blocks: str, kv_load_tiers: object = None) -> None:
        """One more request of the history."""
        self.loop.replay(blocks.split(), parse_tier_filter(kv_load_tiers).filter)

    def story(self, blocks: str, kv_load_tiers: object = None, label: str | None = "mine") -> RequestStory:
        parse = parse_tier_filter(kv_load_tiers)
        return tell_story(self.loop, blocks.split(), parse, self.history, label=label)


def server(
    capacity: int, *tiers: TierSpec, seeds: Mapping[str, str] | None = None, spec: ReplaySpec | None = None
) -> Server:
    history = BlockHistory()
    manager = TieringManager(Topology(primary=PrimarySpec(capacity), tiers=tiers), observer=history)
    for name, blocks in (seeds or {}).items():
        tier_of(manager, name).seed(blocks.split())
    return Server(manager, ReplayLoop(manager, spec or ReplaySpec(), 16), history)
