"""Tells a trace's format by its first lines, and picks the reader. Looks at 64 KiB at most, validates nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import PurePath

from kvtier_cli.errors import InputError
from kvtier_cli.traces.json_faults import shown
from kvtier_cli.traces.mooncake import BLOCK_TOKENS, MooncakeReader
from kvtier_cli.traces.source import TraceSource

HEAD_BYTES = 1 << 16

_READABLE = "Traces are read as Mooncake JSONL: a request a line, with input_length and hash_ids."
_FIXTURE_KEYS = {"kvtier", "ops"}
_FIXTURE_SUFFIXES = {".yaml", ".yml"}
_LINE_SUFFIXES = {".jsonl", ".ndjson", ".csv"}
_FLOW_PART = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'[^\']*(?:\'|\Z)|[A-Za-z_][\w.-]*|[{}\[\]:,]', re.DOTALL)
_YAML_FIXTURE_KEY = re.compile(r"^[\"']?(?:kvtier|ops)[\"']?[ \t]*:(?:\s|$)", re.MULTILINE)
_YAML_LINE = re.compile(r"---|- |[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|$)")
_YAML_PREAMBLE = re.compile(r"(?:\s+|#[^\n]*\n|---[ \t]*\n)*")


class TraceFormat(Enum):
    """The formats of traces that there are readers for."""

    MOONCAKE = "mooncake"


def read_trace(
    source: TraceSource,
    *,
    block_tokens: int = BLOCK_TOKENS,
    skip_bad: bool = False,
    on_bytes: Callable[[int], object] | None = None,
) -> MooncakeReader:
    """The reader for `source`, whatever its format; see MooncakeReader. Raises as `detect_format` does."""
    detect_format(source)  # one format so far
    return MooncakeReader(source, block_tokens=block_tokens, skip_bad=skip_bad, on_bytes=on_bytes)


def detect_format(source: TraceSource) -> TraceFormat:
    """The format of the trace, by its first lines.

    Raises InputError, saying what it looks like and what can be read, for anything that is no trace of a known
    format. A trace with a bad line, even the first, is still one: its reader says where it is bad.
    """
    head = source.head(HEAD_BYTES)
    text = _text(head)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines or any(line.startswith("{") and '"hash_ids"' in line for line in lines):
        return _unless_document(source, text, lines)
    first = lines[0]
    if looks_like_fixture(head, source.name):
        raise InputError("is a scripted fixture, not a trace", file=source.name, hint=_READABLE)
    if first.startswith(("{", "[")):
        return _unless_document(source, text, lines)
    if _YAML_LINE.match(first):
        looks = "YAML"
    elif "," in first:
        looks = "CSV"
    else:
        looks = "text of no known format"
    raise InputError(f"looks like {looks} (it starts with {shown(first)})", file=source.name, hint=_READABLE)


def _unless_document(source: TraceSource, text: str, lines: list[str]) -> TraceFormat:
    """Mooncake, unless the lines are those of one JSON document, which is worth a hint of its own."""
    first = lines[0] if lines else ""
    if first.startswith("[") and (len(lines) == 1 or not first.endswith("]")):
        raise InputError(
            "is one JSON array, not a request a line",
            file=source.name,
            hint="Write its requests a line each: jq -c '.[]' FILE | kvtier … -",
        )
    if first == "{" and "\n" in text.strip():
        raise InputError(
            "is a JSON object over many lines, not a request a line",
            file=source.name,
            hint="Write each request on a line: jq -c . FILE | kvtier … -",
        )
    return TraceFormat.MOONCAKE


def looks_like_fixture(head: bytes, name: str) -> bool:
    """Whether a file that starts with `head` is a scripted fixture: an object with the key `kvtier` or `ops`.

    YAML by its name always is, there are no traces in YAML; JSONL and CSV by their names never are. Keys further
    inside do not count. `head` may end anywhere.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in _LINE_SUFFIXES:
        return False
    if suffix in _FIXTURE_SUFFIXES:
        return True
    text = _text(head)
    preamble = _YAML_PREAMBLE.match(text)
    start = preamble.end() if preamble else 0
    if text.startswith("{", start):
        for key in _flow_keys(text, start):
            if key == "hash_ids":  # a request, whatever else its line carries
                return False
            if key in _FIXTURE_KEYS:
                return True
        return False
    return _YAML_FIXTURE_KEY.search(text, start) is not None


def _flow_keys(text: str, start: int) -> Iterator[str]:
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


def _text(head: bytes) -> str:
    return head.decode("utf-8", "replace").removeprefix("\ufeff")
