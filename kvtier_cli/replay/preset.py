"""Puts a manager into a state that a fixture writes down, and writes a manager's state down so that it can be.

The state has the shape of an outcome's. What it cannot tell, a preset cannot restore: live requests, their loads and
stores. A running job may say in `due` how many ends of steps it still waits for; left out, it starts anew. Whether a
written state is one is checked in `preset_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvtier_cli.errors import ManagerError
from kvtier_cli.replay.state import manager_state
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey, JobKind
from kvtier_cli.tiering.secondary import SecondaryTier


def restore_state(manager: TieringManager, state: Mapping[str, Any]) -> None:
    """Put `manager` into `state`; a part (the primary, a tier) that is not named stays as it is.

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

    Between two steps, when no request is live, nothing else is needed to go on as the manager would, but for what
    depends on job ids, on the retries a tier remembers and on the draws of a `fail_rate`. With live requests the
    result says so, and a preset refuses it.
    """

    def named(keys: Any) -> list[str]:
        return [name(key) for key in keys]

    def job(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "req": str(entry["req"]), "blocks": named(entry["blocks"])}

    state = manager_state(manager)
    tiers = {tier.name: tier for tier in manager.tiers}
    return state | {
        "blocks": {name(key): pins for key, pins in state["blocks"].items()},
        "policy": {key: named(value) if isinstance(value, list) else value for key, value in state["policy"].items()},
        "tiers": {tier: named(keys) for tier, keys in state["tiers"].items()},
        "jobs": [{**job(entry), "due": _own(tiers[entry["tier"]]).due_in(entry["job"])} for entry in state["jobs"]],
        "queued": [job(entry) for entry in state["queued"]],
        "live": list(map(str, state["live"])),
    }


def _own(tier: object) -> SecondaryTier:
    if not isinstance(tier, SecondaryTier):
        raise ManagerError(f"only kvtier's own tiers can be set to a state, not a {type(tier).__name__}")
    return tier
