"""The CPU tier between a manager and a file: its blocks in order, without payloads, pins and what was on its way."""

from __future__ import annotations

from kvtier_cli.tiering.primary import Primary
from kvtier_cli.workspace.state import ArcLists, LruLists


def primary_lists(primary: Primary) -> LruLists | ArcLists:
    """What `primary` holds, but for blocks whose write has not ended: they would never be ready."""
    state = primary.state()

    def ready(name: str) -> list[str]:
        return [key for key in state[name] if primary.is_ready(key)]

    if state["name"] == "lru":
        return LruLists(ready("order"))
    return ArcLists(ready("t1"), ready("t2"), state["b1"], state["b2"], state["target"])


def restore_primary(primary: Primary, lists: LruLists | ArcLists) -> None:
    """Put what `lists` says into an empty `primary`. Where that is smaller now, the least recent stay out; under
    another policy the order stays as far as that knows one."""
    capacity = primary.capacity
    if primary.policy.name == "lru":
        order = lists.order if isinstance(lists, LruLists) else [*lists.t1, *lists.t2]
        primary.restore({"order": _last(order, capacity)}, ())
        return
    if isinstance(lists, LruLists):
        lists = ArcLists(t1=lists.order)
    t2 = _last(lists.t2, capacity)
    primary.restore(
        {
            "t1": _last(lists.t1, capacity - len(t2)),
            "t2": t2,
            "b1": _last(lists.b1, capacity),
            "b2": _last(lists.b2, capacity),
            "target": min(max(lists.target, 0.0), float(capacity)),
        },
        (),
    )


def _last(keys: list[str], count: int) -> list[str]:
    return keys[max(0, len(keys) - count) :]
