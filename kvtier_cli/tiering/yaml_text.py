"""YAML text by the core rules of YAML 1.2, as plain values only: nothing is executed, nothing silently converted.

PyYAML by itself follows YAML 1.1: `0123` is 83 there, `yes` true, `12:30` 750, and dates become dates. Here these
are 123 and three strings. Keys may not stand twice, and of tags only those of plain values are known.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import yaml

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

LARGEST = 1_000_000
"""Values in one document, counted where aliases repeat them: a few lines of aliases can stand for billions."""

_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": (re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    "int": (re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), list("-+0123456789")),
    "float": (
        re.compile(
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
        ),
        list("-+.0123456789"),
    ),
}


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's scanner and composer under YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the stubs have it
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def core_bool(self, node: yaml.ScalarNode) -> bool:
        if not _CORE["bool"][0].fullmatch(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, f"{shown(node.value)} is neither true nor false", node.start_mark
            )
        return str(node.value).lower() == "true"

    def core_int(self, node: yaml.ScalarNode) -> int:
        try:
            return int(node.value, 0) if node.value.startswith(("0o", "0x")) else int(node.value)
        except ValueError:
            raise yaml.constructor.ConstructorError(
                None, None, f"{shown(node.value)} is no whole number that can be read", node.start_mark
            ) from None

    def core_float(self, node: yaml.ScalarNode) -> float:
        text = node.value.lower().replace(".inf", "inf").replace(".nan", "nan")
        try:
            return float(text)
        except ValueError:
            raise yaml.constructor.ConstructorError(
                None, None, f"{shown(node.value)} is no number", node.start_mark
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            seen: set[tuple[str, str]] = set()
            for key, _ in node.value:
                name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
                if name in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {shown(name[1])} stands twice", key.start_mark
                    )
                if name is not None:
                    seen.add(name)
        # Not SafeConstructor's, which merges `<<`: YAML 1.2 has no such key.
        return yaml.constructor.BaseConstructor.construct_mapping(self, node, deep=deep)

    def unknown_tag(self, node: yaml.Node) -> None:
        raise yaml.constructor.ConstructorError(
            None, None, f"the tag {shown(node.tag)} is not known, only plain values are read", node.start_mark
        )


for _kind, (_pattern, _first) in _CORE.items():
    _anchored = re.compile(rf"(?:{_pattern.pattern})\Z")
    _CoreLoader.add_implicit_resolver(f"{_TAG}{_kind}", _anchored, _first)
for _tag, _constructor in {
    f"{_TAG}null": _CoreLoader.construct_yaml_null,
    f"{_TAG}bool": _CoreLoader.core_bool,
    f"{_TAG}int": _CoreLoader.core_int,
    f"{_TAG}float": _CoreLoader.core_float,
    f"{_TAG}str": _CoreLoader.construct_yaml_str,
    f"{_TAG}seq": _CoreLoader.construct_yaml_seq,
    f"{_TAG}map": _CoreLoader.construct_yaml_map,
    None: _CoreLoader.unknown_tag,
}.items():
    _CoreLoader.add_constructor(_tag, _constructor)


def decode_yaml(text: str, name: str) -> object:
    """The value of the one document in `text`; `name` is what errors call its source.

    Raises InputError with line and column: for syntax, for a key given twice, for a tag that is not a plain value's,
    for an alias within itself or aliases that repeat more than a million values.
    """
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node, name)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = error.problem or error.context or "cannot be read"
        if (error.context or "").startswith("expected"):
            words = f"{error.context}, {words}"
        raise InputError(
            f"not YAML: {words}",
            file=name,
            line=None if mark is None else mark.line + 1,
            column=None if mark is None else mark.column + 1,
        ) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        raise InputError(
            f"not YAML: the character {shown(text[error.position : error.position + 1])} may not stand in it",
            file=name,
            line=before.count("\n") + 1,
            column=len(before) - before.rfind("\n"),
        ) from error
    except RecursionError as error:
        raise InputError("not YAML: nested too deeply", file=name) from error


def locate(text: str, path: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column (from 1) of the value at `path` in YAML or JSON `text`; None where it cannot be told.

    A step that is not there (a field that is missing) ends the way at what should hold it.
    """
    try:
        # PyYAML refuses the tabs that JSON allows between its values.
        node = _CoreLoader(text.replace("\t", " ")).get_single_node()
    except (yaml.YAMLError, RecursionError):
        return None
    if node is None:
        return None
    for step in path:
        inner = _step(node, step)
        if inner is None:
            break
        node = inner
    return node.start_mark.line + 1, node.start_mark.column + 1


def locate_repeated_key(text: str) -> tuple[int, int] | None:
    """Line and column (from 1) of the first key of JSON `text` that stands twice in one object, if it can be told."""
    try:
        decode_yaml(text.replace("\t", " "), "")
    except InputError as error:
        if error.line is not None and error.column is not None and "stands twice" in error.message:
            return error.line, error.column
    return None


def _step(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(step, int):
        items = node.value if isinstance(node, yaml.SequenceNode) else []
        return items[step] if step < len(items) else None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in reversed(pairs) if key.value == step), None)


def _check_size(root: yaml.Node, name: str) -> None:
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known == 0:
            raise _fault(node, name, "an alias stands within what it repeats")
        if known is not None:
            return known
        sizes[id(node)] = 0
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(item) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            total += sum(size(key) + size(value) for key, value in node.value)
        if total > LARGEST:
            raise _fault(node, name, f"holds more than {LARGEST:,} values")
        sizes[id(node)] = total
        return total

    size(root)


def _fault(node: yaml.Node, name: str, message: str) -> InputError:
    return InputError(message, file=name, line=node.start_mark.line + 1, column=node.start_mark.column + 1)
