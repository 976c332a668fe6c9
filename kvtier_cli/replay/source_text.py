"""The text of a fixture: where each of its values stands, and errors that say so. Reads no meaning into the values.

JSON and YAML alike: JSON is YAML as far as places are concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.topology_shape import Path, Step, path_text
from kvtier_cli.wording import escape

if TYPE_CHECKING:
    from yaml import Node


class SourceText:
    """`text` of the file `name`; `form` is "json" or "yaml". Composed only when a place is asked for."""

    def __init__(self, name: str, text: str, form: str) -> None:
        self.name = name
        self.text = text
        self.form = form

    @cached_property
    def root(self) -> Node | None:
        """The tree of the text with the marks of its values; None where it cannot be told."""
        import yaml

        try:
            # PyYAML refuses the tabs that JSON allows between its values.
            return yaml.compose(self.text.replace("\t", " "), Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError):
            return None

    def nodes(self, path: Sequence[Step]) -> Iterator[Node]:
        """The nodes on the way to the value at `path`, the root first; it ends early where the way does."""
        node = self.root
        for step in path:
            if node is None:
                return
            yield node
            node = _inner(node, step)
        if node is not None:
            yield node

    def locate(self, path: Sequence[Step]) -> tuple[int, int] | None:
        """Line and column (from 1) of the value at `path`, or of what should hold it; None where it cannot be told."""
        if self.form == "json" and "\n" not in self.text.strip():
            # The recordings: all on one line, and composing it takes a while.
            blank = self.text[: -len(self.text.lstrip())]
            return blank.count("\n") + 1, len(blank) - blank.rfind("\n")
        index = -1
        for node in self.nodes(path):
            index = node.start_mark.index
        if index < 0:
            return None
        before = self.text[:index]
        return before.count("\n") + 1, index - before.rfind("\n")

    def line(self, path: Sequence[Step]) -> int | None:
        """The line (from 1) of the value at `path`."""
        place = self.locate(path)
        return place[0] if place else None

    def fail(self, path: Path, message: str, hint: str | None = None) -> NoReturn:
        """Raises the InputError about the value at `path`."""
        where = escape(path_text(path)) or None
        raise InputError(message, file=self.name, line=self.line(path), path=where, hint=hint)


def _inner(node: Node, step: Step) -> Node | None:
    from yaml import MappingNode, SequenceNode

    if isinstance(step, int):
        items = node.value if isinstance(node, SequenceNode) else []
        return items[step] if step < len(items) else None
    pairs = node.value if isinstance(node, MappingNode) else []
    return next((value for key, value in pairs if key.value == step), None)
