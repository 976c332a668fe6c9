"""Which fields the outcome of each op has, so that an expectation with a misspelt one is an error and not a surprise.

The fields are those of the recordings. Values are compared in `expect.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kvtier_cli.replay.op_shape import check_block, check_blocks, check_fields
from kvtier_cli.replay.source_text import SourceText
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_shape import Path
from kvtier_cli.wording import shown

NOT_RESIDENT: Final = "not_resident"
"""Stands in an `expect` alone: blocks that are not in the primary, pending neither."""

RANGE: Final = ("min", "max")


class _Leaf(Enum):
    VALUE = "a value"
    BLOCKS = "blocks"
    FIGURES = "figures, known when the trace was replayed"


@dataclass(frozen=True)
class _Each:
    """A list of objects with these fields."""

    fields: Mapping[str, Any]


@dataclass(frozen=True)
class _ByBlock:
    """An object with a value for each of some blocks."""


_Shape = _Leaf | _Each | _ByBlock | Mapping[str, Any]

_VALUE, _BLOCKS = _Leaf.VALUE, _Leaf.BLOCKS
_JOB: Final = dict.fromkeys(("job", "tier", "kind", "req"), _VALUE)
_POLICY: Final[Mapping[str, _Shape]] = {
    "lru": {"name": _VALUE, "order": _BLOCKS},
    "arc": {"name": _VALUE, **dict.fromkeys(("t1", "t2", "b1", "b2"), _BLOCKS), "target": _VALUE},
}
_COMMON: Final[Mapping[str, _Shape]] = {
    "op": _VALUE,
    "completed": _Each({**_JOB, "success": _VALUE, "ok": _BLOCKS, "failed": _BLOCKS}),
    "tier_finished": _Each(dict.fromkeys(("tier", "req"), _VALUE)),
    "events": _Each({**dict.fromkeys(("medium", "locality", "removed"), _VALUE), "blocks": _BLOCKS}),
}
_OWN: Final[Mapping[str, Mapping[str, _Shape]]] = {
    "request": {
        "filter": _Each(dict.fromkeys(("medium", "locality"), _VALUE)),
        **dict.fromkeys(("warnings", "offload_policy"), _VALUE),
    },
    "lookup": {**dict.fromkeys(("result", "verdicts", "promotion", "denied", "source"), _VALUE), "evicted": _BLOCKS},
    "store": dict.fromkeys(("stored", "evicted"), _BLOCKS),
    "complete_store": {"blocks": _BLOCKS, "success": _VALUE},
    "load": {"loaded": _BLOCKS, "sources": _VALUE},
    "complete_load": {"blocks": _BLOCKS},
    "run": {"outcomes": _VALUE, "tiers": _VALUE, "why": dict.fromkeys(("block", "tier", "reason", "by"), _VALUE)},
    "replay": {"figures": _Leaf.FIGURES},
}


def check_expect(op: str, expect: Mapping[Any, Any], path: Path, topology: Topology, source: SourceText) -> None:
    """Whether an `expect`, which stands at `path`, names fields that the outcome of `op` has.

    Raises InputError with the nearest field for one it has not, and for a range or a block's name that is none.
    """
    fields: dict[str, _Shape] = {
        **_OWN.get(op, {}),
        **_COMMON,
        "state": _state(topology),
        NOT_RESIDENT: _BLOCKS,
    }
    _check(expect, fields, path, source, what=f"the outcome of {op} has no such field")
    absent = expect.get(NOT_RESIDENT, [])
    if not isinstance(absent, list):
        source.fail((*path, NOT_RESIDENT), f"expected a list of blocks, found {shown(absent)}")


def _state(topology: Topology) -> _Shape:
    return {
        "blocks": _ByBlock(),
        "policy": _POLICY[topology.primary.policy],
        "free": _VALUE,
        "evictable": _VALUE,
        "tiers": {tier.name: _BLOCKS for tier in topology.tiers},
        "jobs": _Each({**_JOB, "blocks": _BLOCKS}),
        "queued": _Each({"tier": _VALUE, "req": _VALUE, "blocks": _BLOCKS}),
        "pending_work": _VALUE,
        "live": _VALUE,
    }


def _check(value: object, shape: _Shape, path: Path, source: SourceText, *, what: str = "unknown field") -> None:
    if isinstance(value, list):
        if isinstance(shape, _Each):
            for index, item in enumerate(value):
                _check(item, shape.fields, (*path, index), source)
        elif shape is _BLOCKS:
            check_blocks(value, path, source)
        else:
            for index, item in enumerate(value):
                _check(item, _VALUE, (*path, index), source)
    elif not isinstance(value, dict):
        return
    elif isinstance(shape, Mapping):
        check_fields(value, shape, path, source, what=what)
        for key, inner in value.items():
            _check(inner, shape[key], (*path, key), source)
    elif isinstance(shape, _ByBlock):
        for key, inner in value.items():
            check_block(key, (*path, key if isinstance(key, str) else shown(key)), source)
            _check(inner, _VALUE, (*path, key), source)
    elif isinstance(shape, _Each):
        source.fail(path, f"expected a list, found {shown(value)}")
    elif shape is not _Leaf.FIGURES:
        _check_range(value, path, source)


def _check_range(value: Mapping[Any, Any], path: Path, source: SourceText) -> None:
    """The only object that may stand where the outcome has a plain value."""
    if not value:
        source.fail(path, "expected a value or a range {min: …, max: …}, found {}")
    check_fields(value, RANGE, path, source, what="expected a value or a range {min: …, max: …}")
    for key, bound in value.items():
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            source.fail((*path, key), f"expected a number, found {shown(bound)}")
    if len(value) == 2 and value["min"] > value["max"]:
        source.fail(path, f"nothing is at least {value['min']} and at most {value['max']}")
