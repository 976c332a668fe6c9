"""The manager once more, as plainly as its rules can be put down: lists, scans and sorts, no structure that is fast.

It is what the property tests hold the real one against, and is itself held against the recordings. It takes the ops
of scripted fixtures and gives outcomes of their shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kvtier_cli.tiering.filters import MISSING, parse_tier_filter
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import TierSpec, Topology
from tests.tiering.naive_primary import NaivePrimary, NaiveRequest

SOURCES = {Medium.CPU: "host", Medium.STORAGE: "disk", None: "external_unspecified"}


def event(medium: Medium, locality: Locality | None, removed: bool, blocks: Sequence[str]) -> dict[str, Any]:
    where = None if locality is None else locality.value
    return {"medium": medium.value, "locality": where, "removed": removed, "blocks": list(blocks)}


class Job(NamedTuple):
    number: int
    kind: str
    request: NaiveRequest
    blocks: list[str]
    due: int


class NaiveTier:
    """A secondary tier: a list of blocks, least recent first, and the jobs under way."""

    def __init__(self, spec: TierSpec) -> None:
        self.spec = spec
        self.blocks: list[str] = []
        self.clock = 0
        self.jobs: list[Job] = []
        self.retried: Counter[str] = Counter()
        self.asking: dict[str, set[str]] = {}
        self.events: list[dict[str, Any]] = []

    def put(self, block: str) -> None:
        capacity = self.spec.capacity
        if block in self.blocks:
            self.blocks.remove(block)
        elif capacity is not None and len(self.blocks) >= capacity:
            if not capacity:
                return
            del self.blocks[0]
        self.blocks.append(block)

    def lookup(self, block: str, request: str) -> str:
        if self.spec.offline:
            return "miss"
        if self.spec.lookup_retry:
            self.asking.setdefault(block, set()).add(request)
            if self.retried[block] < self.spec.lookup_retry:
                self.retried[block] += 1
                return "retry"
        return "hit" if block in self.blocks else "miss"

    def forget(self, request: str) -> None:
        for block, asking in list(self.asking.items()):
            asking.discard(request)
            if not asking:
                del self.asking[block], self.retried[block]

    def fails(self, job: Job, block: str) -> bool:
        if self.spec.offline:
            return True
        if job.kind == "cascade":
            return block in self.spec.fail_stores
        return block in self.spec.fail_loads or block not in self.blocks


class NaiveManager:
    """The protocol between requests, primary and tiers. `counts` holds what the real one's counters hold."""

    def __init__(self, topology: Topology) -> None:
        self.primary = NaivePrimary(topology.primary.capacity, topology.primary.policy)
        self.tiers = [NaiveTier(spec) for spec in topology.tiers]
        self.request_level = [tier for tier in self.tiers if tier.spec.request_level]
        self.requests: dict[str, NaiveRequest] = {}
        self.live: list[NaiveRequest] = []
        self.queued: list[tuple[NaiveTier, NaiveRequest, list[str]]] = []
        self.jobs_submitted = 0
        self.polled = False
        self.held = False
        self.counts: Counter[str] = Counter()
        self._clear()

    def _clear(self) -> None:
        self.completed: list[dict[str, Any]] = []
        self.tier_finished: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        for tier in self.tiers:
            tier.events = []

    def run(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out one op; its outcome, the state after it included."""
        self._clear()
        if "positions" in op:
            blocks = op["blocks"] if "blocks" in op else [op["block"]]
            self.set_positions(op["id"], blocks, op["positions"])
        outcome = {"op": op["op"], **getattr(self, f"op_{op['op']}")(op)}
        outcome["completed"] = self.completed
        outcome["tier_finished"] = self.tier_finished
        outcome["events"] = self.events + [said for tier in self.tiers for said in tier.events]
        outcome["state"] = self.state()
        return outcome

    def set_positions(self, name: str, blocks: Sequence[str], positions: Sequence[int | None]) -> None:
        for block, position in zip(blocks, positions, strict=True):
            if position is not None:
                self.requests[name].positions[block] = position

    # Jobs

    def submit(self, tier: NaiveTier, kind: str, request: NaiveRequest, blocks: Sequence[str]) -> None:
        latency = tier.spec.load_latency if kind == "promotion" else tier.spec.store_latency
        tier.jobs.append(Job(self.jobs_submitted, kind, request, list(blocks), tier.clock + latency))
        self.jobs_submitted += 1

    def cascade(self, tiers: Sequence[NaiveTier], request: NaiveRequest, blocks: Sequence[str]) -> None:
        if not blocks:
            return
        for tier in tiers:
            for block in blocks:
                pins = self.primary.pins[block]
                assert pins is not None
                self.primary.pins[block] = pins + 1
            self.submit(tier, "cascade", request, blocks)

    def poll(self) -> None:
        self.polled = True
        for tier in self.tiers:
            due = [job for job in tier.jobs if job.due <= tier.clock]
            tier.jobs = [job for job in tier.jobs if job.due > tier.clock]
            for job in due:
                self.end(tier, job)

    def end(self, tier: NaiveTier, job: Job) -> None:
        made: list[str] = []
        failed: list[str] = []
        for block in job.blocks:
            if tier.fails(job, block):
                failed.append(block)
            else:
                made.append(block)
                tier.put(block)
        done = {"job": job.number, "tier": tier.spec.name, "kind": job.kind, "req": job.request.name}
        self.completed.append({**done, "success": not failed, "ok": made, "failed": failed})
        pins = self.primary.pins
        if job.kind == "cascade":
            self.counts[f"written {tier.spec.name}"] += len(made)
            for block in job.blocks:
                held = pins[block]
                assert held
                pins[block] = held - 1
            if not failed and tier.spec.medium is not None:
                tier.events.append(event(tier.spec.medium, tier.spec.locality, False, job.blocks))
            return
        self.counts[f"read {tier.spec.name}"] += len(made)
        self.counts[f"failed {tier.spec.name}"] += len(failed)
        pins.update(dict.fromkeys(made, 0))
        for block in failed:
            self.primary.drop(block)
            job.request.sources.pop(block, None)
        if made:
            self.events.append(event(Medium.CPU, None, False, made))

    def close(self, request: NaiveRequest) -> None:
        """Tell the tiers that a request is over, if it is."""
        if request.over or not request.finished or request.storing or request.parked:
            return
        request.over = True
        self.live.remove(request)
        for tier in self.tiers:
            self.tier_finished.append({"tier": tier.spec.name, "req": request.name})
            tier.forget(request.name)

    # Ops

    def op_seed(self, op: Mapping[str, Any]) -> dict[str, Any]:
        tier = next(tier for tier in self.tiers if tier.spec.name == op["tier"])
        for block in op["blocks"]:
            tier.put(block)
        return {}

    def op_request(self, op: Mapping[str, Any]) -> dict[str, Any]:
        parse = parse_tier_filter(op.get("kv_load_tiers", MISSING))
        request = self.requests[op["id"]] = NaiveRequest(op["id"], parse.filter)
        self.live.append(request)
        level = "request_level" if self.request_level else "chunk_level"
        return {"filter": parse.filter.as_json(), "warnings": len(parse.warnings), "offload_policy": level}

    def op_lookup(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request, block = self.requests[op["id"]], op["block"]
        if not self.polled:
            self.poll()
        self.counts["lookups"] += 1
        verdicts = ["not_reached"] * len(self.tiers)
        outcome: dict[str, Any] = {
            "result": "MISS",
            "verdicts": verdicts,
            "promotion": None,
            "denied": None,
            "evicted": [],
            "source": None,
        }
        if block in self.primary.pins:
            ready = self.primary.is_ready(block)
            self.counts["primary_hits"] += ready
            outcome["result"] = "HIT" if ready else "HIT_PENDING"
            outcome["source"] = request.sources.get(block, "host") if ready else None
            return outcome
        for index, tier in enumerate([] if self.held else self.tiers):
            name = tier.spec.name
            if not request.filter.admits(tier.spec.medium, tier.spec.locality):
                verdicts[index] = "skipped"
                self.counts[f"skipped {name}"] += 1
                continue
            verdicts[index] = tier.lookup(block, request.name)
            self.counts[f"asked {name}"] += 1
            if verdicts[index] == "retry":
                outcome["result"] = "RETRY"
            if verdicts[index] == "hit":
                self.counts[f"hits {name}"] += 1
                return {**outcome, **self.promote(request, tier, block)}
        return outcome

    def promote(self, request: NaiveRequest, tier: NaiveTier, block: str) -> dict[str, Any]:
        slots = self.primary.offer(request, [block])
        if slots is None:
            self.counts["denied"] += 1
            return {"result": "MISS", "denied": tier.spec.name}
        victims = slots[1]
        self.counts["evicted_by_promotions"] += len(victims)
        self.counts[f"promoted {tier.spec.name}"] += 1
        if victims:
            self.events.append(event(Medium.CPU, None, True, victims))
        request.sources[block] = SOURCES[tier.spec.medium]
        for queued_tier, queued_request, blocks in self.queued:
            if queued_tier is tier and queued_request is request:
                blocks.append(block)
                break
        else:
            self.queued.append((tier, request, [block]))
        return {"result": "HIT_PENDING", "promotion": tier.spec.name, "evicted": victims}

    def op_store(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request = self.requests[op["id"]]
        offered = list(dict.fromkeys(op["blocks"]))
        self.poll()
        slots = self.primary.offer(request, offered)
        if slots is None:
            self.counts["refused"] += 1
            return {"stored": None, "evicted": None}
        absent, victims = slots
        self.counts["evicted_by_stores"] += len(victims)
        self.counts["blocks_stored"] += len(absent)
        if victims:
            self.events.append(event(Medium.CPU, None, True, victims))
        request.storing += bool(absent)
        if self.request_level:
            self.offload(request, [block for block in offered if block not in absent])
        if op.get("defer") and absent:
            request.stores.append(absent)
        elif absent:
            self.complete_store(request, absent, True)
        return {"stored": absent, "evicted": victims}

    def offload(self, request: NaiveRequest, blocks: Sequence[str]) -> None:
        """Blocks that the primary had before go to the request-level tiers; those still pending are parked."""
        ready = [block for block in blocks if self.primary.is_ready(block)]
        request.parked += [block for block in blocks if block in self.primary.pins and block not in ready]
        self.cascade(self.request_level, request, ready)

    def complete_store(self, request: NaiveRequest, blocks: Sequence[str], success: bool) -> None:
        if success:
            self.primary.pins.update(dict.fromkeys(blocks, 0))
            self.events.append(event(Medium.CPU, None, False, blocks))
            self.cascade(self.tiers, request, blocks)
        else:
            for block in blocks:
                self.primary.drop(block)
        request.storing -= 1
        self.close(request)

    def op_complete_store(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request = self.requests[op["id"]]
        if not request.stores:
            return {"blocks": None, "success": None}
        blocks, success = request.stores.pop(0), op.get("success", True)
        self.complete_store(request, blocks, success)
        return {"blocks": blocks, "success": success}

    def op_load(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request, primary = self.requests[op["id"]], self.primary
        blocks = [block for block in op["blocks"] if primary.is_ready(block)]
        primary.access(request, blocks)
        primary.reuse(request, blocks)
        self.counts["blocks_loaded"] += len(blocks)
        if op.get("defer") and blocks:
            request.loads.append(blocks)
            self.pin(blocks, 1)
        return {"loaded": blocks, "sources": [request.sources.get(block, "host") for block in blocks]}

    def pin(self, blocks: Sequence[str], more: int) -> None:
        for block in blocks:
            pins = self.primary.pins[block]
            assert pins is not None
            self.primary.pins[block] = pins + more

    def op_complete_load(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request = self.requests[op["id"]]
        if not request.loads:
            return {"blocks": None}
        blocks = request.loads.pop(0)
        self.pin(blocks, -1)
        return {"blocks": blocks}

    def op_touch(self, op: Mapping[str, Any]) -> dict[str, Any]:
        self.primary.touch(op["blocks"])
        for tier in self.tiers:
            for block in reversed(op["blocks"]):
                if block in tier.blocks:
                    tier.put(block)
        return {}

    def op_finish(self, op: Mapping[str, Any]) -> dict[str, Any]:
        request = self.requests[op["id"]]
        self.primary.commit(request)
        request.finished = True
        self.close(request)
        return {}

    def op_step(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if not self.polled:
            self.poll()
        for tier, request, blocks in self.queued_by_tier():
            self.submit(tier, "promotion", request, blocks)
        self.queued = []
        for request in list(self.live):
            parked, request.parked = request.parked, []
            for tier in self.request_level:
                self.cascade([tier], request, [block for block in parked if self.primary.is_ready(block)])
            pins = self.primary.pins
            request.parked = [block for block in parked if block in pins and not self.primary.is_ready(block)]
            self.close(request)
        for tier in self.tiers:
            tier.clock += 1
        self.polled = False
        self.counts["steps"] += 1
        return {}

    def op_reset(self, op: Mapping[str, Any]) -> dict[str, Any]:
        for tier in self.tiers:
            tier.jobs = [job._replace(due=tier.clock) for job in tier.jobs]
        self.poll()
        self.queued = []
        self.primary.reset()
        for request in self.requests.values():
            request.reset()
        for request in list(self.live):
            self.close(request)
        self.polled = False
        self.held = bool(op.get("hold"))
        return {}

    def op_flushed(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.held = False
        return {}

    # State

    def queued_by_tier(self) -> list[tuple[NaiveTier, NaiveRequest, list[str]]]:
        tiers = {tier.spec.name: tier for tier, _, _ in self.queued}
        return [entry for tier in tiers.values() for entry in self.queued if entry[0] is tier]

    def state(self) -> dict[str, Any]:
        primary = self.primary
        running = sorted((job.number, tier, job) for tier in self.tiers for job in tier.jobs)
        jobs = [
            {"job": number, "tier": tier.spec.name, "kind": job.kind, "req": job.request.name, "blocks": job.blocks}
            for number, tier, job in running
        ]
        return {
            "blocks": dict(primary.pins),
            "policy": primary.state(),
            "free": primary.capacity - len(primary.pins),
            "evictable": sum(pins == 0 for pins in primary.pins.values()),
            "tiers": {tier.spec.name: list(tier.blocks) for tier in self.tiers},
            "jobs": jobs,
            "queued": [
                {"tier": tier.spec.name, "req": request.name, "blocks": list(blocks)}
                for tier, request, blocks in self.queued_by_tier()
            ],
            "pending_work": bool(jobs) or any(request.parked for request in self.live),
            "live": [request.name for request in self.live],
        }
