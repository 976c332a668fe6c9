"""Changes values in the text of a JSON or YAML file, at the marks of the old ones; all the rest stays byte for byte.

What changes is found by comparing the old value with the new one: of objects and lists only those parts are written
that differ, so comments and order stay. What to write is `update.py`'s business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from kvtier_cli.replay.expect import same
from kvtier_cli.replay.source_text import SourceText
from kvtier_cli.tiering.topology_shape import Path

if TYPE_CHECKING:
    from yaml import Node

_PLAIN = re.compile(r"[A-Za-z_][\w@./-]*", re.ASCII)
_NO_TEXT = re.compile(r"null|true|false|yes|no|on|off|y|n", re.IGNORECASE)
"""Plain words that some reader of YAML takes for something else than a text."""
_REST = re.compile(r"(?:\s*,)?[ \t]*")
"""What the last item of a collection leaves behind when all of them go."""


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


class TextEdits:
    """Gathers changes to one text; `apply` gives the new one. `changes` counts values written anew."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._text = source.text
        self._edits: list[_Edit] = []
        self._newline = "\r\n" if "\r\n" in source.text else "\n"

    @property
    def changes(self) -> int:
        return len(self._edits)

    def apply(self) -> str:
        """The text with all changes made."""
        parts: list[str] = []
        position = 0
        for start, end, text in sorted(self._edits):
            parts += (self._text[position:start], text)
            position = end
        return "".join((*parts, self._text[position:]))

    def rewrite(self, path: Path, old: object, new: object) -> None:
        """Write `new` where `old` stands, at `path`. Raises InputError where the text does not let it be done."""
        if same(old, new):
            return
        nodes = list(self._source.nodes(path))
        if len(nodes) <= len(path):
            self._source.fail(path, "cannot be rewritten: its place in the text cannot be told", _BY_HAND)
        if any(id(node) in self._shared for node in nodes):
            self._refuse_shared(path)
        self._rewrite(nodes[-1], old, new, path)

    def _rewrite(self, node: Node, old: object, new: object, path: Path) -> None:
        from yaml import MappingNode, SequenceNode

        if same(old, new):
            return
        if id(node) in self._shared:
            self._refuse_shared(path)
        if isinstance(old, list) and isinstance(new, list) and isinstance(node, SequenceNode):
            for index, item in enumerate(node.value[: len(new)]):
                self._rewrite(item, old[index], new[index], (*path, index))
            spans = [_Span(item.start_mark.index, self._end(item)) for item in node.value]
            added = [self._render(item) for item in new[len(old) :]]
            self._resize(node, spans, range(len(new), len(old)), added, new, path)
        elif isinstance(old, Mapping) and isinstance(new, Mapping) and isinstance(node, MappingNode):
            names = [key.value for key, _ in node.value]
            for name, (_, value) in zip(names, node.value, strict=True):
                if name in new:
                    self._rewrite(value, old[name], new[name], (*path, name))
            spans = [_Span(key.start_mark.index, self._end(value)) for key, value in node.value]
            colon = ": " if self._is_spaced else ":"
            added = [self._render(name) + colon + self._render(new[name]) for name in new if name not in old]
            gone = [index for index, name in enumerate(names) if name not in new]
            self._resize(node, spans, gone, added, new, path)
        else:
            self._replace(node, new)

    def _resize(
        self,
        node: Node,
        spans: Sequence[_Span],
        gone: Collection[int],
        added: Sequence[str],
        new: object,
        path: Path,
    ) -> None:
        """Take items (or pairs) out of a collection and put others in at its end."""
        if not gone and not added:
            return
        start = node.start_mark.index
        if self._text[start] in "&!":
            self._source.fail(path, "cannot be rewritten behind an anchor or a tag", _BY_HAND)
        kept = [index for index in range(len(spans)) if index not in gone]
        if not _is_block(node):
            self._resize_flow(start, spans, kept, added)
        elif not kept:
            self._replace(node, new)
        else:
            self._resize_block(node, spans, kept, added)

    def _resize_flow(self, start: int, spans: Sequence[_Span], kept: Sequence[int], added: Sequence[str]) -> None:
        separator = ", " if self._is_spaced else ","
        if kept:
            if kept[0]:
                self._edit(spans[0].start, spans[kept[0]].start, "")
            for index in range(kept[0] + 1, len(spans)):
                if index not in kept:
                    self._edit(spans[index - 1].end, spans[index].end, "")
            position = spans[kept[-1]].end
        else:
            if spans:
                rest = _REST.match(self._text, spans[-1].end)
                self._edit(spans[0].start, rest.end() if rest else spans[-1].end, "")
            position = start + 1
        if added:
            self._edit(position, position, (separator if kept else "") + separator.join(added))

    def _resize_block(self, node: Node, spans: Sequence[_Span], kept: Sequence[int], added: Sequence[str]) -> None:
        from yaml import SequenceNode

        if kept[0]:
            self._edit(spans[0].start, spans[kept[0]].start, "")
        for index in range(kept[0] + 1, len(spans)):
            if index not in kept:
                self._edit(self._line_end(spans[index - 1].end), self._line_end(spans[index].end), "")
        if added:
            lead = self._newline + " " * node.start_mark.column + ("- " if isinstance(node, SequenceNode) else "")
            position = self._line_end(spans[kept[-1]].end)
            self._edit(position, position, "".join(lead + item for item in added))

    def _replace(self, node: Node, new: object) -> None:
        start, end = node.start_mark.index, self._end(node)
        text = self._render(new, getattr(node, "style", None))
        before = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        # A block collection may stand no deeper than its key, where nothing else may; an empty value has no space.
        is_low = _is_block(node) and not before.strip()
        if is_low or (start == end and not before[-1:].isspace()):
            text = " " + text
        self._edit(start, end, text)

    def _edit(self, start: int, end: int, text: str) -> None:
        self._edits.append(_Edit(start, end, text))

    def _end(self, node: Node) -> int:
        """Where a value ends; the marks of block collections and block scalars lie at the next token's start."""
        if _is_block(node):
            last = node.value[-1]
            return self._end(last[-1] if isinstance(last, tuple) else last)
        end = int(node.end_mark.index)
        if getattr(node, "style", None) in ("|", ">"):
            end = len(self._text[:end].rstrip())
        return end

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        if end < 0:
            return len(self._text)
        return end - 1 if self._text[end - 1] == "\r" else end

    def _render(self, value: object, style: str | None = None) -> str:
        if self._source.form == "json":
            separators = (", ", ": ") if self._is_spaced else (",", ":")
            return json.dumps(value, ensure_ascii=self._text.isascii(), separators=separators)
        return _yaml(value, style)

    @cached_property
    def _is_spaced(self) -> bool:
        return self._source.form == "yaml" or re.search(r'":[ \t]', self._text) is not None

    @cached_property
    def _shared(self) -> set[int]:
        """The nodes that stand at more than one place of the text, by aliases."""
        seen: set[int] = set()
        shared: set[int] = set()
        waiting: list[Any] = [self._source.root]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                shared.add(id(node))
                continue
            seen.add(id(node))
            if not isinstance(node.value, str):
                waiting += [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        return shared

    def _refuse_shared(self, path: Path) -> None:
        self._source.fail(path, "cannot be rewritten: by an alias (*) the same value stands at another place", _BY_HAND)


class _Span(NamedTuple):
    start: int
    end: int


def _is_block(node: Node) -> bool:
    from yaml import CollectionNode

    return isinstance(node, CollectionNode) and not node.flow_style


_BY_HAND = "Write it out by hand."


def _yaml(value: object, style: str | None = None) -> str:
    """`value` in YAML's flow style on one line; texts in the quotes that `style` says, or plain where that is safe."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())
