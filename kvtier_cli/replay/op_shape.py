"""Which ops a scripted fixture may hold, their fields, and what these may be. What ops do is `ops.py`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct

from kvtier_cli.errors import InputError
from kvtier_cli.replay.source_text import SourceText
from kvtier_cli.tiering.block_names import check_block_name
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_shape import Path
from kvtier_cli.units import LARGEST
from kvtier_cli.wording import did_you_mean, nearest, shown

_Name = Annotated[str, Meta(min_length=1)]
_Blocks = list[Any]  # names, checked by `check_block_name`
_Positions = list[Annotated[int, Meta(ge=0, le=LARGEST)] | None]


class _Op(Struct, kw_only=True):
    op: str
    expect: dict[Any, Any] | None = None


class _Seed(_Op):
    tier: str
    blocks: _Blocks


class _Request(_Op):
    id: _Name
    kv_load_tiers: Any = UNSET


class _Lookup(_Op):
    id: _Name
    block: Any
    positions: _Positions = []


class _Touch(_Op):
    id: _Name
    blocks: _Blocks
    positions: _Positions = []


class _Deferrable(_Touch):
    defer: bool = False


class _CompleteStore(_Op):
    id: _Name
    success: bool = True


class _OfRequest(_Op):
    id: _Name


class _Reset(_Op):
    hold: bool = False


class _Preset(_Op):
    state: dict[Any, Any]


class _Run(_Op):
    id: _Name
    blocks: _Blocks
    kv_load_tiers: Any = UNSET
    max_load_tokens: Any = UNSET
    max_offload_tokens: Any = UNSET


class _Replay(_Op):
    trace: _Name
    kv_load_tiers: Any = UNSET


OPS: Final[Mapping[str, type[_Op]]] = {
    "seed": _Seed,
    "request": _Request,
    "lookup": _Lookup,
    "store": _Deferrable,
    "complete_store": _CompleteStore,
    "load": _Deferrable,
    "complete_load": _OfRequest,
    "touch": _Touch,
    "finish": _OfRequest,
    "step": _Op,
    "reset": _Reset,
    "flushed": _Op,
    "preset": _Preset,
    "run": _Run,
    "replay": _Replay,
}
"""Op → its fields; those without a default must be given."""

_EXPECTED: Final = {
    "expect": "an object, the fields of the outcome that are to be checked",
    "tier": "a tier's name",
    "id": "a request's id: a text, not empty",
    "block": "a block's name",
    "blocks": "a list of blocks",
    "positions": "a list of tokens, one a block (null where not given)",
    "defer": "true or false",
    "success": "true or false",
    "hold": "true or false",
    "state": "an object, as an outcome's state",
    "trace": "the path of a trace file",
}
_ANNOUNCING: Final = frozenset({"request", "run"})
_AFTER_FINISH: Final = frozenset({"complete_store", "complete_load"})
_FIELD = re.compile(r"\$\.(\w+)(?:\[(\d+)\])?")


def check_op(op: object, path: Path, topology: Topology, source: SourceText) -> None:
    """Whether `op`, which stands at `path` of the fixture, is one. Raises InputError that says what is wrong."""
    if not isinstance(op, dict):
        source.fail(path, f"expected an op such as {{op: step}}, found {shown(op)}")
    name = op.get("op", UNSET)
    if name is UNSET:
        source.fail(path, 'has no "op"', f"an op is one of {', '.join(OPS)}")
    if not isinstance(name, str) or name not in OPS:
        source.fail((*path, "op"), f"unknown op {shown(name)}", did_you_mean(str(name), OPS))
    shape = OPS[name]
    check_fields(op, shape.__struct_fields__, path, source, what=f"{name} has no such field")
    for required in msgspec.structs.fields(shape):
        if required.required and required.name not in op:
            source.fail(path, f'{name} has no "{required.name}"', f"expected {_EXPECTED[required.name]}")
    try:
        msgspec.convert(op, shape)
    except msgspec.ValidationError as error:
        _refuse(error, op, path, source)
    _check_values(op, path, topology, source)


def check_fields(
    value: Mapping[Any, Any], known: Collection[str], path: Path, source: SourceText, *, what: str = "unknown field"
) -> None:
    """Whether all keys of an object are `known`; names the nearest one where not."""
    for key in value:
        if key not in known:
            text = key if isinstance(key, str) else shown(key)
            near = nearest(text, known)
            source.fail((*path, text), what, f'did you mean "{near}"?' if near else f"known are {', '.join(known)}")


def check_blocks(names: Sequence[object], path: Path, source: SourceText) -> None:
    """Whether each of `names`, a list at `path`, is a block's name."""
    for index, name in enumerate(names):
        check_block(name, (*path, index), source)


def check_block(name: object, path: Path, source: SourceText) -> None:
    """Whether what stands at `path` is a block's name."""
    try:
        check_block_name(name)
    except InputError as error:
        source.fail(path, error.message, error.hint)


def check_requests(ops: Sequence[Mapping[str, Any]], at: Path, source: SourceText) -> None:
    """Whether each op is about a request that was announced before and is not finished; ids may be used again then."""
    announced: dict[str, int] = {}
    finished: dict[str, int] = {}
    for index, op in enumerate(ops):
        req_id, path = op.get("id"), (*at, index, "id")
        if not isinstance(req_id, str):
            continue
        if op["op"] in _ANNOUNCING:
            if req_id in announced and req_id not in finished:
                where = _where(announced[req_id], at, source)
                source.fail(path, f"request {shown(req_id)} is live already, {where} announced it")
            announced[req_id] = index
            finished.pop(req_id, None)
        elif req_id not in announced:
            hint = did_you_mean(req_id, announced) if announced else f"announce it: {{op: request, id: {req_id}}}"
            source.fail(path, f"request {shown(req_id)} is not known here", hint)
        elif op["op"] not in _AFTER_FINISH and req_id in finished:
            source.fail(path, f"request {shown(req_id)} is finished, {_where(finished[req_id], at, source)} ended it")
        if op["op"] in ("finish", "run"):
            finished[req_id] = index


def _where(index: int, at: Path, source: SourceText) -> str:
    line = source.line((*at, index))
    return f"{'.'.join(map(str, at))}[{index}]" if line is None else f"line {line}"


def _refuse(error: msgspec.ValidationError, op: Mapping[str, Any], path: Path, source: SourceText) -> None:
    """Says in words of ours what msgspec found: it names the field, and the value there is at hand."""
    match = _FIELD.search(str(error))
    field = match[1] if match else "op"
    found = op[field]
    if match and match[2] and isinstance(found, list):
        source.fail((*path, field, int(match[2])), f"expected {_EXPECTED[field]}, found {shown(found[int(match[2])])}")
    source.fail((*path, field), f"expected {_EXPECTED.get(field, 'a text')}, found {shown(found)}")


def _check_values(op: Mapping[str, Any], path: Path, topology: Topology, source: SourceText) -> None:
    blocks = op.get("blocks", ())
    check_blocks(blocks, (*path, "blocks"), source)
    if "block" in op:
        check_block(op["block"], (*path, "block"), source)
        blocks = [op["block"]]
    if "positions" in op and len(op["positions"]) != len(blocks):
        source.fail(
            (*path, "positions"),
            f"expected {len(blocks)} tokens, one a block, found {len(op['positions'])}",
            "null stands for a position that is not given",
        )
    if "tier" in op and op["tier"] not in (names := [tier.name for tier in topology.tiers]):
        hint = did_you_mean(op["tier"], names) if names else "the topology has no secondary tiers"
        source.fail((*path, "tier"), f"unknown tier {shown(op['tier'])}", hint)
