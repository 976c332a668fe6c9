"""Several watchers of one replay loop, each told in turn."""

from __future__ import annotations

from collections.abc import Sequence

from kvtier_cli.replay.loop import PassWatcher
from kvtier_cli.tiering.model import BlockKey


class PassWatchers:
    """A `PassWatcher` that tells others."""

    def __init__(self, watchers: Sequence[PassWatcher]) -> None:
        self._watchers = tuple(watchers)

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        for watcher in self._watchers:
            watcher.last_pass(req_id, keys, loaded, gave_up, first_new)
