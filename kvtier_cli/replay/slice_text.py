"""The text of a saved slice: YAML with comments that say where it comes from and what was cut. Decides nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from textwrap import wrap
from typing import Any, Final, NamedTuple

from kvtier_cli.tiering.topology import PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.tiering.topology_write import tier_fields
from kvtier_cli.wording import escape, shown

_WIDTH: Final = 110
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = frozenset({"null", "true", "false"})
_IRRELEVANT: Final = ("backend", "read_latency", "bandwidth", "about")
_DERIVED: Final = ("free", "evictable", "pending_work", "live")
_RENAMED_SHOWN: Final = 40


class Origin(NamedTuple):
    """Which request of which trace was saved: its number from 0, its own id if it has one; `note` says what was not the
    trace's own (a filter that was given)."""

    trace: str
    number: int
    own_id: str | None = None
    note: str | None = None

    @property
    def name(self) -> str:
        """How the fixture calls the trace. Where it lies on this machine is not for those who get the fixture."""
        path = PurePath(self.trace)
        return path.name if path.is_absolute() else self.trace


def fixture_text(
    topology: Topology,
    state: Mapping[str, Any],
    run: Mapping[str, Any],
    origin: Origin,
    cut: Mapping[str, int],
    renamed: Mapping[str, str],
    *,
    before: int,
    shrunk: bool,
) -> str:
    """A fixture of a `preset` and a `run`, with the run's expectations. `cut`: tier → blocks left out of the `before`
    that there were in all tiers; `shrunk` says that capacities went with them; `renamed`: the names of blocks that the
    trace calls otherwise."""
    remarks = _remarks(origin, cut, renamed, before, shrunk=shrunk)
    lines = [f"# {line}" for remark in remarks for line in wrap(remark, _WIDTH - 2, break_long_words=False)]
    lines += [
        "kvtier: 1",
        f"title: {scalar(_title(origin, run))}",
        "topology:",
        *_pairs(_topology(topology), "  "),
        "ops:",
        "  - op: preset",
        "    state:",
        *_pairs(_written(state), "      "),
        "  - op: run",
        *_pairs({key: value for key, value in run.items() if key not in ("op", "expect")}, "    "),
        "    expect:",
        *_pairs(_telling(run["expect"]), "      "),
    ]
    return "\n".join(lines) + "\n"


def _title(origin: Origin, run: Mapping[str, Any]) -> str:
    outcomes: Sequence[str] = run["expect"]["outcomes"]
    served = sum(outcome in ("primary", "promoted") for outcome in outcomes)
    why = "" if served == len(outcomes) else f", then {outcomes[served].replace('_', ' ')}"
    return f"{run['id']} of {origin.name}: {served:,} of {len(outcomes):,} blocks served{why}"


def _remarks(
    origin: Origin, cut: Mapping[str, int], renamed: Mapping[str, str], before: int, *, shrunk: bool
) -> Iterator[str]:
    own = "" if origin.own_id is None else f" ({escape(origin.own_id)})"
    yield (
        f"Request {origin.number}{own} of {escape(origin.name)}, with what it takes of the state before it to end as "
        "it did there: each block with the same outcome."
    )
    if origin.note:
        yield escape(origin.note)
    left_out = sum(cut.values())
    if left_out:
        parts = [f"{count:,} of {escape(name)}" for name, count in cut.items() if count]
        shrinking = (
            " The capacities have shrunk with them, so that the tiers are as full as they were." if shrunk else ""
        )
        yield f"Left out are {left_out:,} of {before:,} blocks: {', '.join(parts)}.{shrinking}"
    listed = list(renamed.items())[:_RENAMED_SHOWN]
    for name, label in listed:
        yield f"{name} is the trace's {shown(label)}."
    if len(renamed) > len(listed):
        yield f"{len(renamed) - len(listed):,} more blocks have other names than in the trace."


def _topology(topology: Topology) -> dict[str, Any]:
    """The topology without what is at its default or decides nothing here."""
    primary = topology.primary
    fields: dict[str, Any] = {"primary": {"capacity": primary.capacity}}
    if primary.policy != PrimarySpec().policy:
        fields["primary"]["policy"] = primary.policy
    defaults = tier_fields(TierSpec(""))
    fields["tiers"] = [
        {key: value for key, value in tier_fields(tier).items() if value != defaults[key] and key not in _IRRELEVANT}
        for tier in topology.tiers
    ]
    spec = ReplaySpec()
    replay = {
        name: getattr(topology.replay, name)
        for name in ("max_wait_steps", "store_batch_blocks")
        if getattr(topology.replay, name) != getattr(spec, name)
    }
    return {**fields, "replay": replay} if replay else fields


def _telling(expect: Mapping[str, Any]) -> dict[str, Any]:
    """Expectations without those that follow from the outcomes."""
    has_tiers = any(tier is not None for tier in expect["tiers"])
    return {key: value for key, value in expect.items() if value is not None and (key != "tiers" or has_tiers)}


def _written(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state without what follows from the rest or says nothing."""
    policy = {key: value for key, value in state["policy"].items() if value and key != "name"}
    written = {
        **{key: value for key, value in state.items() if value and key not in _DERIVED},
        "policy": policy or {"order" if state["policy"]["name"] == "lru" else "t1": []},
        "tiers": {name: blocks for name, blocks in state["tiers"].items() if blocks},
        "jobs": [{key: value for key, value in job.items() if key != "job"} for job in state["jobs"]],
    }
    if not any(pins is None or pins for pins in state["blocks"].values()):
        written["blocks"] = {}  # the policy lists them, and all are ready
    return {key: value for key, value in written.items() if value}


def _pairs(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A mapping in lines: short values in one each, long lists folded, objects within objects below one another."""
    for key, value in mapping.items():
        head = f"{indent}{scalar(key)}:"
        line = f"{head} {flow(value)}"
        if len(line) <= _WIDTH or not isinstance(value, list | dict):
            yield line
        elif isinstance(value, dict):
            yield head
            yield from _pairs(value, indent + "  ")
        elif any(isinstance(item, dict) for item in value):
            yield head
            for item in value:
                yield from _item(item, indent + "  ")
        else:
            yield f"{head} ["
            yield from _folded(value, indent + "  ")
            yield f"{indent}  ]"


def _item(item: Any, indent: str) -> Iterator[str]:
    line = f"{indent}- {flow(item)}"
    if len(line) <= _WIDTH or not isinstance(item, dict):
        yield line
        return
    lines = list(_pairs(item, indent + "  "))
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _folded(items: Sequence[Any], indent: str) -> Iterator[str]:
    line = indent
    for item in items:
        text = f"{flow(item)},"
        if len(line) + len(text) > _WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{text} "
    if line.strip():
        yield line.rstrip()


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{scalar(key)}: {flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    return scalar(value)


def scalar(value: Any) -> str:
    """A plain value as YAML 1.2 reads it back; what is not plainly a text is quoted as JSON does, which is YAML too."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())
