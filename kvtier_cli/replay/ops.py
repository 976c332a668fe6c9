"""Carries out the ops of a scripted fixture on a manager and tells the outcome of each.

The outcomes have the shape of the recordings from vLLM's manager. Reading fixtures is `fixture.py`, comparing
outcomes with expectations `expect.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.loop import PassWatcher
from kvtier_cli.replay.outcomes import BlockHistory
from kvtier_cli.replay.preset import restore_state
from kvtier_cli.replay.state import manager_state
from kvtier_cli.replay.whole_requests import WholeRequests
from kvtier_cli.tiering.filters import MISSING, parse_tier_filter
from kvtier_cli.tiering.jobs import JobResult
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Observer, ObserverGroup
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.token_caps import parse_token_caps
from kvtier_cli.tiering.topology import Topology

Outcome = dict[str, Any]


class _Recorder(Observer):
    """Keeps what one op made the manager decide."""

    def __init__(self, names: Mapping[Hashable, str]) -> None:
        self._names = names
        self.clear()

    def clear(self) -> None:
        self.lookup: dict[str, Any] = {}
        self.completed: list[dict[str, Any]] = []
        self.tier_finished: list[dict[str, Any]] = []

    def on_lookup(
        self,
        req_id: Hashable,
        key: BlockKey,
        result: LookupResult,
        verdicts: Sequence[Verdict],
        *,
        promotion: str | None,
        denied: str | None,
        evicted: Sequence[BlockKey],
    ) -> None:
        self.lookup = {
            "result": result.value,
            "verdicts": [verdict.value for verdict in verdicts],
            "promotion": promotion,
            "denied": denied,
            "evicted": list(evicted),
        }

    def on_job_finished(self, result: JobResult) -> None:
        job = result.job
        self.completed.append(
            {
                "job": job.job_id,
                "tier": job.tier,
                "kind": job.kind.value,
                "req": self._names.get(job.req_id, job.req_id),
                "success": result.success,
                "ok": [key for key in job.keys if key not in result.failed],
                "failed": [key for key in job.keys if key in result.failed],
            }
        )

    def on_tier_finished(self, tier: str, req_id: Hashable) -> None:
        self.tier_finished.append({"tier": tier, "req": self._names.get(req_id, req_id)})


class OpRunner:
    """A manager and what a fixture defers: stores and loads that a later op completes.

    `tiers` stand in for those that the topology describes; `folder` is where traces are looked for; `observers` hear
    of the manager's decisions too.
    """

    def __init__(
        self,
        topology: Topology,
        tiers: Sequence[SecondaryTierManager] | None = None,
        *,
        folder: Path = Path(),
        observers: Sequence[Observer] = (),
    ) -> None:
        # The replay loop counts its requests; in a fixture they have names.
        self._names: dict[Hashable, str] = {}
        self._recorder = _Recorder(self._names)
        self._history = BlockHistory()
        observer = ObserverGroup((self._recorder, self._history, *observers))
        self.manager = TieringManager(topology, tiers, observer=observer, events=True)
        self._folder = folder
        self._stores: dict[str, list[list[BlockKey]]] = {}
        self._loads: dict[str, list[list[BlockKey]]] = {}
        self._ops: Mapping[str, Callable[[Mapping[str, Any]], Outcome]] = {
            "seed": self._seed,
            "request": self._request,
            "lookup": self._lookup,
            "store": self._store,
            "complete_store": self._complete_store,
            "load": self._load,
            "complete_load": self._complete_load,
            "touch": self._touch,
            "finish": self._finish,
            "step": self._step,
            "reset": self._reset,
            "flushed": self._flushed,
            "preset": self._preset,
            "run": self._run,
            "replay": self._replay,
        }

    def run(self, op: Mapping[str, Any]) -> Outcome:
        """Carry out one op and return its outcome, without the state; see `state`."""
        self._recorder.clear()
        outcome: Outcome = {"op": op["op"], **self._ops[op["op"]](op)}
        outcome["completed"] = self._recorder.completed
        outcome["tier_finished"] = self._recorder.tier_finished
        outcome["events"] = [
            {
                "medium": event.medium.value,
                "locality": None if event.locality is None else event.locality.value,
                "removed": event.removed,
                "blocks": list(event.keys),
            }
            for event in self.manager.take_events()
        ]
        return outcome

    @property
    def history(self) -> BlockHistory:
        """Why blocks are nowhere, as far as this runner has seen them go."""
        return self._history

    def listen(self, *observers: Observer) -> None:
        """Let `observers` hear of the manager's decisions too, from now on."""
        self.manager.observe(ObserverGroup((self._recorder, self._history, *observers)))

    def watch(self, watcher: PassWatcher) -> None:
        """Let `watcher` look at the tiers when the last pass of a whole request ends."""
        self._whole.watch(watcher)

    def state(self) -> dict[str, Any]:
        """The state after the op that ran last."""
        state = manager_state(self.manager)
        if self._names:
            for entry in (*state["jobs"], *state["queued"]):
                entry["req"] = self._names.get(entry["req"], entry["req"])
            state["live"] = [self._names.get(req_id, req_id) for req_id in state["live"]]
        return state

    def request_name(self, req_id: Hashable) -> str:
        """What the fixture calls a request of the manager's."""
        return str(self._names.get(req_id, req_id))

    def _seed(self, op: Mapping[str, Any]) -> Outcome:
        tier = next(tier for tier in self.manager.tiers if tier.name == op["tier"])
        if not isinstance(tier, SecondaryTier):
            raise ManagerError(f"only kvtier's own tiers can be seeded, not a {type(tier).__name__}")
        tier.seed(op["blocks"])
        return {}

    def _request(self, op: Mapping[str, Any]) -> Outcome:
        parse = parse_tier_filter(op.get("kv_load_tiers", MISSING))
        policy = self.manager.on_new_request(op["id"], parse.filter)
        return {
            "filter": parse.filter.as_json(),
            "warnings": len(parse.warnings),
            "offload_policy": policy.value,
        }

    def _positions(self, op: Mapping[str, Any], keys: Sequence[BlockKey]) -> None:
        if "positions" in op:
            self.manager.set_positions(op["id"], keys, op["positions"])

    def _lookup(self, op: Mapping[str, Any]) -> Outcome:
        self._positions(op, [op["block"]])
        result = self.manager.lookup(op["id"], op["block"])
        source = self.manager.load_source(op["id"], op["block"]) if result is LookupResult.HIT else None
        return {**self._recorder.lookup, "source": None if source is None else source.value}

    def _store(self, op: Mapping[str, Any]) -> Outcome:
        self._positions(op, op["blocks"])
        prepared = self.manager.prepare_store(op["id"], op["blocks"])
        if prepared is None:
            return {"stored": None, "evicted": None}
        if op.get("defer") and prepared.keys:
            self._stores.setdefault(op["id"], []).append(prepared.keys)
        else:
            self.manager.complete_store(op["id"], prepared.keys)
        return {"stored": list(prepared.keys), "evicted": prepared.evicted}

    def _complete_store(self, op: Mapping[str, Any]) -> Outcome:
        waiting = self._stores.get(op["id"])
        if not waiting:
            return {"blocks": None, "success": None}
        keys, success = waiting.pop(0), op.get("success", True)
        self.manager.complete_store(op["id"], keys, success)
        return {"blocks": keys, "success": success}

    def _load(self, op: Mapping[str, Any]) -> Outcome:
        self._positions(op, op["blocks"])
        manager = self.manager
        keys = [key for key in op["blocks"] if manager.primary.is_ready(key)]
        sources = [manager.load_source(op["id"], key).value for key in keys]
        manager.prepare_load(op["id"], keys)
        if op.get("defer") and keys:
            self._loads.setdefault(op["id"], []).append(keys)
        else:
            manager.complete_load(op["id"], keys)
        return {"loaded": keys, "sources": sources}

    def _complete_load(self, op: Mapping[str, Any]) -> Outcome:
        waiting = self._loads.get(op["id"])
        if not waiting:
            return {"blocks": None}
        keys = waiting.pop(0)
        self.manager.complete_load(op["id"], keys)
        return {"blocks": keys}

    def _touch(self, op: Mapping[str, Any]) -> Outcome:
        self._positions(op, op["blocks"])
        self.manager.touch(op["id"], op["blocks"])
        return {}

    def _finish(self, op: Mapping[str, Any]) -> Outcome:
        self.manager.on_request_finished(op["id"])
        return {}

    def _step(self, _: Mapping[str, Any]) -> Outcome:
        self.manager.on_schedule_end()
        return {}

    def _reset(self, op: Mapping[str, Any]) -> Outcome:
        self.manager.reset_cache()
        self._stores.clear()
        self._loads.clear()
        if not op.get("hold"):
            self.manager.on_reset_flushed()
        return {}

    def _flushed(self, _: Mapping[str, Any]) -> Outcome:
        self.manager.on_reset_flushed()
        return {}

    def _preset(self, op: Mapping[str, Any]) -> Outcome:
        restore_state(self.manager, op["state"], self._history)
        return {}

    @cached_property
    def _whole(self) -> WholeRequests:
        return WholeRequests(self.manager, self._history, self._names, self._folder)

    def _run(self, op: Mapping[str, Any]) -> Outcome:
        caps, _ = parse_token_caps(op)
        return self._whole.run(op["id"], op["blocks"], op.get("kv_load_tiers", MISSING), caps)

    def _replay(self, op: Mapping[str, Any]) -> Outcome:
        return {"figures": self._whole.replay(op["trace"], op.get("kv_load_tiers", MISSING))}
