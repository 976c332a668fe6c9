"""The replay loop: a trace's requests through a manager, one after another, as a server without a queue would.

Each request is looked up until nothing is pending, loads what it hit, stores the rest and finishes. Decides nothing
that the manager decides; reads no files.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from msgspec import Struct

from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.replay.text_keys import TextKeys
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.tiering.lookup import PrefixAnswer
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LoadSource, load_source
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.token_caps import BlockLimits
from kvtier_cli.tiering.topology import ReplaySpec
from kvtier_cli.traces.model import Request

_COUNTERS: Final = (
    *("requests", "blocks", "wait_steps", "gave_up", "loaded_promoted"),
    *("too_large", "largest", "stored_nothing", "_seen"),
)
_NOTHING_SOUGHT = PrefixAnswer(0, False)


class Served(Struct, frozen=True, gc=False):
    """What one request got. `req_id` counts requests from 0; the first `loaded` of its blocks were served; `passes`
    counts looks at the prefix; `refused` batches of its stores found no slots."""

    req_id: int
    keys: Sequence[BlockKey]
    loaded: int
    passes: int
    gave_up: bool
    refused: int


class PassWatcher(Protocol):
    """Whoever wants to look at the tiers as they stand when a request's last pass ends, before it loads and stores."""

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        """The first `loaded` of `keys` will be loaded; no block from index `first_new` on was in any request before."""


class ReplayLoop:
    """Drives requests through `manager`. `block_tokens` gives the blocks their positions.

    Blocks are numbers of `table`, which loops over the same trace may share; with `text_keys` they are the texts that
    stand for these in every run. `starts_empty` says that no tier had blocks of earlier runs.

    The counters hold what was replayed so far: `requests`, `blocks` (references), `wait_steps` (steps that a request
    waited), `gave_up` (requests that waited too long), `loaded_promoted` (blocks loaded that the same request promoted,
    by tier), `too_large` (stores of more blocks than the primary has slots, all refused; `largest` the most blocks of
    one), `stored_nothing` (other requests whose every store was refused).
    """

    def __init__(
        self,
        manager: TieringManager,
        spec: ReplaySpec,
        block_tokens: int,
        watcher: PassWatcher | None = None,
        *,
        text_keys: bool = False,
        starts_empty: bool = True,
        table: BlockTable | None = None,
    ) -> None:
        self.manager = manager
        self.watcher = watcher
        self.spec = spec
        self.block_tokens = block_tokens
        self.table = BlockTable(by_id=spec.identity == "id") if table is None else table
        self.text_keys = TextKeys(self.table) if text_keys else None
        # All blocks behind a new chain are new; of ids as they are, and after other runs, nothing can be said.
        self._knows_new = spec.identity != "id" and starts_empty
        self._may_repeat = spec.identity == "id"
        self._faulty = [
            tier
            for tier in manager.tiers
            if isinstance(tier, SecondaryTier) and (tier.spec.fail_loads or tier.spec.fail_stores)
        ]
        self.prompt: Sequence[int] = ()
        """The blocks that `keys` gave last, by their numbers in `table`."""
        self.pass_ended: Callable[[int, Sequence[BlockKey], PrefixAnswer], object] | None = None
        """Is told what each look at a request's prefix, as far as its caps let it look, has found, the last one too
        (before the watcher)."""
        self._seen = 0
        """No block with this number or a higher one was in a request that was replayed: the table may know more."""
        self.stores = True
        """Whether requests store what they were not served: with False they only look up, load and finish."""
        self.requests = 0
        self.blocks = 0
        self.wait_steps = 0
        self.gave_up = 0
        self.loaded_promoted = [0] * len(manager.tiers)
        self.too_large = 0
        self.largest = 0
        self.stored_nothing = 0

    def numbers(self, request: Request) -> list[int]:
        """The blocks of a request by their numbers in `table`, without its partly filled last block where the replay
        drops tails."""
        ids = request.hash_ids
        if self.spec.tail == "drop":
            ids = ids[: request.input_length // self.block_tokens]
        return self.table.keys(ids)

    def keys(self, request: Request) -> Sequence[BlockKey]:
        """The blocks, as the manager knows them, of a request that is to be replayed next."""
        return self.arrived(request)[0]

    def marked_numbers(self, request: Request) -> list[int]:
        """`numbers`, and the tiers know which of the new ones are to fail."""
        known = len(self.table) if self._faulty else 0
        numbers = self.prompt = self.numbers(request)
        if self._faulty:
            self._mark_new(known)
        return numbers

    def meet(self, known: int) -> None:
        """The blocks of `table` from number `known` on, which another loop has put there, are to be replayed next."""
        if self._faulty:
            self._mark_new(known)
        self._seen = len(self.table)

    def _mark_new(self, known: int) -> None:
        if len(self.table) > known:
            self.mark_faulty(range(known, len(self.table)))

    def arrived(self, request: Request) -> tuple[Sequence[BlockKey], int]:
        """The blocks, as the manager knows them, of a request that is to be replayed next, and the index from which on
        no request had one before."""
        numbers = self.marked_numbers(request)
        keys = numbers if self.text_keys is None else self.text_keys.keys(numbers)
        return keys, self.first_new(numbers)

    def mark_faulty(self, numbers: Sequence[int]) -> None:
        """A topology names the blocks that are to fail by their labels; tell the tiers which of the new ones these are,
        whatever is in front of them."""
        keys = numbers if self.text_keys is None else self.text_keys.keys(numbers)
        labels = [str(self.table.labels[number]) for number in numbers]
        for tier in self._faulty:
            spec = tier.spec
            loads, stores = (
                marked.union([key for key, label in zip(keys, labels, strict=True) if label in marked])
                for marked in (spec.fail_loads, spec.fail_stores)
            )
            tier.spec = replace(spec, fail_loads=loads, fail_stores=stores)

    def run(
        self,
        requests: Iterable[Request],
        filter_of: Callable[[Request], TierFilter],
        limits_of: Callable[[Request, int], BlockLimits | None] | None = None,
    ) -> Iterator[Served]:
        """Replay `requests` in the order given; each is over when its result comes out. `limits_of` is given a request
        that carries parameters, and the number of its blocks."""
        for request in requests:
            keys, first_new = self.arrived(request)
            limits = None
            if limits_of is not None and request.params is not None:
                limits = limits_of(request, len(keys))
            yield self.replay(keys, filter_of(request), first_new, limits)

    def first_new(self, numbers: Sequence[int]) -> int:
        """From which block on a request, the next one to be replayed, has blocks that no request before it had; their
        count where that is not known. (Along a chain numbers rise: a block is never seen before its parent.)"""
        if not numbers or not self._knows_new or numbers[-1] < self._seen:
            return len(numbers)
        first = bisect_left(numbers, self._seen)
        self._seen = numbers[-1] + 1
        return first

    def dump_state(self) -> dict[str, Any]:
        """The counters, for `load_state`. The table of blocks and the size of a block are facts about the trace."""
        return {name: _copy(getattr(self, name)) for name in _COUNTERS}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `dump_state` gave; it may be loaded again."""
        for name, value in state.items():
            setattr(self, name, _copy(value))

    def replay(
        self,
        keys: Sequence[BlockKey],
        load_filter: TierFilter,
        first_new: int | None = None,
        limits: BlockLimits | None = None,
    ) -> Served:
        """One request, from its arrival to the end of the step in which it finishes. See `PassWatcher` for
        `first_new`; where nobody knows, any block may have been there before.

        Under `limits` only the leading `load` blocks are looked up, none at all if that is 0, and only blocks among the
        leading `store` are stored: what a request was kept from loading it stores like all that it had to compute.
        """
        manager = self.manager
        req_id = self.requests
        total = len(keys)
        tokens = self.block_tokens
        manager.on_new_request(req_id, load_filter)
        ends = range(tokens, tokens * (total + 1), tokens)
        if self._may_repeat:
            manager.set_positions(req_id, keys, ends)
        else:
            manager.requests[req_id].set_prompt(keys, ends)

        sought = keys
        if limits is not None:
            manager.requests[req_id].limits = limits
            sought = keys[: limits.load]
        answer = manager.lookup_prefix(req_id, sought) if sought or limits is None else _NOTHING_SOUGHT
        passes = 1
        hear = self.pass_ended
        while answer.pending and passes <= self.spec.max_wait_steps:
            if hear is not None:
                hear(req_id, sought, answer)
            manager.on_schedule_end()
            answer = manager.lookup_prefix(req_id, sought)
            passes += 1
        if hear is not None:
            hear(req_id, sought, answer)
        loaded = self._ready_prefix(sought) if answer.pending else answer.length
        if self.watcher is not None:
            self.watcher.last_pass(req_id, keys, loaded, answer.pending, total if first_new is None else first_new)
        if loaded:
            self._load(req_id, keys if loaded == total else keys[:loaded])
        last = total if limits is None else limits.store
        refused = self._store(req_id, keys[loaded:last]) if loaded < last and self.stores else 0
        manager.on_request_finished(req_id)
        manager.on_schedule_end()

        self.requests += 1
        self.blocks += total
        self.wait_steps += passes - 1
        self.gave_up += answer.pending
        return Served(req_id, keys, loaded, passes, answer.pending, refused)

    def _ready_prefix(self, keys: Sequence[BlockKey]) -> int:
        is_ready = self.manager.primary.is_ready
        return next((index for index, key in enumerate(keys) if not is_ready(key)), len(keys))

    def _load(self, req_id: int, keys: Sequence[BlockKey]) -> None:
        manager = self.manager
        manager.load(req_id, keys)
        promoted = manager.requests[req_id].promoted
        if promoted:
            tiers = [promoted[key] for key in keys if key in promoted]
            for tier in range(len(manager.tiers)):
                self.loaded_promoted[tier] += tiers.count(tier)

    @property
    def loaded_by_source(self) -> dict[LoadSource, int]:
        """Blocks loaded, by vLLM's label of where they came from."""
        loaded = dict.fromkeys(LoadSource, 0)
        for tier, count in zip(self.manager.tiers, self.loaded_promoted, strict=True):
            loaded[load_source(tier.medium)] += count
        loaded[LoadSource.HOST] += self.manager.counters.blocks_loaded - sum(self.loaded_promoted)
        return loaded

    def _store(self, req_id: int, keys: Sequence[BlockKey]) -> int:
        """Store blocks, a step between batches; returns how many batches were refused."""
        manager = self.manager
        batch = self.spec.store_batch_blocks or len(keys)
        refused = 0
        for start in range(0, len(keys), batch):
            if start:
                manager.on_schedule_end()
            refused += manager.store(req_id, keys[start : start + batch]) is None
        if refused:
            self._count_refusals(keys, batch, refused)
        return refused

    def _count_refusals(self, keys: Sequence[BlockKey], batch: int, refused: int) -> None:
        sizes = [len(set(keys[start : start + batch])) for start in range(0, len(keys), batch)]
        too_large = [size for size in sizes if size > self.manager.primary.capacity]
        self.too_large += len(too_large)
        self.largest = max([self.largest, *too_large])
        self.stored_nothing += refused == len(sizes) and not too_large


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, list) else value
