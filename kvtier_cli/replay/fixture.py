"""Reads scripted fixtures: JSON or YAML, one scenario a file, with what it expects. Running one is `fixture_run.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

from kvtier_cli.errors import InputError
from kvtier_cli.replay.op_shape import check_fields, check_op, check_requests
from kvtier_cli.replay.outcome_shape import check_expect
from kvtier_cli.replay.preset_check import check_state
from kvtier_cli.replay.source_text import SourceText
from kvtier_cli.tiering.json_text import decode_unique_json
from kvtier_cli.tiering.text_file import read_text_file
from kvtier_cli.tiering.topology import BUILT_IN, Topology
from kvtier_cli.tiering.topology_shape import topology_from_builtins
from kvtier_cli.wording import escape, shorten, shown

VERSION: Final = 1
FIELDS: Final = ("kvtier", "title", "topology", "ops", "outcomes")

_YAML_SUFFIXES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class FixtureOp:
    """One op: its place in the list, its fields as they stand there, and what it expects of its outcome in part."""

    index: int
    fields: Mapping[str, Any]
    expect: Mapping[str, Any]
    source: SourceText = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return str(self.fields["op"])

    @property
    def line(self) -> int | None:
        """Where it stands in its file, from 1; None where that cannot be told."""
        return self.source.line(("ops", self.index))

    def __str__(self) -> str:
        """What it is, for messages: `lookup r1 b1`."""
        fields = self.fields
        words = [str(fields[key]) for key in ("op", "tier", "id", "block", "trace") if key in fields]
        words += map(str, fields.get("blocks", ()))
        return escape(shorten(" ".join(words)))


@dataclass(frozen=True, slots=True)
class Fixture:
    """A scripted fixture that was read. `outcomes`: what is expected of the ops' outcomes whole, one an op, if given.

    `folder` is where the files that it names are looked for.
    """

    file: str
    title: str
    topology: Topology
    ops: tuple[FixtureOp, ...]
    outcomes: Sequence[Mapping[str, Any]] | None
    source: SourceText = field(repr=False, compare=False)
    folder: Path = Path()


def read_fixture(path: str) -> Fixture:
    """The fixture in the file at `path`. Raises InputError as `fixture_from_text` does."""
    return fixture_from_text(read_text_file(path, "a fixture"), path, folder=Path(path).parent)


def fixture_from_text(text: str, name: str, *, folder: Path = Path()) -> Fixture:
    """The fixture in `text`; `name` is what messages call its file.

    JSON if it starts with `{` (and its name is not that of a YAML file), else YAML. Raises InputError with the line:
    for syntax, for fields and ops that are not known (naming the nearest), for values that a field cannot hold, for
    an op about a request that is not live, and for expectations of something that the op's outcome does not have.
    """
    source, value = _decode(text, name)
    if "\\u" in text or "\\U" in text:
        _check_texts(value, (), source)
    if not isinstance(value, dict):
        source.fail((), f"expected a fixture, an object with a list of ops, found {shown(value)}")
    check_fields(value, FIELDS, (), source)
    version = value.get("kvtier", VERSION)
    if type(version) is not int or version != VERSION:
        source.fail(("kvtier",), f"version {shown(version)} of a fixture is not known, only {VERSION} is")
    title = value.get("title", "")
    if not isinstance(title, str):
        source.fail(("title",), f"expected a text, found {shown(title)}")
    topology = BUILT_IN
    if value.get("topology") is not None:
        topology = topology_from_builtins(value["topology"], name, file=name, at=("topology",), locate=source.locate)
    ops = _ops(value, topology, source)
    return Fixture(name, title, topology, ops, _outcomes(value, source), source, folder)


def _decode(text: str, name: str) -> tuple[SourceText, object]:
    if not text.strip():
        raise InputError("is empty, expected a fixture", file=name)
    if text.lstrip().startswith("{") and PurePath(name).suffix.lower() not in _YAML_SUFFIXES:
        return SourceText(name, text, "json"), decode_unique_json(text, name)
    from kvtier_cli.tiering.yaml_text import decode_yaml

    return SourceText(name, text, "yaml"), decode_yaml(text, name)


def _check_texts(value: object, path: tuple[str | int, ...], source: SourceText) -> None:
    """Escapes can spell halves of a surrogate pair, which no file and no terminal can hold."""
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            source.fail(path, f"{shown(value)} holds half a surrogate pair")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key, path, source)
            _check_texts(item, (*path, escape(str(key))), source)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_texts(item, (*path, index), source)


def _ops(value: Mapping[str, Any], topology: Topology, source: SourceText) -> tuple[FixtureOp, ...]:
    if "ops" not in value:
        source.fail((), "has no ops, the list of what is to be done")
    ops = value["ops"]
    if not isinstance(ops, list):
        source.fail(("ops",), f"expected a list of ops, found {shown(ops)}")
    for index, op in enumerate(ops):
        path = ("ops", index)
        check_op(op, path, topology, source)
        if op.get("expect"):
            check_expect(op["op"], op["expect"], (*path, "expect"), topology, source)
        if op["op"] == "preset":
            check_state(op["state"], (*path, "state"), topology, source)
    check_requests(ops, ("ops",), source)
    return tuple(FixtureOp(index, op, op.get("expect") or {}, source) for index, op in enumerate(ops))


def _outcomes(value: Mapping[str, Any], source: SourceText) -> Sequence[Mapping[str, Any]] | None:
    outcomes = value.get("outcomes")
    if outcomes is None:
        return None
    if not isinstance(outcomes, list):
        source.fail(("outcomes",), f"expected a list, an outcome an op, found {shown(outcomes)}")
    if len(outcomes) != len(value["ops"]):
        source.fail(("outcomes",), f"has {len(outcomes)} outcomes for {len(value['ops'])} ops, expected one an op")
    for index, outcome in enumerate(outcomes):
        if not isinstance(outcome, dict):
            source.fail(("outcomes", index), f"expected an outcome, an object, found {shown(outcome)}")
    return outcomes
