"""A slice of a trace as a scripted fixture: one request, and what it takes of the state before it to come to the same
outcomes by itself.

What is cut is tried out, smallest first: a state is reduced, the request is replayed from it, and the first reduction
that gives each block the outcome and the tier that it had stands. The text of it is `slice_text.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvtier_cli.errors import InputError, ManagerError
from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_fixture
from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.replay.outcomes import AbsentReason
from kvtier_cli.replay.preset import named_state, raw_state
from kvtier_cli.replay.slice_names import BlockNames
from kvtier_cli.replay.slice_reduce import Reduced, reductions
from kvtier_cli.replay.slice_text import Origin, fixture_text
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.replay.trace_teller import TraceTeller
from kvtier_cli.replay.whole_requests import BLOCK_TOKENS
from kvtier_cli.tiering.filters import MISSING, FilterParse
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.token_caps import LOAD_KEY, OFFLOAD_KEY, BlockLimits
from kvtier_cli.tiering.topology import BlockSpec, Topology


@dataclass(frozen=True, slots=True)
class Slice:
    """The `text` of a fixture, the `story` that it was saved for, and how many blocks its state has, of how many that
    there were; a block counts once in each tier."""

    text: str
    story: RequestStory
    blocks_kept: int
    blocks_before: int


def save_request(
    run: TraceRun,
    index: int,
    parse: FilterParse | None = None,
    *,
    trace: str,
    note: str | None = None,
) -> Slice:
    """Replay what is before request `index` of a run that has not begun, and save that request, under `parse` or else
    its own filter. What is left of the trace is then only read, for `run.warnings`. `trace` is what the fixture calls
    its source."""
    teller = TraceTeller(run)
    teller.replay(index)
    arrived = teller.arrive(for_all=parse)
    origin = Origin(trace, index, arrived.request.request_id, note)
    saved = save_slice(
        run,
        arrived.keys,
        arrived.parse,
        label=arrived.label,
        origin=origin,
        request_name=teller.name,
        limits=arrived.limits,
    )
    teller.skip_rest()
    run.warn_of_filters()
    return saved


def save_slice(
    run: TraceRun,
    keys: Sequence[BlockKey],
    parse: FilterParse,
    *,
    label: str,
    origin: Origin,
    request_name: Callable[[Hashable], str] = lambda req_id: f"r{req_id}",
    limits: BlockLimits | None = None,
) -> Slice:
    """Replay one more request of `run`, the blocks `keys` under the filter `parse` and with the caps that `limits`
    stand for, and save it as a fixture.

    Raises ManagerError within another request, and InputError where the whole state does not do either, or is too
    large for a fixture.
    """
    unfinished = next((req_id for req_id, request in run.manager.requests.items() if not request.finished), None)
    if unfinished is not None:
        raise ManagerError(f"request {unfinished!r} is not finished: only between requests can a slice begin")
    state = raw_state(run.manager)
    losses = {key: run.history.last_loss(key) for key in dict.fromkeys(keys)}
    topology = _as_it_stands(run)
    story = tell_story(
        run.loop,
        keys,
        parse,
        run.history,
        label=label,
        block_tokens=run.loop.block_tokens,
        request_name=request_name,
        limits=limits,
    )
    stop = story.stop
    if stop is not None and not stop.by_itself and stop.reason in (AbsentReason.EVICTED, AbsentReason.REFUSED):
        lost = [keys[stop.at]]
    else:
        lost = []
    wanted = _expectations(story)
    before = _count(state)
    for reduced in reductions(state, topology, keys):
        saved = _Saved(run, reduced, keys, lost, losses, parse, label, request_name, limits)
        if not saved.comes_to(wanted):
            continue
        text = saved.text(wanted, origin, before)
        if run_fixture(fixture_from_text(text, "the fixture.yaml")).verdict == "ok":
            return Slice(text, story, _count(reduced.state), before)
    raise InputError(
        "this request cannot be saved as a fixture",
        hint="From the state before it, it comes to other outcomes than in the trace.",
    )


def _as_it_stands(run: TraceRun) -> Topology:
    """The run's topology with what its tiers have become since: switched off, and with blocks marked to fail."""
    specs = [replace(tier.spec, offline=tier.offline) for tier in run.manager.own_tiers()]
    return replace(run.manager.topology, tiers=tuple(specs))


class _Saved:
    """One reduction, under the names that it has in a fixture."""

    def __init__(
        self,
        run: TraceRun,
        reduced: Reduced,
        keys: Sequence[BlockKey],
        lost: Sequence[BlockKey],
        losses: dict[BlockKey, tuple[AbsentReason, Hashable | None, str | None]],
        parse: FilterParse,
        label: str,
        request_name: Callable[[Hashable], str],
        limits: BlockLimits | None,
    ) -> None:
        self._reduced = reduced
        names = self._names = BlockNames(run.loop.table)
        self._blocks = [names(key) for key in keys]
        self._label = label
        state = named_state(reduced.state, names, request_name)
        state["lost"] = []
        for key in lost:
            reason, by, tier = losses[key]
            name = request_name(by)
            state["lost"].append({"block": names(key), "reason": reason.value, "by": name, "tier": tier})
        self._state = state
        # As the fixture's text has it: how large a block is decides nothing but what caps come to.
        tiers = tuple(map(self._named_faults, reduced.topology.tiers))
        self._topology = replace(reduced.topology, block=BlockSpec(), tiers=tiers)
        self._run: dict[str, Any] = {"op": "run", "id": label, "blocks": self._blocks}
        if parse.raw is not MISSING:
            self._run["kv_load_tiers"] = parse.raw
        if limits is not None:
            caps = {LOAD_KEY: (limits.caps.max_load, limits.load), OFFLOAD_KEY: (limits.caps.max_offload, limits.store)}
            self._run |= {key: blocks * BLOCK_TOKENS for key, (cap, blocks) in caps.items() if cap is not None}

    def _named_faults(self, spec: Any) -> Any:
        """A tier whose blocks that are to fail go by the names that they have here, as far as they are here."""
        known = self._names.given
        return replace(
            spec,
            fail_loads=frozenset(name for key, name in known.items() if key in spec.fail_loads),
            fail_stores=frozenset(name for key, name in known.items() if key in spec.fail_stores),
        )

    def comes_to(self, wanted: dict[str, Any]) -> bool:
        """Whether the request, replayed from this state, does."""
        runner = OpRunner(self._topology)
        runner.run({"op": "preset", "state": self._state})
        outcome = runner.run(self._run)
        return all(outcome[name] == value for name, value in self._renamed(wanted).items())

    def _renamed(self, wanted: dict[str, Any]) -> dict[str, Any]:
        why = wanted["why"]
        return {**wanted, "why": None if why is None else {**why, "block": self._blocks[why["block"]]}}

    def text(self, wanted: dict[str, Any], origin: Origin, before: int) -> str:
        """The fixture."""
        run = {**self._run, "expect": self._renamed(wanted)}
        return fixture_text(
            self._topology,
            self._state,
            run,
            origin,
            self._reduced.cut,
            self._names.renamed,
            before=before,
            shrunk=self._reduced.shrunk,
        )


def _expectations(story: RequestStory) -> dict[str, Any]:
    """What the outcome of a `run` op is to be; the block in `why` is still a place."""
    stop = story.stop
    return {
        "outcomes": [block.outcome.value for block in story.blocks],
        "tiers": [block.tier for block in story.blocks],
        "why": None
        if stop is None
        else {
            "block": stop.at,
            "tier": stop.tier,
            "reason": None if stop.reason is None else stop.reason.value,
            "by": stop.by,
        },
    }


def _count(state: dict[str, Any]) -> int:
    return len(state["blocks"]) + sum(map(len, state["tiers"].values()))


__all__ = ["Origin", "Slice", "save_request", "save_slice"]
