"""Three managers in step, for the property tests: what one decides the others must decide too.

One has an observer and events and is asked block by block; one has no events and perhaps an observer, is asked for
whole prefixes and loads in one go; the third is the naive one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.replay.state import manager_state
from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.filters import MISSING, parse_tier_filter
from kvtier_cli.tiering.lookup import PrefixAnswer
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import LookupResult
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.topology import Topology
from tests.tiering.managers import Lookup, Lookups
from tests.tiering.naive_manager import NaiveManager

KNOWN = ("all", "all", "none", "some", "moved")
"""Which positions a call tells: all, none, those of every other block, others than the calls before."""


def counted(counters: Counters) -> dict[str, Any]:
    return {name: getattr(counters, name) for name in Counters.__slots__}


def in_words(outcome: Mapping[str, Any]) -> Lookup:
    """What an observer hears of a lookup with this outcome."""
    words = " ".join(outcome["verdicts"]), outcome["promotion"], outcome["denied"], " ".join(outcome["evicted"])
    return Lookup(LookupResult[outcome["result"]], *words)


class Lockstep:
    """`blocks` are the names of the blocks there are; `level` puts some blocks of one KV group at one position;
    `listening` lets somebody hear of each lookup of the second manager too."""

    def __init__(self, topology: Topology, blocks: Sequence[str], *, level: bool, listening: bool) -> None:
        self.observed = OpRunner(topology)
        self._lookups = Lookups() if listening else None
        self.bare = TieringManager(topology, observer=self._lookups)
        self.naive = NaiveManager(topology)
        self.blocks = blocks
        self._level = level
        self._prompts: dict[str, dict[str, int]] = {}
        self.unfinished: list[str] = []
        self.stores: list[str] = []
        self.loads: list[str] = []
        self.ops_since_quiet = 0

    def _op(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an op on two of them; the outcome is the same, the state after it too."""
        self.ops_since_quiet += 1
        outcome = self.observed.run(op)
        assert {**outcome, "state": self.observed.state()} == self.naive.run(op)
        return outcome

    def _call(self, kind: str, name: str, blocks: Sequence[str], known: str, **more: Any) -> dict[str, Any]:
        """An op with blocks; what it tells of positions the third one hears too."""
        op = {"op": kind, "id": name, "blocks": blocks, **more}
        if known != "none":
            op["positions"] = [self._position(name, block, known) for block in blocks]
            self.bare.set_positions(name, blocks, op["positions"])
        return op

    def _position(self, name: str, block: str, known: str) -> int | None:
        index = int(block.partition("@")[0][1:])
        if known == "some" and index % 2:
            return None
        position = self._prompts[name].get(block, 16 * (100 + index))
        if self._level:
            position -= position % 48
        return position + (16_000 * len(block) if known == "moved" else 0)

    def seed(self, tier: int, blocks: Sequence[str]) -> None:
        seeded = self.bare.tiers[tier]
        assert isinstance(seeded, SecondaryTier)
        seeded.seed(blocks)
        self._op({"op": "seed", "tier": seeded.name, "blocks": blocks})

    def arrive(self, load_tiers: Mapping[str, Any], prompt: Sequence[str] = ()) -> str:
        """A request; the positions of its `prompt` are told at once, as the replay of a trace does."""
        name = f"r{len(self._prompts) + 1}"
        self._op({"op": "request", "id": name, **load_tiers})
        self.bare.on_new_request(name, parse_tier_filter(load_tiers.get("kv_load_tiers", MISSING)).filter)
        self.unfinished.append(name)
        positions = range(16, 16 * len(prompt) + 16, 16)
        self._prompts[name] = dict(zip(prompt, positions, strict=True))
        if prompt:
            self.observed.manager.set_positions(name, prompt, positions)
            self.bare.set_positions(name, prompt, positions)
            self.naive.set_positions(name, prompt, positions)
        return name

    def look_up(self, name: str, blocks: Sequence[str], known: str) -> bool:
        """Look a prefix up until the first miss; whether anything was pending."""
        op = self._call("lookup", name, blocks, known)
        if "positions" in op:
            self.observed.manager.set_positions(name, blocks, op["positions"])
            self.naive.set_positions(name, blocks, op["positions"])
        outcomes = []
        for block in blocks:
            outcomes.append(self._op({"op": "lookup", "id": name, "block": block}))
            if outcomes[-1]["result"] == "MISS":
                break
        results = [outcome["result"] for outcome in outcomes]
        pending = not {"HIT_PENDING", "RETRY"}.isdisjoint(results)
        assert self.bare.lookup_prefix(name, blocks) == PrefixAnswer(len(results) - results.count("MISS"), pending)
        if self._lookups is not None:
            assert self._lookups.heard == [in_words(outcome) for outcome in outcomes]
            self._lookups.heard.clear()
        return pending

    def store(self, name: str, blocks: Sequence[str], known: str, *, defer: bool = False) -> None:
        outcome = self._op(self._call("store", name, blocks, known, defer=defer))
        prepared = self.bare.prepare_store(name, blocks)
        if prepared is None:
            assert (outcome["stored"], outcome["evicted"]) == (None, None)
        else:
            assert (outcome["stored"], outcome["evicted"]) == (prepared.keys, prepared.evicted)
        if prepared is not None and defer and prepared.keys:
            self.stores.append(name)
        elif prepared is not None:
            self.bare.complete_store(name, prepared.keys)

    def end_store(self, name: str, *, success: bool = True) -> None:
        """The oldest store of that request that was deferred."""
        self.stores.remove(name)
        outcome = self._op({"op": "complete_store", "id": name, "success": success})
        self.bare.complete_store(name, outcome["blocks"], success)

    def load(self, name: str, blocks: Sequence[str], known: str, *, defer: bool = False) -> None:
        loaded = self._op(self._call("load", name, blocks, known, defer=defer))["loaded"]
        if defer and loaded:
            self.bare.prepare_load(name, loaded)
            self.loads.append(name)
        else:
            self.bare.load(name, loaded)

    def end_load(self, name: str) -> None:
        """The oldest load of that request that was deferred."""
        self.loads.remove(name)
        outcome = self._op({"op": "complete_load", "id": name})
        self.bare.complete_load(name, outcome["blocks"])

    def touch(self, name: str, blocks: Sequence[str], known: str) -> None:
        self._op(self._call("touch", name, blocks, known))
        self.bare.touch(name, blocks)

    def finish(self, name: str) -> None:
        self.unfinished.remove(name)
        self._op({"op": "finish", "id": name})
        self.bare.on_request_finished(name)

    def step(self) -> None:
        self._op({"op": "step"})
        self.bare.on_schedule_end()

    def reset(self, *, hold: bool) -> None:
        self._op({"op": "reset", "hold": hold})
        self.bare.reset_cache()
        if not hold:
            self.bare.on_reset_flushed()
        self.stores.clear()
        self.loads.clear()
        self.ops_since_quiet = 0

    def flush(self) -> None:
        self._op({"op": "flushed"})
        self.bare.on_reset_flushed()

    def serve(self, blocks: Sequence[str], load_tiers: Mapping[str, Any], known: str) -> None:
        """A whole request, as the replay of a trace drives it; others may be under way."""
        name = self.arrive(load_tiers, blocks)
        for _ in range(4):
            if not self.look_up(name, blocks, known):
                break
            self.step()
        is_ready = self.bare.primary.is_ready
        ready = next((index for index, block in enumerate(blocks) if not is_ready(block)), len(blocks))
        self.load(name, blocks[:ready], known)
        self.store(name, blocks[ready:], known)
        self.finish(name)
        self.step()

    def end_all(self) -> None:
        """End what is under way, and let the jobs run out."""
        for name in list(self.stores):
            self.end_store(name)
        for name in list(self.loads):
            self.end_load(name)
        for name in list(self.unfinished):
            self.finish(name)
        for _ in range(12):  # a promotion may have to end before a parked cascade can begin, and that may be slow
            self.step()
        self.ops_since_quiet = 0

    def check_alike(self) -> None:
        """Watched or not, asked block by block or not: the same state, the same counts."""
        assert manager_state(self.bare) == self.observed.state()
        assert counted(self.bare.counters) == counted(self.observed.manager.counters)

    def check_counts(self) -> None:
        """The counters count what happened."""
        counts = self.naive.counts
        for name, value in counted(self.bare.counters).items():
            if isinstance(value, list):
                assert value == [counts[f"{name} {tier.name}"] for tier in self.bare.tiers]
            else:
                assert value == counts[name]
