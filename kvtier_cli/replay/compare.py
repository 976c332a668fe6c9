"""Several variants of tiers and filters over one trace, read once: their figures, and the requests that differ.

Each variant is a run of its own, as `kvtier replay` has it; all get a request before any gets the next. Kept of the
requests are sums and the worst ones, so that memory does not grow with how many differ. Renders nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kvtier_cli.replay.outcomes import Outcome, Stop
from kvtier_cli.replay.request_rules import RequestRules, TagRule
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.model import BlockKey, Locality
from kvtier_cli.tiering.topology import BlockSpec, Topology
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.request_log import RequestLog
from kvtier_cli.traces.source import TraceSource

LETTERS = "ABCDEF"
FEWEST, MOST = 2, len(LETTERS)


class Variant(NamedTuple):
    """What is compared. `load_filter` applies to every request, None leaves each its own, and the
    rules `by_tag` come before it."""

    topology: Topology
    load_filter: TierFilter | None
    by_tag: tuple[TagRule, ...] = ()


class Span(NamedTuple):
    """Blocks of a request, one behind the other, that ended alike. `stop`: the index behind them; `tier`: the one
    that they came from, that holds or hit the first block not loaded."""

    stop: int
    outcome: Outcome
    tier: str | None


class Names(Protocol):
    """Knows what blocks are called."""

    def name(self, key: int, /) -> str: ...


class Difference(NamedTuple):
    """One request that ended in another way in some variant; tuples have one entry a variant.

    `number` counts requests from 0, `label` is the trace's own name for it. `served` counts blocks, `spans` say how
    all blocks ended, `blocks` at how many of them two variants disagree.
    """

    number: int
    label: str | None
    served: tuple[int, ...]
    spans: tuple[tuple[Span, ...], ...]
    blocks: int
    keys: Sequence[BlockKey]
    table: Names

    @property
    def furthest(self) -> int:
        """The variant that serves this request most unlike the first, by its place in `served`."""
        return max(range(1, len(self.served)), key=lambda at: (abs(self._change(at)), -self._change(at), -at))

    @property
    def change(self) -> int:
        """Blocks that this variant serves more than the first."""
        return self._change(self.furthest)

    def _change(self, at: int) -> int:
        return self.served[at] - self.served[0]


class BlockDifference(NamedTuple):
    """One block that ended in another way in some variant. `at` is its place in the request, from 0; outcome and tier
    are None where a variant leaves it out."""

    at: int
    name: str
    outcomes: tuple[Outcome | None, ...]
    tiers: tuple[str | None, ...]


@dataclass(slots=True)
class AgainstFirst:
    """How many requests of a variant differ from the first one's, how many of them were served fewer or more blocks."""

    differ: int = 0
    fewer: int = 0
    more: int = 0


@dataclass(slots=True)
class Differences:
    """Sums over all requests that differ between any variants, and the `keep` worst of them.

    The worst is the one whose number of served blocks changes most, then the one with most blocks that differ, then
    the first. `against_first` has one entry a variant, the first for nothing.
    """

    keep: int
    requests: int = 0
    blocks: int = 0
    against_first: list[AgainstFirst] = field(default_factory=list)
    _heap: list[tuple[int, int, int, Difference]] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        """Count one request."""
        self.requests += 1
        self.blocks += difference.blocks
        for against, served, spans in zip(self.against_first, difference.served, difference.spans, strict=True):
            against.differ += spans != difference.spans[0]
            against.fewer += served < difference.served[0]
            against.more += served > difference.served[0]
        self.remember(difference)

    def remember(self, difference: Difference) -> None:
        """Keep one request that is counted already, if it is among the worst."""
        entry = (abs(difference.change), difference.blocks, -difference.number, difference)
        if len(self._heap) < self.keep:
            heapq.heappush(self._heap, entry)
        elif self.keep:
            heapq.heappushpop(self._heap, entry)

    def worst(self) -> list[Difference]:
        """The worst ones, at most `keep`, the worst of all first."""
        return [entry[-1] for entry in sorted(self._heap, reverse=True)]


class _Ends:
    """Watches how the requests of one run end; the run's own sums hear of it first."""

    def __init__(self, run: TraceRun) -> None:
        self._run = run
        self._names = [tier.name for tier in run.manager.tiers]
        self._stop: Stop | None = None
        self.loaded = 0
        self.total = 0
        self.promoted: dict[BlockKey, int] = {}
        run.loop.watcher = self

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        sums = self._run.sums
        sums.last_pass(req_id, keys, loaded, gave_up, first_new)
        self.loaded = loaded
        self.total = len(keys)
        self._stop = sums.stop
        self.promoted = self._run.manager.requests[req_id].promoted

    @property
    def stop(self) -> tuple[Outcome, str | None] | None:
        """The outcome of the first block not loaded, and its tier."""
        stop = self._stop
        if stop is None:
            return None
        return stop.outcome, None if stop.tier is None else self._names[stop.tier]

    def resembles(self, other: _Ends) -> bool:
        """Whether both requests surely ended alike, seen without a look at their blocks."""
        return (
            self.loaded == other.loaded
            and self.total == other.total
            and self.stop == other.stop
            and self.promoted == other.promoted
            and (self._names == other._names or not self.promoted)
        )

    def spans(self, keys: Sequence[BlockKey]) -> tuple[Span, ...]:
        """How the blocks ended, from first to last."""
        found: list[Span] = []
        for index in range(self.loaded) if self.promoted else ():
            tier = self.promoted.get(keys[index])
            end = (Outcome.PRIMARY, None) if tier is None else (Outcome.PROMOTED, self._names[tier])
            if found and found[-1][1:] == end:
                found[-1] = Span(index + 1, *end)
            else:
                found.append(Span(index + 1, *end))
        if not found and self.loaded:
            found.append(Span(self.loaded, Outcome.PRIMARY, None))
        if self.stop is not None and self.stop[0] is not Outcome.UNREACHED:
            found.append(Span(self.loaded + 1, *self.stop))
        if self.total > (found[-1].stop if found else 0):
            found.append(Span(self.total, Outcome.UNREACHED, None))
        return tuple(found)


class Moved(NamedTuple):
    """Blocks that arrived from (`read`) and in (`written`) a secondary tier."""

    read: int
    written: int


class Comparison:
    """A trace through all `variants` at once.

    `keep`: how many of the requests that differ are remembered. `block_tokens`: the size of a block, unless the trace
    states its own. `reading`: what else the trace leaves open. `log`: what requests carry, in the place of what the
    trace says. `on_bytes` hears of progress.
    """

    def __init__(
        self,
        source: TraceSource,
        variants: Sequence[Variant],
        *,
        keep: int,
        block_tokens: int | None = None,
        reading: TraceOptions = AS_IT_SAYS,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
        log: RequestLog | None = None,
    ) -> None:
        self._source = source
        # A run that only reads: what it has to say is about the trace, not about a variant.
        read_with = Topology(block=BlockSpec(tokens=block_tokens))
        self.reading = TraceRun(
            [source], read_with, reading=reading, skip_bad=skip_bad, on_bytes=on_bytes, rules=RequestRules(log=log)
        )
        self.runs: list[TraceRun] = []
        # Runs that know blocks in the same way share their table of them: the first one's loop fills it.
        self._leaders: dict[tuple[str, str], TraceRun] = {}
        self._led: list[TraceRun] = []
        for topology, load_filter, by_tag in variants:
            key = (topology.replay.identity, topology.replay.tail)
            leader = self._leaders.get(key)
            run = TraceRun(
                [source],
                topology,
                load_filter,
                table=None if leader is None else leader.loop.table,
                rules=RequestRules(by_tag),
            )
            self.runs.append(run)
            self._led.append(self._leaders.setdefault(key, run))
        self._ends = [_Ends(run) for run in self.runs]
        self.differences = Differences(keep, against_first=[AgainstFirst() for _ in variants])

    @property
    def block_tokens(self) -> int:
        """Tokens a block; settled once the trace is read."""
        return self.reading.loop.block_tokens

    @property
    def requests(self) -> int:
        """How many requests the trace has, as far as it is read."""
        return self.runs[0].loop.requests

    def moved(self) -> list[dict[str, Moved]]:
        """For each variant the blocks that its tiers moved, by tier."""
        return [
            {
                tier.name: Moved(read, written)
                for tier, read, written in zip(run.manager.tiers, counters.read, counters.written, strict=True)
            }
            for run in self.runs
            for counters in (run.manager.counters,)
        ]

    def remote_reads(self) -> list[int]:
        """For each variant the blocks that arrived from tiers that are declared remote."""
        return [
            sum(moved[tier.name].read for tier in run.topology.tiers if tier.locality is Locality.REMOTE)
            for run, moved in zip(self.runs, self.moved(), strict=True)
        ]

    def run(self) -> None:
        """Replay to the end."""
        settled = False
        for request in self.reading.requests():
            if not settled:
                settled = True
                for run in self.runs:
                    run.settle_block_tokens(self.block_tokens, self._source.name)
            self._replay(request)
        for run in self.runs:
            run.warn_at_end()

    def _replay(self, request: Request) -> None:
        arrivals = {}
        for leader in self._leaders.values():
            known = len(leader.loop.table)
            arrivals[id(leader)] = (*leader.loop.arrived(request), known)
        longest: Sequence[BlockKey] = ()
        for run, leader in zip(self.runs, self._led, strict=True):
            keys, first_new, known = arrivals[id(leader)]
            if run is not leader:
                run.loop.meet(known)
            run.loop.replay(keys, run.filter_of(request), first_new, run.limits_of(request, len(keys)))
            if len(keys) > len(longest):
                longest, table = keys, run.loop.table
        first, *others = self._ends
        if longest and not all(ends.resembles(first) for ends in others):
            spans = tuple(
                ends.spans(arrivals[id(leader)][0]) for ends, leader in zip(self._ends, self._led, strict=True)
            )
            differing = sum(stop - start for start, stop, _ in differing_spans(spans))
            if differing:
                served = tuple(ends.loaded for ends in self._ends)
                number = self.requests - 1
                self.differences.add(Difference(number, request.request_id, served, spans, differing, longest, table))


def differing_spans(
    spans: Sequence[Sequence[Span]],
) -> Iterator[tuple[int, int, tuple[tuple[Outcome, str | None] | None, ...]]]:
    """Where not all of several accounts of a request agree: first index, the one behind the last, and how the blocks
    there ended in each (None where an account does not reach that far)."""
    start = 0
    for stop in sorted({span.stop for each in spans for span in each}):
        ends = tuple(next(((span.outcome, span.tier) for span in each if span.stop >= stop), None) for each in spans)
        if any(end != ends[0] for end in ends):
            yield start, stop, ends
        start = stop


def differing_blocks(difference: Difference) -> Iterator[BlockDifference]:
    """The blocks of a request that ended in another way in some variant, in order."""
    for start, stop, ends in differing_spans(difference.spans):
        outcomes = tuple(None if end is None else end[0] for end in ends)
        tiers = tuple(None if end is None else end[1] for end in ends)
        for index in range(start, stop):
            key = difference.keys[index]
            name = difference.table.name(key) if isinstance(key, int) else str(key)
            yield BlockDifference(index, name, outcomes, tiers)
