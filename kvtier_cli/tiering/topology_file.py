"""Topologies from files and from the command line: TOML, JSON, YAML or vLLM's own, told apart by their content.

What may stand in one is `topology_shape.py`, in vLLM's `vllm/`; writing one is `topology_write.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.json_text import decode_json, decode_unique_json
from kvtier_cli.tiering.text_file import read_text_file
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_checks import topology_warnings
from kvtier_cli.tiering.topology_shape import Step, topology_from_builtins
from kvtier_cli.tiering.topology_write import topology_as_json, topology_as_toml

if TYPE_CHECKING:
    from kvtier_cli.tiering.vllm.capacity import Sizes
    from kvtier_cli.tiering.vllm.imported import VllmTopology

__all__ = [
    "load_any_topology",
    "load_topology",
    "read_any_topology",
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

COMMAND_LIMIT: Final = 256 * 1024
"""Characters of a command line: Linux takes half of that in one word."""

_OWN_KEYS: Final = frozenset({"version", "block", "primary", "tiers", "replay"})
_FORMATS: Final = {".toml": "toml", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
_TOML_FAULT = re.compile(r"(?P<reason>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.S)
_TOML_LINE = re.compile(r"^\s*(?:\[|[\w.\"'-]+\s*=)", re.MULTILINE)


def load_topology(text_or_path: str, sizes: Sizes | None = None) -> Topology:
    """The topology in a file, or in the text itself: JSON that starts with `{`, or a `vllm serve` command line.

    vLLM's own configuration needs `sizes` to tell how many blocks its CPU tier holds. Raises InputError: for a file
    that cannot be read, for syntax (file, line and column), for what a field cannot hold (its path inside, and the
    line where the format can tell; TOML cannot), for what vLLM refuses.
    """
    found = load_any_topology(text_or_path, sizes)
    return found if isinstance(found, Topology) else found.topology()


def load_any_topology(text_or_path: str, sizes: Sizes | None = None) -> Topology | VllmTopology:
    """As `load_topology`, but vLLM's own configuration as it is, whether or not its CPU tier's size is known.

    A path may have an @ before it.
    """
    if text_or_path.lstrip().startswith("{"):
        found = _read(text_or_path, "topology", "json", sizes)
        return replace(found, name=INLINE)
    if _is_command(text_or_path):
        return replace(_read_command(text_or_path, "topology", sizes), name=INLINE)
    path = text_or_path.removeprefix("@")
    if not path:
        raise InputError("there is no topology, expected a file, JSON text or a vllm serve command")
    text = read_text_file(path, "a topology", limit=LIMIT)
    return read_any_topology(text, path, sizes, form=_FORMATS.get(PurePath(path).suffix.lower()))


def read_topology_text(text: str, name: str, *, form: str | None = None) -> Topology:
    """The topology in `text`; `name` is what errors and outputs call it, `form` ("toml", "json", "yaml") if known."""
    found = read_any_topology(text, name, form=form)
    return found if isinstance(found, Topology) else found.topology()


def read_any_topology(
    text: str, name: str, sizes: Sizes | None = None, *, form: str | None = None
) -> Topology | VllmTopology:
    """As `read_topology_text`, but vLLM's own configuration as it is."""
    if not text.strip():
        raise InputError("is empty, expected a topology", file=name)
    if form is None and _is_command(text):
        return _read_command(text, name, sizes)
    return _read(text, name, form, sizes)


def _read(text: str, name: str, form: str | None, sizes: Sizes | None) -> Topology | VllmTopology:
    if form != "yaml" and text.lstrip().startswith("{"):
        form = "json"
    if form == "json":
        value = decode_json(text, name)
    elif form == "toml":
        value = _decode_toml(text, name)
    elif form == "yaml":
        value = _decode_yaml(text, name)
    else:
        value, form = _decode_unknown(text, name)

    def locate(path: Sequence[Step]) -> tuple[int, int] | None:
        from kvtier_cli.tiering.yaml_text import locate as locate_in_yaml

        return locate_in_yaml(text, path)

    if _is_vllm(value):
        from kvtier_cli.tiering.vllm.imported import NO_SIZES, import_value

        return import_value(
            value,
            name,
            sizes or NO_SIZES,
            file=name,
            locate=None if form == "toml" else locate,
            json_text=text if form == "json" else None,
        )
    if form == "json":
        value = decode_unique_json(text, name)
    return topology_from_builtins(value, name, file=name, locate=None if form == "toml" else locate)


def _is_vllm(value: object) -> bool:
    if not isinstance(value, dict) or _OWN_KEYS.issuperset(value):
        return False
    from kvtier_cli.tiering.vllm.imported import is_vllm

    return is_vllm(value)


def _is_command(text: str) -> bool:
    if "vllm" not in text and "--kv" not in text:
        return False
    from kvtier_cli.tiering.vllm.command import looks_like_command

    return looks_like_command(text)


def _read_command(text: str, name: str, sizes: Sizes | None) -> VllmTopology:
    from kvtier_cli.tiering.vllm.imported import NO_SIZES, import_command

    if len(text) > COMMAND_LIMIT:
        raise InputError(
            f"is longer than {COMMAND_LIMIT // 1024} KiB, the most that is read of a command line",
            file=name,
            hint="Give the JSON of --kv-transfer-config by itself.",
        )
    return import_command(text, name, sizes or NO_SIZES, file=name)


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
