"""Tells a trace's format by its first 64 KiB, never by its name alone, and picks the reader. Validates nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from kvtier_cli.errors import InputError
from kvtier_cli.traces.formats import DEFAULT, FORMATS, TIMED_TRACE, TraceFormat, find_format, known_formats
from kvtier_cli.traces.json_faults import bare
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.reader import TraceReader
from kvtier_cli.traces.refused import REFUSED
from kvtier_cli.traces.sniff import HEAD_BYTES, Head, Match, flow_keys
from kvtier_cli.traces.source import TraceSource

__all__ = ["HEAD_BYTES", "detect_format", "looks_like_fixture", "read_trace"]

_FIXTURE_KEYS = {"kvtier", "ops"}
_FIXTURE_SUFFIXES = {".yaml", ".yml"}
_LINE_SUFFIXES = {".jsonl", ".ndjson", ".csv"}
_OWN_TRACE = re.compile(r'"kvtier"\s*:\s*"trace"')
_OF_A_REQUEST = {"hash_ids", "input_length", "input_tokens", "output_length", "output_tokens", "timestamp"}
_YAML_FIXTURE_KEY = re.compile(r"^[\"']?(?:kvtier|ops)[\"']?[ \t]*:(?:\s|$)", re.MULTILINE)
_YAML_LINE = re.compile(r"---|- |[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|$)")
_YAML_PREAMBLE = re.compile(r"(?:\s+|#[^\n]*\n|---[ \t]*\n)*")
_KEYS_SHOWN = 6


def read_trace(
    source: TraceSource,
    options: TraceOptions = AS_IT_SAYS,
    *,
    block_tokens: int | None = None,
    skip_bad: bool = False,
    on_bytes: Callable[[int], object] | None = None,
) -> TraceReader:
    """The reader for `source`, of the format that `options` names or else the content tells; see TraceReader.

    Raises InputError as `detect_format` does, and for options that do not fit the format.
    """
    named = options.format or (TIMED_TRACE if options.fields else None)
    form = detect_format(source) if named is None else find_format(named)
    reader = form.reader_class()(source, options, block_tokens=block_tokens, skip_bad=skip_bad, on_bytes=on_bytes)
    reader.format = form.name
    return reader


def detect_format(source: TraceSource) -> TraceFormat:
    """The format of the trace, by its first bytes.

    Raises InputError, saying what it looks like and what can be read, for anything that is no trace of a known
    format, that could as well be of several, or that is known to have no ids. A trace with a bad line, even the first,
    is still one: its reader says where it is bad.
    """
    head = Head(source.head(HEAD_BYTES))
    if not head.content:
        with source.open() as stream:
            stream.piece(1)  # says so where it cannot be unpacked
        raise InputError("is empty", file=source.name, hint="Expected a trace: one request a line.")
    matches = {each: each.sniff(head) for each in FORMATS.values()}
    best = max(matches.values())
    found = [each for each, match in matches.items() if match == best != Match.NO]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(each.name for each in found)
        raise InputError(f"could be {names}", file=source.name, hint=f"Say which with --format {found[0].name}.")
    if head.content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("is UTF-16 text; expected UTF-8", file=source.name)
    if head.is_binary:
        _refuse(source, head)
        raise InputError("is binary data of no known format", file=source.name, hint=known_formats())
    if not head.lines or any(line.startswith("{") and '"hash_ids"' in line for line in head.lines):
        return _unless_document(source, head)
    if looks_like_fixture(head.content, source.name):
        raise InputError("is a scripted fixture, not a trace", file=source.name, hint=known_formats())
    _refuse(source, head)
    if head.first.startswith(("{", "[")):
        return _unless_document(source, head)
    if _YAML_LINE.match(head.first):
        looks = "YAML"
    elif "," in head.first:
        looks = "CSV of no known format"
    else:
        looks = "text of no known format"
    raise InputError(f"looks like {looks} (it starts with {bare(head.first)})", file=source.name, hint=known_formats())


def _refuse(source: TraceSource, head: Head) -> None:
    """Raises InputError for what is known and cannot be replayed."""
    if refused := next((each for each in REFUSED if each.sniff(head)), None):
        raise InputError(f"looks like {refused.looks}: {refused.reason}", file=source.name, hint=refused.hint)


def _unless_document(source: TraceSource, head: Head) -> TraceFormat:
    """The default, unless the lines are those of one JSON document, which is worth a hint of its own, or of something
    that is nothing like a request."""
    first = head.first
    if first.startswith("[") and (len(head.lines) == 1 or not first.endswith("]")):
        raise InputError(
            "is one JSON array, not a request a line",
            file=source.name,
            hint="Write its requests a line each: jq -c '.[]' FILE | kvtier … -",
        )
    if first == "{" and "\n" in head.text.strip():
        raise InputError(
            "is a JSON object over many lines, not a request a line",
            file=source.name,
            hint="Write each request on a line: jq -c . FILE | kvtier … -",
        )
    keys = list(dict.fromkeys(key for row in head.rows for key in row))
    if keys and not _OF_A_REQUEST.intersection(keys) and '"hash_ids"' not in head.text:
        named = ", ".join(bare(key) for key in keys[:_KEYS_SHOWN]) + (", …" if len(keys) > _KEYS_SHOWN else "")
        raise InputError(
            f"looks like JSON lines of no known format (its keys: {named})",
            file=source.name,
            hint="If it has ids of blocks, say what it calls them: --fields hash_ids=FIELD,input_length=FIELD",
        )
    return DEFAULT


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
    text = Head(head).text
    preamble = _YAML_PREAMBLE.match(text)
    start = preamble.end() if preamble else 0
    if text.startswith("{", start):
        if _OWN_TRACE.search(text.partition("\n")[0]):
            return False
        for key in flow_keys(text, start):
            if key == "hash_ids":  # a request, whatever else its line carries
                return False
            if key in _FIXTURE_KEYS:
                return True
        return False
    return _YAML_FIXTURE_KEY.search(text, start) is not None
