"""What one op changed: the state before it against the state after. Shows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

State = Mapping[str, Any]
"""The state of a manager in the shape of `state.py`."""


@dataclass(frozen=True, slots=True)
class ListChange:
    """What `entered` and `left` a list. `order` is the whole list now, where the order is another than that of the
    items that stayed with the new ones behind them; else None."""

    entered: Sequence[str]
    left: Sequence[str]
    order: Sequence[str] | None

    def __bool__(self) -> bool:
        return bool(self.entered or self.left or self.order is not None)


@dataclass(frozen=True, slots=True)
class StateChange:
    """All differences between two states.

    `arrived`: block that is new in the primary → its pins, None while pending. Of the blocks that were there before:
    `ready` those that were pending and are not, `pending` those that are pending anew, `pins` block → its pins before
    and after. `policy`: list of the policy → its change; of LRU's one list, which has the blocks of the primary, only a
    change of order. `target`: ARC's before and after. `jobs`, `queued`, `live`: what is new of each; `over`: requests
    that are not live any more.
    """

    arrived: Mapping[str, int | None]
    left: Sequence[str]
    ready: Sequence[str]
    pending: Sequence[str]
    pins: Mapping[str, tuple[int, int]]
    policy: Mapping[str, ListChange]
    target: tuple[float, float] | None
    tiers: Mapping[str, ListChange]
    jobs: Sequence[Mapping[str, Any]]
    queued: Sequence[Mapping[str, Any]]
    live: Sequence[str]
    over: Sequence[str]

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def state_change(before: State, after: State) -> StateChange:
    """What is different after one op, or several. Blocks of the primary come in the order of their names."""
    was, blocks = before["blocks"], {key: after["blocks"][key] for key in sorted(after["blocks"], key=_by_name)}
    stayed = [key for key in blocks if key in was]
    known = {job["job"] for job in before["jobs"]}
    policy = _list_changes(before["policy"], after["policy"])
    if "order" in policy:
        policy = {} if policy["order"].order is None else {"order": ListChange((), (), policy["order"].order)}
    target = before["policy"].get("target"), after["policy"].get("target")
    return StateChange(
        arrived={key: pins for key, pins in blocks.items() if key not in was},
        left=sorted((key for key in was if key not in blocks), key=_by_name),
        ready=[key for key in stayed if was[key] is None and blocks[key] is not None],
        pending=[key for key in stayed if was[key] is not None and blocks[key] is None],
        pins={key: (was[key] or 0, blocks[key]) for key in stayed if blocks[key] not in (None, was[key] or 0)},
        policy=policy,
        target=None if target[0] == target[1] else target,
        tiers=_list_changes(before["tiers"], after["tiers"]),
        jobs=[job for job in after["jobs"] if job["job"] not in known],
        queued=_newly_queued(before["queued"], after["queued"]),
        live=_without(after["live"], before["live"]),
        over=_without(before["live"], after["live"]),
    )


def _by_name(key: str) -> tuple[int, str]:
    return len(key), key  # b2 before b10


def _without(items: Sequence[str], others: Sequence[str]) -> list[str]:
    gone = set(others)
    return [item for item in items if item not in gone]


def _list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, ListChange]:
    """The changes of all lists of an object, by their names."""
    changes = {
        name: _list_change(before[name], items)
        for name, items in after.items()
        if isinstance(items, list) and items != before[name]
    }
    return {name: change for name, change in changes.items() if change}


def _list_change(before: Sequence[str], after: Sequence[str]) -> ListChange:
    entered, left = _without(after, before), _without(before, after)
    expected = [*_without(before, left), *entered]
    return ListChange(entered, left, None if list(after) == expected else after)


def _newly_queued(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    known = {(entry["tier"], entry["req"]): entry["blocks"] for entry in before}
    entries = [
        {**entry, "blocks": _without(entry["blocks"], known.get((entry["tier"], entry["req"]), ()))} for entry in after
    ]
    return [entry for entry in entries if entry["blocks"]]
