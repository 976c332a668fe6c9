"""Topologies from files and from the command line: TOML, JSON or YAML text, told apart by its content.

What may stand in one is `topology_shape.py`; writing one is `topology_write.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.json_text import decode_unique_json
from kvtier_cli.tiering.text_file import read_text_file
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_checks import topology_warnings
from kvtier_cli.tiering.topology_shape import Step, topology_from_builtins
from kvtier_cli.tiering.topology_write import topology_as_json, topology_as_toml

__all__ = [
    "load_topology",
    "read_topology_text",
    "topology_as_json",
    "topology_as_toml",
    "topology_from_builtins",
    "topology_warnings",
]

INLINE: Final = "inline topology"
"""What outputs call a topology that stands on the command line itself."""

LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a topology: some thousands of tiers."""

_FORMATS: Final = {".toml": "toml", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
_TOML_FAULT = re.compile(r"(?P<reason>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.S)
_TOML_LINE = re.compile(r"^\s*(?:\[|[\w.\"'-]+\s*=)", re.MULTILINE)


def load_topology(text_or_path: str) -> Topology:
    """The topology in a file, or in the text itself where that starts with `{` (JSON).

    Raises InputError: for a file that cannot be read, for syntax (file, line and column), for what a field cannot
    hold (its path inside, and the line where the format can tell; TOML cannot).
    """
    if text_or_path.lstrip().startswith("{"):
        return replace(read_topology_text(text_or_path, "topology", form="json"), name=INLINE)
    if not text_or_path:
        raise InputError("there is no topology, expected a file or JSON text")
    text = read_text_file(text_or_path, "a topology", limit=LIMIT)
    return read_topology_text(text, text_or_path, form=_FORMATS.get(PurePath(text_or_path).suffix.lower()))


def read_topology_text(text: str, name: str, *, form: str | None = None) -> Topology:
    """The topology in `text`; `name` is what errors and outputs call it, `form` ("toml", "json", "yaml") if known."""
    if not text.strip():
        raise InputError("is empty, expected a topology", file=name)
    if form != "yaml" and text.lstrip().startswith("{"):
        form = "json"
    if form == "json":
        value = decode_unique_json(text, name)
    elif form == "toml":
        value = _decode_toml(text, name)
    elif form == "yaml":
        value = _decode_yaml(text, name)
    else:
        value, form = _decode_unknown(text, name)

    def locate(path: Sequence[Step]) -> tuple[int, int] | None:
        from kvtier_cli.tiering.yaml_text import locate as locate_in_yaml

        return locate_in_yaml(text, path)

    return topology_from_builtins(value, name, file=name, locate=None if form == "toml" else locate)


def _decode_unknown(text: str, name: str) -> tuple[object, str]:
    """TOML if it is, else YAML if that gives fields; of two faults, that of the format which the text looks like."""
    try:
        return _decode_toml(text, name), "toml"
    except InputError as fault:
        toml_fault = fault
    try:
        value = _decode_yaml(text, name)
    except InputError:
        if _TOML_LINE.search(text):
            raise toml_fault from None
        raise
    if not isinstance(value, dict) and _TOML_LINE.search(text):
        raise toml_fault
    return value, "yaml"


def _decode_yaml(text: str, name: str) -> object:
    from kvtier_cli.tiering.yaml_text import decode_yaml

    return decode_yaml(text, name)


def _decode_toml(text: str, name: str) -> object:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _TOML_FAULT.fullmatch(str(error))
        reason = match["reason"] if match else str(error)
        line, column = (match["line"], match["column"]) if match else (None, None)
        raise InputError(
            f"not TOML: {reason[:1].lower()}{reason[1:]}",
            file=name,
            line=int(line) if line else text.rstrip().count("\n") + 1,
            column=int(column) if column else None,
            hint="texts stand in double quotes" if reason == "Invalid value" else None,
        ) from error
    except RecursionError as error:
        raise InputError("not TOML: nested too deeply", file=name) from error
    except ValueError as error:  # the limit on digits
        raise InputError("holds a number that cannot be read: too many digits", file=name) from error
