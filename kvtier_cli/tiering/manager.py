"""The embedded manager: decides as vLLM 0.33's TieringOffloadingManager does, with no GPU and no server.

It owns the protocol between requests, the primary and the secondary tiers: lookups and promotions, stores and
cascades, steps, resets. Where blocks lie and who is evicted is `primary.py` and `policies/`; what a secondary tier
does with a job is `secondary.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kvtier_cli.errors import ManagerError
from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.filters import ALL, TierFilter
from kvtier_cli.tiering.jobs import RequestContext
from kvtier_cli.tiering.lookup import Lookup, PrefixAnswer
from kvtier_cli.tiering.model import BlockKey, LoadSource, LookupResult, OffloadingEvent, OffloadPolicy, load_source
from kvtier_cli.tiering.observer import Hooks, Observer
from kvtier_cli.tiering.primary import PENDING, Primary
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology
from kvtier_cli.tiering.transfers import Transfers

_NO_BLOCKS: Final[dict[BlockKey, None]] = {}  # stays empty: for reading


class PreparedStore(Struct, frozen=True, gc=False):
    """What a store may write: `keys` (the offered blocks that were absent), and what was `evicted` for it."""

    keys: list[BlockKey]
    evicted: list[BlockKey]


class TieringManager:
    """A primary and its secondary tiers, in lookup order.

    With `events` it collects what `take_events` hands out. Calls about a request that is unknown, or finished where
    that matters, raise `ManagerError` and change nothing.
    """

    def __init__(
        self,
        topology: Topology,
        tiers: Sequence[SecondaryTierManager] | None = None,
        *,
        observer: Observer | None = None,
        events: bool = False,
    ) -> None:
        self.topology = topology
        self.primary = Primary(topology.primary.capacity, topology.primary.policy)
        self.tiers: Sequence[SecondaryTierManager] = (
            [SecondaryTier(spec) for spec in topology.tiers] if tiers is None else list(tiers)
        )
        self._all_tiers = range(len(self.tiers))
        self.counters = Counters(len(self.tiers))
        self.requests: dict[Hashable, RequestState] = {}
        self._hooks = Hooks(observer)
        self.transfers = Transfers(self.primary, self.tiers, self.requests, self.counters, self._hooks, events=events)
        self._request_level = [index for index, tier in enumerate(self.tiers) if tier.request_level]
        self._offload_policy = OffloadPolicy.REQUEST_LEVEL if self._request_level else OffloadPolicy.CHUNK_LEVEL
        silent = SecondaryTierManager.on_new_request
        self._hear_of_arrivals = [tier for tier in self.tiers if type(tier).on_new_request is not silent]
        self._scans: dict[TierFilter, list[tuple[int, SecondaryTierManager, bool]]] = {}
        self._last_filter: TierFilter | None = None
        self._last_scan: list[tuple[int, SecondaryTierManager, bool]] = []
        self._loads: dict[Hashable, list[list[BlockKey]]] = {}
        self._lookup = Lookup(self.primary, self.tiers, self.transfers, self.counters, self._hooks)
        self._polled = False
        self.observe(observer)

    def observe(self, observer: Observer | None) -> None:
        """Tell `observer` of all decisions from now on, in the place of the one before."""
        hooks = self._hooks
        hooks.listen(observer)
        for tier in self.tiers:
            tier.tell_evicted = hooks.evicted
        # Who hears of single lookups, or of each eviction's event, gets promotions one by one.
        self._lookup.promotes_runs = (
            hooks.lookup is None and not self.transfers.collects_events and self.primary.policy.evicts_in_order
        )

    # Requests

    def on_new_request(self, req_id: Hashable, load_filter: TierFilter = ALL) -> OffloadPolicy:
        """A request arrives, with the filter on the secondary tiers that may serve it."""
        if req_id in self.requests:
            raise ManagerError(f"request {req_id!r} is live already")
        context = RequestContext(req_id, load_filter)
        scan = self._last_scan if load_filter is self._last_filter else self._scan(load_filter)
        self.requests[req_id] = RequestState(context, scan)
        for tier in self._hear_of_arrivals:
            tier.on_new_request(context)
        if self._hooks.request is not None:
            self._hooks.request(req_id, load_filter)
        return self._offload_policy

    def _scan(self, load_filter: TierFilter) -> list[tuple[int, SecondaryTierManager, bool]]:
        """The tiers in lookup order, each with whether the filter admits it; computed once a filter."""
        scan = self._scans.get(load_filter)
        if scan is None:
            scan = self._scans[load_filter] = [
                (index, tier, load_filter.admits(tier.medium, tier.locality)) for index, tier in enumerate(self.tiers)
            ]
        self._last_filter, self._last_scan = load_filter, scan
        return scan

    def ever_admitted(self) -> list[bool]:
        """For each secondary tier, whether the filter of any request so far admitted it."""
        admitted = [False] * len(self.tiers)
        for scan in self._scans.values():
            for index, _, admits in scan:
                admitted[index] = admitted[index] or admits
        return admitted

    def set_positions(self, req_id: Hashable, keys: Sequence[BlockKey], positions: Sequence[int | None]) -> None:
        """Tell the token at which each block ends; None tells nothing, a later value replaces an earlier one."""
        self._live(req_id).set_positions(keys, positions)

    def on_request_finished(self, req_id: Hashable) -> None:
        """The request is over: what it accessed becomes recent; the tiers are told once its stores are done."""
        request = self._unfinished(req_id)
        self.primary.policy.commit(request)
        request.finished = True
        if self._hooks.request_finished is not None:
            self._hooks.request_finished(req_id)
        self._finalise_if_over(request)

    def _finalise_if_over(self, request: RequestState) -> None:
        if not request.finished or request.storing or request.parked:
            return
        req_id = request.context.req_id
        del self.requests[req_id]
        for tier in self.tiers:
            tier.on_request_finished(request.context)
        if self._hooks.tier_finished is not None:
            for tier in self.tiers:
                self._hooks.tier_finished(tier.name, req_id)

    def _live(self, req_id: Hashable) -> RequestState:
        request = self.requests.get(req_id)
        if request is None:
            raise ManagerError(f"request {req_id!r} is not known", hint="Announce it with on_new_request first.")
        return request

    def _unfinished(self, req_id: Hashable) -> RequestState:
        request = self.requests.get(req_id)
        if request is None or request.finished:
            self._live(req_id)
            raise ManagerError(f"request {req_id!r} is finished already")
        return request

    # Lookup

    def lookup(self, req_id: Hashable, key: BlockKey) -> LookupResult:
        """Look one block up: the primary, then the tiers that the request's filter admits, until one hits.

        vLLM 0.33: a hit in a secondary tier starts a promotion and answers HIT_PENDING; where the primary can give no
        slot the block is a MISS and later tiers are not asked.
        """
        request = self._unfinished(req_id)
        if not self._polled:
            self._poll()
        self.counters.lookups += 1
        return self._lookup.block(request, key)

    def lookup_prefix(self, req_id: Hashable, keys: Sequence[BlockKey]) -> PrefixAnswer:
        """Look blocks up in order until the first MISS, as `lookup` would one by one."""
        request = self._unfinished(req_id)
        if not self._polled:
            self._poll()
        return self._lookup.prefix(request, keys)

    def load_source(self, req_id: Hashable, key: BlockKey) -> LoadSource:
        """The label of a block that this request loads: by the tier that it promoted it from, else `host`."""
        tier = self._live(req_id).promoted.get(key)
        return LoadSource.HOST if tier is None else load_source(self.tiers[tier].medium)

    # Loads

    def prepare_load(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """Pin ready blocks while they are read into the GPU. `complete_load` with the same `keys` ends it."""
        self._access_ready(req_id, keys)
        if keys:
            self.primary.pin(keys)
            self._loads.setdefault(req_id, []).append(list(keys))

    def load(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """`prepare_load` and `complete_load` in one, where nothing can happen between them."""
        self._access_ready(req_id, keys)

    def _access_ready(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        request = self._unfinished(req_id)
        primary = self.primary
        if not primary.are_ready(keys):
            missing = next(key for key in keys if not primary.is_ready(key))
            raise ManagerError(f"block {missing!r} is not ready in the primary")
        unique = dict.fromkeys(keys)
        primary.policy.access(request, unique, unique)
        self.counters.blocks_loaded += len(keys)
        if self._hooks.loaded is not None:
            self._hooks.loaded(req_id, keys)

    def complete_load(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """The read is done; it may end after its request has finished."""
        if not keys:
            return
        loads = self._loads.get(req_id, [])
        try:
            loads.remove(list(keys))
        except ValueError:
            raise ManagerError(f"request {req_id!r} has no such load under way") from None
        if not loads:
            del self._loads[req_id]
        self.primary.unpin(keys)

    # Stores

    def prepare_store(self, req_id: Hashable, keys: Sequence[BlockKey]) -> PreparedStore | None:
        """Give the offered blocks that are absent a slot, all or nothing; None: refused.

        No offered block is evicted for it. vLLM 0.33: a refused store still counts as an access. A block given twice
        counts once (vLLM leaks a slot there).
        """
        request = self._unfinished(req_id)
        prepared = self._prepare_store(request, keys, PENDING)
        if prepared is not None:
            request.storing.append(prepared.keys)
        return prepared

    def store(self, req_id: Hashable, keys: Sequence[BlockKey]) -> PreparedStore | None:
        """`prepare_store` and `complete_store` in one, where the write succeeds and nothing can happen between them."""
        request = self._unfinished(req_id)
        prepared = self._prepare_store(request, keys, 1 if self.tiers else 0)
        if prepared is not None and prepared.keys:
            if self.transfers.collects_events:
                self.transfers.add_event(prepared.keys, removed=False)
            if self.tiers:
                self.transfers.cascade(self._all_tiers, req_id, prepared.keys)
        return prepared

    def _prepare_store(self, request: RequestState, keys: Sequence[BlockKey], pins: int) -> PreparedStore | None:
        req_id = request.context.req_id
        self._poll()
        primary = self.primary
        offered = dict.fromkeys(keys)
        if primary.resident.keys().isdisjoint(offered):
            absent = list(offered)
            ready = pending = protected = _NO_BLOCKS
            primary.policy.access(request, offered, ready)
        else:
            absent, ready, pending = primary.sorted_out(offered)
            protected = offered
            accessed = {key: None for key in offered if key not in pending} if pending else offered
            primary.policy.access(request, accessed, ready)
        evicted = primary.allocate(request, absent, protected, pins)
        if evicted is None:
            self.counters.refused += 1
            if self._hooks.refused is not None:
                self._hooks.refused(req_id, absent)
            return None
        if evicted:
            self.counters.evicted_by_stores += len(evicted)
            if self.transfers.collects_events:
                self.transfers.add_event(evicted, removed=True)
            if self._hooks.evicted is not None:
                self._hooks.evicted(req_id, PRIMARY_NAME, evicted)
        self.counters.blocks_stored += len(absent)
        if self._hooks.stored is not None:
            self._hooks.stored(req_id, absent, evicted)
        if self._request_level:
            if ready:
                primary.pin(ready)
                self.transfers.cascade(self._request_level, req_id, list(ready))
            if pending:
                for tier in self._request_level:
                    request.parked.setdefault(tier, []).extend(pending)
        return PreparedStore(absent, evicted)

    def complete_store(self, req_id: Hashable, keys: Sequence[BlockKey], success: bool = True) -> None:
        """The GPU→primary write of the `keys` of one prepared store has ended. Ready blocks cascade to all tiers."""
        request = self._live(req_id)
        try:
            request.storing.remove(list(keys) if type(keys) is not list else keys)
        except ValueError:
            raise ManagerError(f"request {req_id!r} has no such store under way") from None
        primary = self.primary
        if keys and success:
            if self.transfers.collects_events:
                self.transfers.add_event(keys, removed=False)
            if self.tiers:
                primary.make_ready_pinned(keys)
                self.transfers.cascade(self._all_tiers, req_id, keys)
            else:
                primary.make_ready(keys)
        elif keys:
            primary.give_back(keys)
        if request.finished:
            self._finalise_if_over(request)

    def touch(self, req_id: Hashable, keys: Sequence[BlockKey]) -> None:
        """Blocks are in use: make them recent everywhere, the last first. A touch is no access."""
        request = self._unfinished(req_id)
        self.primary.policy.touch(keys, self.primary.busy)
        for tier in self.tiers:
            tier.touch(keys, request.context)

    # Steps and resets

    def _poll(self) -> None:
        self._polled = True
        if self.transfers.jobs:
            self.transfers.poll()

    def on_schedule_end(self) -> None:
        """A step ends: poll if nothing has, submit queued promotions, retry parked cascades, tick the tiers."""
        if not self._polled:
            self._poll()
        self.transfers.submit_promotions()
        if self._request_level:
            for request in [request for request in self.requests.values() if request.parked]:
                self.transfers.retry_parked(request)
                self._finalise_if_over(request)
        for tier in self.tiers:
            tier.on_schedule_end()
        self._polled = False
        self.counters.steps += 1
        if self._hooks.step is not None:
            self._hooks.step()

    def reset_cache(self) -> None:
        """Empty the primary. Running jobs end first; secondary tiers keep their blocks; promotions are held until
        `on_reset_flushed`."""
        self.transfers.drain()
        self.primary.reset()
        self._loads.clear()
        for request in list(self.requests.values()):
            request.forget_accesses()
            request.forget_transfers()
            self._finalise_if_over(request)
        self.hold_promotions(True)
        self._polled = False
        if self._hooks.reset is not None:
            self._hooks.reset()

    def on_reset_flushed(self) -> None:
        """The GPU side has seen the reset: promotions may start again."""
        self.hold_promotions(False)

    def hold_promotions(self, held: bool) -> None:
        """Hold promotions as a reset does, or hold them no longer."""
        self._lookup.holds_promotions = held

    @property
    def holds_promotions(self) -> bool:
        """Whether a reset holds promotions until `on_reset_flushed`."""
        return self._lookup.holds_promotions

    def dump_state(self) -> dict[str, Any]:
        """Everything that decides how the manager goes on, for `load_state`, but for the blocks of the tiers and the
        state of the primary's policy, which are long.

        Raises ManagerError while a request is unfinished, and over tiers that are not kvtier's own, in memory.
        """
        unfinished = next((req_id for req_id, request in self.requests.items() if not request.finished), None)
        if unfinished is not None:
            raise ManagerError(f"request {unfinished!r} is not finished: only between requests can the state be kept")
        return {
            "primary": self.primary.dump_state(),
            "tiers": [tier.dump_state() for tier in self.own_tiers()],
            "transfers": self.transfers.dump_state(),
            "counters": self.counters.dump_state(),
            "requests": [(request.context, request.dump_state()) for request in self.requests.values()],
            "loads": {req_id: [tuple(keys) for keys in loads] for req_id, loads in self._loads.items()},
            "polled": self._polled,
            "filters": tuple(self._scans),
            "holds_promotions": self._lookup.holds_promotions,
        }

    def load_state(
        self, state: Mapping[str, Any], policy: dict[str, Any], blocks: Sequence[Sequence[BlockKey]]
    ) -> None:
        """Go back to a state that `dump_state` gave, with the policy's state of then and the blocks of each secondary
        tier, least recent first. It may be loaded again. Nobody hears of it."""
        for tier, kept, held in zip(self.own_tiers(), state["tiers"], blocks, strict=True):
            tier.load_state(kept, held)
        self.primary.load_state(state["primary"], policy)
        self.transfers.load_state(state["transfers"])
        self.counters.load_state(state["counters"])
        self._scans = {}
        self._last_filter, self._last_scan = None, []
        for load_filter in state["filters"]:  # the state may be of another manager, whose tiers are not these
            self._scan(load_filter)
        self.requests.clear()
        for context, kept in state["requests"]:
            request = self.requests[context.req_id] = RequestState(context, self._scan(context.load_filter))
            request.load_state(kept)
        self._loads = {req_id: list(map(list, loads)) for req_id, loads in state["loads"].items()}
        self._polled = state["polled"]
        self.hold_promotions(state["holds_promotions"])

    def own_tiers(self) -> list[SecondaryTier]:
        """The secondary tiers. Raises ManagerError where one is not of kvtier's own class."""
        own = [tier for tier in self.tiers if isinstance(tier, SecondaryTier)]
        if len(own) < len(self.tiers):
            raise ManagerError("only kvtier's own tiers can be put back into a state")
        return own

    def has_pending_work(self) -> bool:
        """Whether another step would do something: a job, a parked cascade, a tier at work. A promotion that is only
        queued does not count."""
        return (
            bool(self.transfers.jobs)
            or any(request.parked for request in self.requests.values())
            or any(tier.is_at_work() for tier in self.tiers)
        )

    def take_events(self) -> list[OffloadingEvent]:
        """What became resident or left since the last call: the primary's, then each tier's in topology order."""
        return self.transfers.take_events()
