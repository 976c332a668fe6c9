"""The state of a scripted fixture's manager for people: whole, in one line, and what one op changed in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvtier_cli.render.console import Output
from kvtier_cli.render.flow import flow, names
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.replay.state_change import ListChange, StateChange
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology

LABEL = 10
"""Cells of what stands at the left of a line."""
_ITEMS = 24
"""Blocks of one list that are shown; `--verbose` shows all."""
_FROM_EACH_END = 4


def labelled(label: str, text: str, out: Output, *, indent: int = 2, width: int = LABEL) -> Iterator[str]:
    """`text` behind a label, wrapped in the room beside it; a label that is too long has a line of its own."""
    left = indent + width
    lines = list(wrapped(text, out, indent=left))
    if len(label) >= width or not lines:
        yield " " * indent + label
    else:
        lines[0] = (
            " " * indent + (out.style(label, "muted") if label else "") + " " * (width - len(label)) + lines[0][left:]
        )
    yield from lines


def most_items(out: Output) -> int | None:
    """How many items of a list are shown on this output."""
    return None if out.verbose else _ITEMS


def whole_state_lines(state: Mapping[str, Any], out: Output, *, indent: int = 2) -> Iterator[str]:
    """Everything in a state, under the names that an `expect` uses."""
    for key, value in state.items():
        yield from labelled(key, flow(value, most_items(out)), out, indent=indent, width=LABEL + 4)


def state_summary(state: Mapping[str, Any], topology: Topology) -> str:
    """How full the tiers are, and what is on its way."""
    blocks = state["blocks"]
    busy = [pins for pins in blocks.values() if pins != 0]
    pending = busy.count(None)
    parts = [f"{PRIMARY_NAME} {len(blocks):,}/{topology.primary.capacity:,} ({state['free']:,} free"]
    parts[0] += "".join(
        f", {count:,} {word}"
        for count, word in ((pending, "pending"), (len(busy) - pending, "pinned"), (state["evictable"], "evictable"))
        if count
    )
    parts[0] += ")"
    for tier in topology.tiers:
        held = len(state["tiers"][tier.name])
        parts.append(f"{flow(tier.name)} {held:,}" + ("" if tier.capacity is None else f"/{tier.capacity:,}"))
    queued = sum(len(entry["blocks"]) for entry in state["queued"])
    if state["jobs"]:
        parts.append(f"{len(state['jobs']):,} job{'' if len(state['jobs']) == 1 else 's'} running")
    if queued:
        parts.append(f"{queued:,} queued")
    if state["live"]:
        parts.append(f"live {names(state['live'], _ITEMS)}")
    return ", ".join(parts)


def change_lines(change: StateChange, outcome: Mapping[str, Any], out: Output) -> Iterator[str]:
    """What is different since the op before, a label for each place; the jobs that ended and the events are from the
    op's own outcome."""
    most = most_items(out)
    rows = [(PRIMARY_NAME, _primary(change, most)), *_policy(change, most)]
    rows += [(flow(name), _list_change(found, most)) for name, found in change.tiers.items()]
    rows += [("queued", f"{_move(entry, most)} (starts at the step's end)") for entry in change.queued]
    started = [f"job {job['job']}: {job['kind']} of {_move(job, most)}" for job in change.jobs]
    rows += [("started", text) for text in _ends(started, most)]
    rows += [("ended", text) for text in _ends([_ended(job, most) for job in outcome["completed"]], most)]
    rows += [("events", "; ".join(_ends([_event(event, most) for event in outcome["events"]], most)))]
    requests = [f"{flow(req)} is live" for req in change.live] + [f"{flow(req)} is over" for req in change.over]
    rows += [("requests", ", ".join(requests))]
    rows = [(label, text) for label, text in rows if text]
    if not rows:
        yield from labelled("changed", "nothing", out)
    for label, text in rows:
        yield from labelled(label, text, out)


def _ends(texts: Sequence[str], most: int | None) -> list[str]:
    """The first and the last of many: a whole request can have hundreds of jobs."""
    if most is None or len(texts) <= _FROM_EACH_END * 2 + 1:
        return list(texts)
    hidden = f"(and {len(texts) - 2 * _FROM_EACH_END:,} more in between)"
    return [*texts[:_FROM_EACH_END], hidden, *texts[-_FROM_EACH_END:]]


def _primary(change: StateChange, most: int | None) -> str:
    arrived = [f"+{flow(key)}{_pins(pins)}" for key, pins in change.arrived.items()]
    moved = [f"{flow(key)} pins {was} to {now}" for key, (was, now) in change.pins.items() if key not in change.ready]
    ready = [f"{flow(key)} ready{_pins(change.pins.get(key, (0, 0))[1])}" for key in change.ready]
    pending = [f"{flow(key)} pending anew" for key in change.pending]
    left = [f"-{flow(key)}" for key in change.left]
    return "; ".join(_some(group, most) for group in (arrived, left, ready, pending, moved) if group)


def _pins(pins: int | None) -> str:
    if pins is None:
        return " pending"
    return f" ({pins} pin{'' if pins == 1 else 's'})" if pins else ""


def _policy(change: StateChange, most: int | None) -> Iterator[tuple[str, str]]:
    for name, found in change.policy.items():
        if name == "order" and found.order is not None:
            yield name, f"{names(found.order, most)} (least recent first)"
        else:
            yield name, _list_change(found, most)
    if change.target is not None:
        yield "target", f"{change.target[0]:g} to {change.target[1]:g}"


def _list_change(change: ListChange, most: int | None) -> str:
    groups = [[f"+{flow(key)}" for key in change.entered], [f"-{flow(key)}" for key in change.left]]
    parts = [_some(group, most) for group in groups if group]
    if change.order is not None:
        parts.append(f"now {names(change.order, most)} (least recent first)")
    return "; ".join(parts)


def _some(texts: Sequence[str], most: int | None) -> str:
    shown = texts if most is None else texts[:most]
    return ", ".join([*shown, *([f"and {len(texts) - len(shown):,} more"] if len(shown) < len(texts) else [])])


def _move(entry: Mapping[str, Any], most: int | None) -> str:
    word = "to" if entry.get("kind") == "cascade" else "from"
    return f"{names(entry['blocks'], most)} {word} {flow(entry['tier'])} for {flow(entry['req'])}"


def _ended(job: Mapping[str, Any], most: int | None) -> str:
    text = f"job {job['job']}: {job['kind']} of {_move({**job, 'blocks': [*job['ok'], *job['failed']]}, most)}"
    return text + (f"; failed {names(job['failed'], most)}" if job["failed"] else "")


def _event(event: Mapping[str, Any], most: int | None) -> str:
    place = event["medium"] + (f" {event['locality']}" if event["locality"] else "")
    return f"{place} {'removed' if event['removed'] else 'stored'} {names(event['blocks'], most)}"
