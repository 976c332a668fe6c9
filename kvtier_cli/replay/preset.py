"""Puts a manager into a state that a fixture writes down, and writes a manager's state down so that it can be.

The state has the shape of an outcome's, and says more where that is needed to go on from it: in `due` how many ends of
steps a running job still waits for (left out, it starts anew); `held`, whether promotions are held since a reset;
`waiting`, requests that are finished and wait for parked cascades; `retries`, what tiers with `lookup_retry` remember;
`draws`, how many blocks have met a tier's `fail_rate`; `lost`, why blocks are nowhere. What it cannot tell, a preset
cannot restore: unfinished requests, their loads and stores. Whether a written state is one is checked in
`preset_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.outcomes import AbsentReason, BlockHistory
from kvtier_cli.replay.state import manager_state
from kvtier_cli.tiering.filters import ALL
from kvtier_cli.tiering.jobs import RequestContext
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.request import RequestState
from kvtier_cli.tiering.secondary import SecondaryTier


def restore_state(manager: TieringManager, state: Mapping[str, Any], history: BlockHistory | None = None) -> None:
    """Put `manager` into `state`; a part (the primary, a tier) that is not named stays as it is. `history` is told of
    the losses that the state knows.

    Running jobs get new ids, in their order. Raises ManagerError where requests are live or jobs run; a `state` that
    `check_state` has not seen may leave the manager in none that it could come into by itself.
    """
    if manager.requests:
        live = ", ".join(map(str, manager.requests))
        raise ManagerError(f"the state cannot be set while requests are live: {live}")
    if manager.transfers.jobs or manager.transfers.queued():
        raise ManagerError("the state cannot be set while jobs run", hint="Let steps end until they are done.")
    tiers = {tier.name: (index, tier) for index, tier in enumerate(manager.tiers)}
    policy = policy_state(state, manager.topology.primary.policy)
    if policy is not None:
        manager.primary.restore(policy, [key for key, pins in state.get("blocks", {}).items() if pins is None])
    for name, keys in state.get("tiers", {}).items():
        _own(tiers[name][1]).restore(keys)
    for job in state.get("jobs", ()):
        index, tier = tiers[job["tier"]]
        if JobKind(job["kind"]) is JobKind.CASCADE:
            manager.primary.pin(job["blocks"])
            manager.transfers.cascade((index,), job["req"], job["blocks"])
        else:
            manager.transfers.queue_promotions(index, job["req"], job["blocks"])
            manager.transfers.submit_promotions()
        if job.get("due") is not None:
            _own(tier).set_due(max(manager.transfers.jobs), job["due"])
    for queued in state.get("queued", ()):
        manager.transfers.queue_promotions(tiers[queued["tier"]][0], queued["req"], queued["blocks"])
    if "held" in state:
        manager.hold_promotions(state["held"])
    for waiting in state.get("waiting", ()):
        request = RequestState(RequestContext(waiting["req"], ALL), ())
        request.finished = True
        request.parked = {tiers[name][0]: list(keys) for name, keys in waiting["parked"].items()}
        manager.requests[waiting["req"]] = request
    for name, remembered in state.get("retries", {}).items():
        _own(tiers[name][1]).remember_lookups(remembered["lookups"], remembered["asked_by"])
    for name, count in state.get("draws", {}).items():
        _own(tiers[name][1]).skip_draws(count)
    if history is not None:
        for loss in state.get("lost", ()):
            history.remember(loss["block"], AbsentReason(loss["reason"]), loss["by"], loss.get("tier"))


def policy_state(state: Mapping[str, Any], policy: str) -> dict[str, Any] | None:
    """The lists of the primary's `policy` in `state`; without them its blocks, from the least recent on, and no
    ghosts. None where the state says nothing of the primary."""
    empty: dict[str, Any] = {"order": []} if policy == "lru" else {"t1": [], "t2": [], "b1": [], "b2": [], "target": 0}
    if "policy" in state:
        return {**empty, **state["policy"]}
    if "blocks" in state:
        return {**empty, "order" if policy == "lru" else "t1": list(state["blocks"])}
    return None


def state_to_restore(manager: TieringManager, name: Callable[[BlockKey], str] = str) -> dict[str, Any]:
    """The state of `manager` as a preset takes it, `name` giving the blocks their names.

    Between two steps, when no request is unfinished, nothing else is needed to go on as the manager would, but for what
    depends on job ids. With unfinished requests the result says so, and a preset refuses it.
    """
    return named_state(raw_state(manager), name)


def raw_state(manager: TieringManager) -> dict[str, Any]:
    """`state_to_restore` with the manager's own keys for blocks and requests."""
    state = manager_state(manager)
    own = {tier.name: tier for tier in manager.tiers if isinstance(tier, SecondaryTier)}
    for entry in state["jobs"]:
        entry["due"] = _own(own.get(entry["tier"])).due_in(entry["job"])
    state["held"] = manager.holds_promotions
    state["waiting"] = [
        {
            "req": req_id,
            "parked": {manager.tiers[index].name: list(keys) for index, keys in sorted(request.parked.items())},
        }
        for req_id, request in manager.requests.items()
        if request.finished and request.parked and not request.storing
    ]
    remembered = {name: tier.lookups_remembered() for name, tier in own.items()}
    state["retries"] = {
        name: {"lookups": lookups, "asked_by": asked_by} for name, (lookups, asked_by) in remembered.items() if asked_by
    }
    state["draws"] = {name: tier.draws for name, tier in own.items() if tier.draws}
    return state


def named_state(
    state: Mapping[str, Any], name: Callable[[BlockKey], str] = str, request: Callable[[Hashable], str] = str
) -> dict[str, Any]:
    """What `raw_state` gave, or a part of it, with names in the places of keys."""

    def named(keys: Any) -> list[str]:
        return [name(key) for key in keys]

    def job(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "req": request(entry["req"]), "blocks": named(entry["blocks"])}

    return {
        **state,
        "blocks": {name(key): pins for key, pins in state["blocks"].items()},
        "policy": {key: named(value) if isinstance(value, list) else value for key, value in state["policy"].items()},
        "tiers": {tier: named(keys) for tier, keys in state["tiers"].items()},
        "jobs": [job(entry) for entry in state["jobs"]],
        "queued": [job(entry) for entry in state["queued"]],
        "live": list(map(request, state["live"])),
        "waiting": [
            {
                "req": request(entry["req"]),
                "parked": {tier: named(keys) for tier, keys in entry["parked"].items()},
            }
            for entry in state["waiting"]
        ],
        "retries": {
            tier: {
                "lookups": {name(key): count for key, count in remembered["lookups"].items()},
                "asked_by": {request(req_id): named(keys) for req_id, keys in remembered["asked_by"].items()},
            }
            for tier, remembered in state["retries"].items()
        },
    }


def _own(tier: object) -> SecondaryTier:
    if not isinstance(tier, SecondaryTier):
        raise ManagerError(f"only kvtier's own tiers can be set to a state, not a {type(tier).__name__}")
    return tier
