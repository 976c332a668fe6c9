"""Why an outcome is not what was expected: a remark on the commonest mismatches, from the state after the op."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvtier_cli.replay.expect import Difference
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import JobKind, LookupResult, Verdict

_NEVER_POLL = frozenset({"request", "load", "complete_load", "complete_store", "touch", "finish", "flushed", "seed"})


def remark(
    difference: Difference, op: Mapping[str, Any], outcome: Mapping[str, Any], manager: TieringManager
) -> str | None:
    """What to know about one difference of an op that has just run; None where there is nothing to add."""
    field, found = difference.path[0], difference.found
    if difference.path[:2] == ("state", "blocks") and difference.remark:
        return "it is in the primary" if difference.expected is None else "it is not in the primary"
    if difference.remark:
        return difference.remark
    if op["op"] == "lookup":
        return _of_lookup(field, op, outcome, manager)
    if field in ("stored", "evicted") and found is None:
        return _refused(op, manager)
    if field == "loaded":
        absent = [key for key in op["blocks"] if key not in found]
        return f"not ready in the primary: {', '.join(absent)}" if absent else None
    if op["op"].startswith("complete_") and found is None:
        return f"no {op['op'].removeprefix('complete_')} of {op['id']} was deferred"
    if field == "completed" and not found:
        if op["op"] in _NEVER_POLL:
            return f"a {op['op']} does not poll for finished jobs"
        return "a step polls for finished jobs at its first lookup, else at its end, and at each store"
    return None


def _of_lookup(field: object, op: Mapping[str, Any], outcome: Mapping[str, Any], manager: TieringManager) -> str | None:
    block, result = op["block"], LookupResult(outcome["result"])
    if field == "source":
        return _source(result, op["id"])
    if field == "verdicts":
        names = ", ".join(tier.name for tier in manager.tiers) or "none"
        return f"one verdict a secondary tier: {names}"
    if field not in ("result", "promotion", "denied"):
        return None
    if result is LookupResult.HIT:
        return "it is ready in the primary"
    if result is LookupResult.HIT_PENDING:
        return _pending(block, manager)
    verdicts = dict(zip(manager.tiers, outcome["verdicts"], strict=True))
    if result is LookupResult.RETRY:
        asked = ", ".join(tier.name for tier, verdict in verdicts.items() if verdict == Verdict.RETRY.value)
        return f"{asked} has no answer yet; look it up again"
    if outcome["denied"]:
        primary = manager.primary
        held = f"none of the {primary.capacity} slots of the primary can be freed, all are pinned or pending"
        return f"{outcome['denied']} holds it, but {held}"
    if manager.holds_promotions and manager.tiers:
        return "promotions are held since the reset; {op: flushed} ends that"
    skipped = [
        tier.name for tier, verdict in verdicts.items() if verdict == Verdict.SKIPPED.value and tier.holds(block)
    ]
    if skipped:
        return f"the filter skips {', '.join(skipped)}, which holds it"
    return "no tier holds it"


def _pending(block: str, manager: TieringManager) -> str:
    transfers = manager.transfers
    queued = next((entry for entry in transfers.queued() if block in entry.keys), None)
    if queued:
        latency = next(tier.load_latency for tier in manager.topology.tiers if tier.name == queued.tier)
        steps = "a step completes it" if latency < 2 else f"{latency} steps complete it"
        return f"promotion from {queued.tier} was queued in this step; {steps}"
    running = next(
        (job for job in transfers.jobs.values() if job.kind is JobKind.PROMOTION and block in job.keys), None
    )
    if running:
        return f"promotion from {running.tier} is under way as job {running.job_id}"
    return "its store is under way; complete_store ends that"


def _source(result: LookupResult, req_id: str) -> str:
    if result is not LookupResult.HIT:
        return f"the source is told of a HIT, this was {result.value}"
    return f"a block has the source of the tier that {req_id} itself promoted it from, else host"


def _refused(op: Mapping[str, Any], manager: TieringManager) -> str:
    primary = manager.primary
    absent = len({key for key in op["blocks"] if key not in primary.resident})
    protected = len({key for key in op["blocks"] if key in primary.resident and key not in primary.busy})
    room = f"needed {absent}, free {primary.free}, evictable {primary.evictable - protected}"
    return f"the store was refused: slots {room}"
