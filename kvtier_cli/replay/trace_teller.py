"""Tells the story of one request in the midst of a trace's run, which goes on behind it. Renders nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from kvtier_cli.replay.loop import Served
from kvtier_cli.replay.placements import Placements
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.token_caps import BlockLimits
from kvtier_cli.traces.model import Request


class Arrived(NamedTuple):
    """A request that is to be replayed next: its blocks as the manager knows them, the filter that holds for it, what
    it is called, itself as the trace has it, and what its caps come to."""

    keys: Sequence[BlockKey]
    parse: FilterParse
    label: str
    request: Request
    limits: BlockLimits | None


class TraceTeller:
    """A run that is replayed piece by piece, and knows its requests by their own ids."""

    def __init__(self, run: TraceRun) -> None:
        self.run = run
        self._requests = run.requests()
        self._names: dict[Hashable, str] = {}

    def name(self, req_id: Hashable) -> str:
        """What a request of the run is called: its own id in the trace, else `r1204`."""
        return self._names.get(req_id, f"r{req_id}")

    def block_name(self, key: BlockKey) -> str:
        """What a block of the run is called."""
        return self.run.loop.table.name(key) if isinstance(key, int) else str(key)

    def replay(self, count: int | None = None) -> None:
        """Replay the next `count` requests, or all that are left."""
        for _ in self.steps(count):
            pass

    def steps(self, count: int | None = None) -> Iterator[Served]:
        """As `replay`; each request is over when its result comes out."""
        requests = self._requests if count is None else islice(self._requests, count)
        for served in self.run.loop.run(requests, self.run.filter_of, self.run.limits_of):
            self._remember(served.req_id)
            yield served

    def tell(
        self,
        parse: FilterParse | None = None,
        *,
        for_all: FilterParse | None = None,
        placements: Placements | None = None,
        observers: Sequence[Observer] = (),
    ) -> RequestStory:
        """Replay the next request, under `parse` or else the filter that holds for it in the run, of whose filter
        `for_all` is the reading, and tell its story. `placements` and `observers` are those that have listened to what
        was before it."""
        run = self.run
        arrived = self.arrive(parse, for_all)
        return tell_story(
            run.loop,
            arrived.keys,
            arrived.parse,
            run.history,
            label=arrived.label,
            block_tokens=run.loop.block_tokens,
            request_name=self.name,
            placements=placements,
            observers=observers,
            limits=arrived.limits,
        )

    def arrive(self, parse: FilterParse | None = None, for_all: FilterParse | None = None) -> Arrived:
        """Take the next request, which somebody else replays, under `parse` or else the filter that holds for it; see
        `tell`."""
        request = next(self._requests)
        self._remember(self.run.loop.requests)
        keys = self.run.loop.keys(request)
        parse = parse or self.run.held_parse_of(request, for_all)
        limits = self.run.limits_of(request, len(keys))
        return Arrived(keys, parse, self.name(self.run.loop.requests), request, limits)

    def skip_rest(self) -> None:
        """Read the requests that are left, their filters and caps, for what is to be said about them; replay none."""
        for request in self._requests:
            self.run.filter_of(request)
            self.run.limits_of(request, 0)

    def _remember(self, req_id: Hashable) -> None:
        own = self.run.request.request_id if self.run.request is not None else None
        if own is not None:
            self._names[req_id] = own
