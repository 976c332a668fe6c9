"""A trace's requests as numbers, read once: what is replayed again, from wherever, needs no parsing."""

from __future__ import annotations

from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.recorded_requests import RecordedRequests
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import ALL, FilterParse, TierFilter, lint_against, parse_tier_filter
from kvtier_cli.tiering.token_caps import BlockLimits
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.source import TraceSource


class Tape:
    """Grows while the trace is read, which happens when somebody asks for a request.

    `length` requests are there so far; `is_whole` once there are no more. Reading raises InputError at a line that is
    no request, and again each time it is asked to go on; what was read before it stays.
    """

    def __init__(
        self, source: TraceSource, topology: Topology, *, reading: TraceOptions = AS_IT_SAYS, skip_bad: bool = False
    ) -> None:
        self.source = source
        self.topology = topology
        self.read_bytes = 0
        self._run = TraceRun([source], topology, reading=reading, skip_bad=skip_bad, on_bytes=self._count_bytes)
        self._requests = RecordedRequests(self._run)
        self._fault: Exception | None = None
        self._parses: dict[int, tuple[FilterParse, FilterParse]] = {}
        self._numbers: dict[str, int] = {}
        self._numbered = 0
        self.unfiltered = lint_against(parse_tier_filter(), topology.tiers)

    def _count_bytes(self, count: int) -> None:
        self.read_bytes += count

    @property
    def length(self) -> int:
        return len(self._requests)

    @property
    def is_whole(self) -> bool:
        return self._requests.is_whole

    @property
    def table(self) -> BlockTable:
        """The names of the blocks, which go by numbers here."""
        return self._run.loop.table

    @property
    def block_tokens(self) -> int:
        """Tokens a block; settled with the first request."""
        return self._run.loop.block_tokens

    @property
    def warnings(self) -> list[str]:
        """What the reader of a result should know about the trace; whole once it is."""
        return self._run.warnings

    @property
    def expected(self) -> int:
        """How many requests there will be, as far as can be told by the bytes that are left."""
        if self.is_whole or not self.read_bytes:
            return self.length
        return max(self.length, round(self.length * self.source.size / self.read_bytes))

    def has(self, index: int) -> bool:
        """Whether there is a request `index`; reads on to it where that is not known yet."""
        requests = self._requests
        if index < len(requests):
            return True
        if requests.is_whole:
            return False
        if self._fault is not None:
            raise self._fault
        try:
            return requests.read_to(index + 1) > index
        except Exception as fault:
            self._fault = fault
            raise

    def keys(self, index: int) -> list[int]:
        """The blocks of a request, by their numbers."""
        return self._requests.numbers(index)

    def filter(self, index: int) -> TierFilter:
        """The filter that a request carries itself."""
        request = self._requests.head(index)
        return ALL if request.params is None else self._run.parse_of(request).filter

    def parse(self, index: int) -> FilterParse:
        """The filter that a request carries itself, as vLLM reads it."""
        read = self._run.parse_of(self._requests.head(index))
        known = self._parses.get(id(read))
        if known is None or known[0] is not read:
            # Kept with what it was read as, so that its id stays its own.
            known = self._parses[id(read)] = read, lint_against(read, self.topology.tiers)
        return known[1]

    def limits(self, index: int) -> BlockLimits | None:
        """What the caps that a request carries come to, in blocks; None where it carries none."""
        request = self._requests.head(index)
        return None if request.params is None else self._run.limits_of(request, self._requests.length(index))

    def label(self, index: int) -> str:
        """What a request is called: its own id, else its number."""
        return self._requests.name(index)

    def own_id(self, index: int) -> str | None:
        """Its own id in the trace, where it has one."""
        return self._requests.head(index).request_id

    def number_of(self, request_id: str) -> int | None:
        """The first request with that id of its own, as far as the trace is read."""
        for index in range(self._numbered, self.length):
            own = self._requests.head(index).request_id
            if own is not None:
                self._numbers.setdefault(own, index)
        self._numbered = self.length
        return self._numbers.get(request_id)

    def find_block(self, block: int, start: int, *, backwards: bool = False) -> int | None:
        """The next request behind `start` that has a block, or the last one in front of it, as far as was read."""
        found = self._requests.requests_with(block)
        found = found[found < start][-1:] if backwards else found[found > start][:1]
        return int(found[0]) if len(found) else None
