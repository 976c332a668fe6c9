"""A trace through the replay loop: sources in, figures out. Ties readers, filters, manager and outcomes together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from kvtier_cli.errors import InputError
from kvtier_cli.replay.figures import figures
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.loop import ReplayLoop, Served
from kvtier_cli.replay.outcomes import BlockHistory, OutcomeSums, keeps_everything
from kvtier_cli.replay.own_params import OwnParams
from kvtier_cli.replay.patterns import pattern_warnings
from kvtier_cli.replay.request_rules import NO_RULES, JoinedLog, RequestRules
from kvtier_cli.tiering.filters import ALL, FilterParse, TierFilter, lint_against
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from kvtier_cli.tiering.secondary import SecondaryTierManager
from kvtier_cli.tiering.token_caps import LOAD_KEY, OFFLOAD_KEY, BlockLimits
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import AS_IT_SAYS, BLOCK_TOKENS, TraceOptions
from kvtier_cli.traces.order import in_arrival_order
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.wording import count


@dataclass(frozen=True, slots=True)
class KeptTiers:
    """Secondary tiers that outlive the run, whose blocks go by texts (`text_keys.py`).

    `starts_empty`: no tier, the primary neither, has blocks of earlier runs. `block_tokens`: the size of their blocks,
    None where it is not settled yet. `settle` is told the size of the run's blocks before anything is stored.
    """

    tiers: Sequence[SecondaryTierManager]
    starts_empty: bool = True
    block_tokens: int | None = None
    settle: Callable[[int], object] | None = None


class TraceRun:
    """One run of a manager over one trace, or over several one after another.

    `kept` gives it the tiers; without, it makes some in memory. `table` is one that it shares with other runs.
    `load_filter` applies to every request; None leaves each its own; `rules` say more about single ones. `reading`:
    what the traces leave open. `on_bytes` hears of progress. With `timed` it adds up in `read_seconds` what reading
    took, sorting included.
    """

    def __init__(
        self,
        sources: Sequence[TraceSource],
        topology: Topology,
        load_filter: TierFilter | None = None,
        *,
        reading: TraceOptions = AS_IT_SAYS,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
        events: bool = False,
        timed: bool = False,
        kept: KeptTiers | None = None,
        table: BlockTable | None = None,
        rules: RequestRules = NO_RULES,
    ) -> None:
        self.topology = topology
        self._rules = rules
        self._sources = sources
        self._load_filter = load_filter
        self._options = reading
        self._skip_bad = skip_bad
        self._on_bytes = on_bytes
        self._timed = timed
        self.read_seconds = 0.0
        self.history = BlockHistory(evictions=not keeps_everything(topology), numbered=kept is None)
        tiers = None if kept is None else kept.tiers
        self.manager = TieringManager(topology, tiers, observer=self.history, events=events)
        self.sums = OutcomeSums(self.manager, self.history)
        self._settled = None if kept is None else kept.block_tokens
        self._settle = None if kept is None else kept.settle
        self.loop = ReplayLoop(
            self.manager,
            topology.replay,
            self._settled or topology.block.tokens or BLOCK_TOKENS,
            self.sums,
            text_keys=kept is not None,
            starts_empty=kept is None or kept.starts_empty,
            table=table,
        )
        self.formats: list[str] = []
        """What `--format` calls the formats of the traces that were read so far, one a source."""
        self.request: Request | None = None
        """The request that is being replayed, as its trace has it."""
        self.warnings: list[str] = []
        """What the reader of a result should know about the traces; whole once they are read."""
        self._listeners: list[Observer] = []
        self._own = OwnParams()
        self._joined = None if rules.log is None else JoinedLog(rules.log)
        self._warned: Counter[str] = Counter()

    def listen(self, *observers: Observer) -> None:
        """Let `observers` too hear of the manager's decisions from now on, besides the run's own history."""
        self._listeners += observers
        self.manager.observe(ObserverGroup([self.history, *self._listeners]))

    def filter_of(self, request: Request) -> TierFilter:
        """The filter that holds for a request: by the rules, else the run's, else its own, read as vLLM reads it."""
        rule = None
        if self._rules.by_tag:
            rule = self._rules.rule_for(request)
            if rule is not None:
                self._warned[f"met {rule.text}"] += 1
                if rule.parse is not None:
                    return rule.parse.filter
        if rule is None and self._load_filter is not None:
            return self._load_filter
        if request.params is None:
            return ALL
        parse = self.parse_of(request)
        if parse.warnings or parse.fails_open:
            self._warned["warnings"] += len(parse.warnings)
            self._warned["fails_open"] += parse.fails_open
        return parse.filter

    def parse_of(self, request: Request) -> FilterParse:
        """How vLLM reads the filter that a request carries itself."""
        return self._own.of(request).parse

    def held_parse_of(self, request: Request, for_all: FilterParse | None = None) -> FilterParse:
        """How the filter that holds for a request reads, with its lint against the tiers of this run. `for_all`: how
        the run's does."""
        self.filter_of(request)  # counts what is to be warned about
        rule = self._rules.rule_for(request)
        parse = for_all if rule is None else rule.parse
        return lint_against(self.parse_of(request), self.topology.tiers) if parse is None else parse

    def limits_of(self, request: Request, blocks: int) -> BlockLimits | None:
        """What the caps that a request carries come to for its `blocks`; None where it carries none. `--tiers` does not
        change them, as vLLM's filter does not."""
        if request.params is None:
            return None
        own = self._own.of(request)
        if own.refused_caps:
            self._warned["caps"] += own.refused_caps
        return None if own.caps is None else own.caps.limits(blocks, self.loop.block_tokens, request.input_length)

    def requests(self) -> Iterator[Request]:
        """The requests of all sources in arrival order, each source's for itself; `block_tokens` is settled with the
        first."""
        self.formats = []
        for source in self._sources:
            reader = read_trace(
                source,
                self._options,
                block_tokens=self.topology.block.tokens,
                skip_bad=self._skip_bad,
                on_bytes=self._on_bytes,
            )
            self.formats.append(reader.format)
            self._own.reading = source.name
            started = perf_counter()
            ordered, fall = in_arrival_order(reader)
            self.read_seconds += perf_counter() - started
            first = True
            if self._joined is not None:
                ordered = self._joined.join(ordered)
            for request in self._timed_reading(ordered) if self._timed else ordered:
                if first:
                    first = False
                    self.settle_block_tokens(reader.block_tokens, source.name)
                self.request = request
                yield request
            if fall is not None:
                self._warn(
                    f"{source.name}: its timestamps are out of order from {reader.RECORD} {fall:,} on; "
                    "the requests were sorted"
                )
            for warning in reader.warnings:
                self._warn(f"{source.name}: {warning}")
        if self._joined is not None:
            for warning in self._joined.warnings():
                self._warn(warning)

    def settle_block_tokens(self, tokens: int, name: str) -> None:
        """The blocks of the trace `name`, which is being read, have `tokens` tokens. Raises InputError where those of
        an earlier one have not."""
        self._own.reading = name
        if self._settled is not None and tokens != self._settled:
            raise InputError(f"blocks of {tokens:,} tokens cannot join blocks of {self._settled:,}", file=name)
        said = self.topology.block
        if self._settled is None and said.bytes_per_token and said.tokens and said.tokens != tokens:
            self._warn(
                f"{name}: its blocks have {tokens:,} tokens, not the {said.tokens:,} that the topology says: "
                f"capacities given there as sizes count blocks of {said.tokens:,} tokens"
            )
        self._settled = self.loop.block_tokens = tokens
        if self._settle is not None:
            self._settle(tokens)

    def _timed_reading(self, requests: Iterable[Request]) -> Iterator[Request]:
        stream = iter(requests)
        while True:
            started = perf_counter()
            request = next(stream, None)
            self.read_seconds += perf_counter() - started
            if request is None:
                return
            yield request

    def steps(self) -> Iterator[Served]:
        """Replay; each request is over when its result comes out."""
        yield from self.loop.run(self.requests(), self.filter_of, self.limits_of)
        self.warn_at_end()

    def warn_at_end(self) -> None:
        """All requests are over: what is to be said of their own filters, and of what happened, joins the warnings."""
        self.warn_of_filters()
        own = self._load_filter is None and not self._rules.by_tag
        for warning in pattern_warnings(self.loop, self.sums, own_filters=own):
            self._warn(warning)

    def warn_of_filters(self) -> None:
        """What is to be said of the filters and caps of the requests that were read joins the warnings."""
        logged, open_ = self._warned["warnings"], self._warned["fails_open"]
        if logged:
            self._warn(f"vLLM would log {count(logged, 'warning')} about the requests' filters")
        if open_:
            self._warn(f"the filters of {count(open_, 'request')} fail open: they admit all")
        for rule in self._rules.by_tag:
            if not self._warned[f"met {rule.text}"]:
                self._warn(f"no request got the filter for {rule.text}")
        caps = self._warned["caps"]
        if caps:
            self._warn(
                f"vLLM would log {count(caps, 'warning')} about the requests' {LOAD_KEY} and {OFFLOAD_KEY}: what is "
                "no whole number from 0 on caps nothing"
            )

    def _warn(self, warning: str) -> None:
        """What has been said stays said, however often the trace is read or its end replayed."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def dump_state(self) -> dict[str, Any]:
        """Everything that decides how the run goes on, but for its place in the trace and what the manager's own leaves
        out, for `load_state`."""
        return {
            "manager": self.manager.dump_state(),
            "history": self.history.dump_state(),
            "sums": self.sums.dump_state(),
            "loop": self.loop.dump_state(),
            "warned": dict(self._warned),
            "request": self.request,
        }

    def load_state(
        self, state: Mapping[str, Any], policy: dict[str, Any], blocks: Sequence[Sequence[BlockKey]]
    ) -> None:
        """Go back to a state that `dump_state` gave; `TieringManager.load_state` says what the rest is. What other
        observers have heard stays heard."""
        self.manager.load_state(state["manager"], policy, blocks)
        self.history.load_state(state["history"])
        self.sums.load_state(state["sums"])
        self.loop.load_state(state["loop"])
        self._warned = Counter(state["warned"])
        self.request = state["request"]

    def arrival_seconds(self) -> float | None:
        """When the request under replay arrived, by its trace, in seconds."""
        timestamp = None if self.request is None else self.request.timestamp
        return None if timestamp is None else timestamp / 1000

    def run(self) -> dict[str, Any]:
        """Replay to the end and return the figures."""
        for _ in self.steps():
            pass
        return self.figures()

    def figures(self) -> dict[str, Any]:
        """The figures of what was replayed so far."""
        return figures(self.loop, self.sums, self.topology)

    def own_filters(self) -> list[tuple[TierFilter, FilterParse]]:
        """The distinct filters that requests carried themselves, in order of first sight, as far as remembered."""
        return list(self._own.filters())
