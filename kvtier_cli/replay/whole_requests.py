"""Whole requests inside a scripted fixture: its own ones and those of a trace, through the replay loop.

Blocks and requests go by their names here, so that other ops of the fixture can speak of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvtier_cli.errors import InputError
from kvtier_cli.replay.figures import figures
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.loop import PassWatcher, ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory, Outcome, OutcomeSums, Stop, find_stop, holder
from kvtier_cli.replay.watchers import PassWatchers
from kvtier_cli.tiering.block_names import check_block_name
from kvtier_cli.tiering.filters import MISSING, TierFilter, parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.token_caps import BlockLimits, TokenCaps

if TYPE_CHECKING:
    from kvtier_cli.traces.model import Request

BLOCK_TOKENS = 16
"""Where the topology does not say: the positions of a request's blocks only have to rise."""


class _Watcher(OutcomeSums):
    """Sums up all outcomes, and keeps those of the last request."""

    def __init__(self, manager: TieringManager, history: BlockHistory) -> None:
        super().__init__(manager, history)
        self.outcomes: list[str] = []
        self.tiers: list[str | None] = []
        self.stop: Stop | None = None

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        super().last_pass(req_id, keys, loaded, gave_up, first_new)
        request = self.manager.requests[req_id]
        served = [Outcome.PROMOTED if key in request.promoted else Outcome.PRIMARY for key in keys[:loaded]]
        stop = find_stop(self.manager, request, keys, loaded, gave_up, self.history)
        rest = [] if stop is None else [stop.outcome] + [Outcome.UNREACHED] * (len(keys) - loaded - 1)
        self.outcomes = [outcome.value for outcome in served + rest]
        tiers = [request.promoted.get(key) for key in keys[:loaded]]
        if stop is not None:
            first = holder(self.manager, keys[loaded]) if stop.outcome is Outcome.UNREACHED else stop.tier
            tiers += [first, *(holder(self.manager, key) for key in keys[loaded + 1 :])]
        self.tiers = [None if tier is None else self.manager.tiers[tier].name for tier in tiers]
        self.stop = stop


class WholeRequests:
    """Drives whole requests through `manager`. The loop counts them; `names` gets the name of each number.

    `history` hears the manager's decisions; `folder` is where traces are looked for.
    """

    def __init__(
        self, manager: TieringManager, history: BlockHistory, names: dict[Hashable, str], folder: Path
    ) -> None:
        self._topology = manager.topology
        self._names = names
        self._folder = folder
        self._watcher = _Watcher(manager, history)
        tokens = self._topology.block.tokens or BLOCK_TOKENS
        self._loop = ReplayLoop(manager, self._topology.replay, tokens, self._watcher)
        self._block_names: list[str] = []

    def watch(self, watcher: PassWatcher) -> None:
        """Let `watcher` look at the tiers too when a request's last pass ends."""
        self._loop.watcher = PassWatchers([self._watcher, watcher])

    def run(
        self, req_id: str, blocks: Sequence[str], kv_load_tiers: object, caps: TokenCaps | None = None
    ) -> dict[str, Any]:
        """One request, with the caps that it carries; returns the terminal outcome of each of its blocks, the tier that
        goes with it (whence it was promoted, which holds it or failed; None where there is none), and why the first
        that was not served was not (None where all were): `block`, `tier`, `reason` of an absent one, and `by` which
        request it is lost."""
        limits = None if caps is None else caps.limits(len(blocks), self._loop.block_tokens)
        self._replay(req_id, blocks, parse_tier_filter(kv_load_tiers).filter, limits)
        stop = self._watcher.stop
        why = stop and {
            "block": blocks[stop.at],
            "tier": None if stop.tier is None else self._topology.tiers[stop.tier].name,
            "reason": None if stop.reason is None else stop.reason.value,
            "by": self._names.get(stop.by, stop.by),
        }
        return {"outcomes": self._watcher.outcomes, "tiers": self._watcher.tiers, "why": why}

    def replay(self, trace: str, kv_load_tiers: object) -> dict[str, Any]:
        """The requests of a trace in order of arrival, under one filter, or with MISSING each under its own.

        Returns the figures, which count from the first op of the fixture on. Raises InputError about the trace.
        """
        from kvtier_cli.replay.trace_run import TraceRun
        from kvtier_cli.traces.source import TraceSource

        given = None if kv_load_tiers is MISSING else parse_tier_filter(kv_load_tiers).filter
        with TraceSource(self._folder / trace) as source:
            reading = TraceRun([source], self._topology, given)  # read with, not run: its manager stays idle
            for request in reading.requests():
                self._loop.block_tokens = reading.loop.block_tokens
                blocks = self._named(request, source.name)
                limits = reading.limits_of(request, len(blocks))
                self._replay(request.request_id or f"r{request.index}", blocks, reading.filter_of(request), limits)
        return figures(self._loop, self._watcher, self._topology)

    def _replay(
        self, name: str, blocks: Sequence[BlockKey], load_filter: TierFilter, limits: BlockLimits | None = None
    ) -> None:
        self._names[self._loop.requests] = name
        self._loop.replay(blocks, load_filter, limits=limits)

    def _named(self, request: Request, trace: str) -> list[str]:
        """The blocks of a request under their labels, `id~2` for the second block of a label."""
        numbers = self._loop.numbers(request)
        self._block_names += _new_names(self._loop.table, len(self._block_names), trace, request.line)
        return [self._block_names[number] for number in numbers]


def _new_names(table: BlockTable, known: int, trace: str, line: int) -> Iterator[str]:
    for key in range(known, len(table)):
        try:
            check_block_name(str(table.labels[key]))
        except InputError as error:
            raise InputError(
                error.message, file=trace, line=line, hint="A fixture calls blocks by their names."
            ) from error
        yield table.name(key)
