"""The start of a trace, looked at to tell its format: lines, JSON objects, keys. Knows no format, validates nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cached_property
from typing import Any

import msgspec

HEAD_BYTES = 1 << 16
"""How much of a trace is looked at."""

_ROWS = 32
_FLOW_PART = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'[^\']*(?:\'|\Z)|[A-Za-z_][\w.-]*|[{}\[\]:,]', re.DOTALL)


class Match(IntEnum):
    """How surely a trace is of a format. The surest is taken; two that are as sure are for the caller to decide."""

    NO = 0
    LIKELY = 1
    """It can be read so, and so can much else."""
    SURE = 2
    """It has what no other format has."""


class Head:
    """The first bytes of a trace. `content` may end anywhere, in the midst of a line too."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @cached_property
    def text(self) -> str:
        """As UTF-8, without a byte order mark; what is none is replaced."""
        return self.content.decode("utf-8", "replace").removeprefix("\ufeff")

    @cached_property
    def lines(self) -> list[str]:
        """Without blank ones, stripped; the last may be cut."""
        return [line.strip() for line in self.text.split("\n") if line.strip()]

    @property
    def first(self) -> str:
        """The first line that is not blank; empty where there is none."""
        return self.lines[0] if self.lines else ""

    @property
    def is_binary(self) -> bool:
        """Whether it is no text."""
        return b"\0" in self.content

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The JSON objects among the first lines; of the first line, where it is cut, the keys with None for values."""
        found = []
        for line in self.lines[:_ROWS]:
            row = _decoded(line)
            if isinstance(row, dict):
                found.append(row)
        if not found and self.first.startswith("{"):
            found = [dict.fromkeys(self.keys)]
        return found

    @cached_property
    def keys(self) -> set[str]:
        """The keys of the first object, over however many lines it goes, as far as it is there."""
        start = self.text.find("{")
        return set() if start < 0 else set(flow_keys(self.text, start))

    def any_row(self, *keys: str) -> bool:
        """Whether one of the first rows has all these keys."""
        return any(row.keys() >= set(keys) for row in self.rows)


Sniff = Callable[[Head], Match]


def flow_keys(text: str, start: int) -> Iterator[str]:
    """The keys of the object that opens at `start`, in JSON or YAML's flow style, those of inner objects left out."""
    depth, last = 0, ""
    for match in _FLOW_PART.finditer(text, start):
        part = match[0]
        if part in "{[":
            depth += 1
        elif part in "}]":
            depth -= 1
            if not depth:
                return
        elif part == ":" and depth == 1:
            yield last.strip("\"'")
        last = part


def _decoded(line: str) -> Any:
    if not line.startswith("{"):
        return None
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
