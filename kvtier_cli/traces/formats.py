"""The formats of traces that are read: a row each in one table. A reader's module is imported when it is needed.

A new format is a module with its reader, a row here, an example in `tests/traces/examples.py` and a section in
`docs/traces.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kvtier_cli.errors import InputError
from kvtier_cli.traces.refused import REFUSED
from kvtier_cli.traces.sniff import Head, Match, Sniff
from kvtier_cli.wording import nearest, shown

if TYPE_CHECKING:
    from kvtier_cli.traces.reader import TraceReader


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format: what `--format` calls it, `module:class` of its reader, what it is in a line, and how it is told."""

    name: str
    reader: str
    about: str
    sniff: Sniff

    def reader_class(self) -> type[TraceReader]:
        """Its reader, whose class says the size of its blocks and the unit of its times."""
        module, _, name = self.reader.partition(":")
        found: type[TraceReader] = getattr(import_module(f"kvtier_cli.traces.{module}"), name)
        return found


def _own(head: Head) -> Match:
    return Match.SURE if head.rows and head.rows[0].get("kvtier") == "trace" else Match.NO


def _mooncake(head: Head) -> Match:
    if head.any_row("hash_ids", "input_length") or head.any_row("hash_ids", "input_tokens"):
        return Match.LIKELY
    return Match.NO


def _never(_: Head) -> Match:
    return Match.NO


def _bailian(head: Head) -> Match:
    return Match.SURE if head.any_row("hash_ids", "chat_id", "parent_chat_id") else Match.NO


def _kvcache_simulator(head: Head) -> Match:
    """Without `block_tokens` its records are Mooncake's too, which may carry more."""
    return Match.SURE if head.any_row("hash_ids", "input_length", "block_tokens") else Match.NO


FORMATS: Final[dict[str, TraceFormat]] = {
    each.name: each
    for each in (
        TraceFormat("kvtier", "own:OwnReader", "kvtier's own JSONL, with a header", _own),
        TraceFormat("mooncake", "mooncake:MooncakeReader", "Mooncake JSONL, and what AIPerf and Dynamo add", _mooncake),
        TraceFormat(
            "mooncake-delta", "mooncake_delta:MooncakeDeltaReader", "Mooncake rows with a session's new input", _never
        ),
        TraceFormat("bailian", "bailian:BailianReader", "Alibaba's Bailian (Qwen) JSONL", _bailian),
        TraceFormat(
            "kvcache-simulator",
            "kvcache_simulator:KvcacheSimulatorReader",
            "KVCache.AI's kvcache-simulator JSONL",
            _kvcache_simulator,
        ),
    )
}

DEFAULT: Final = FORMATS["mooncake"]
"""What lines of JSON are taken for that could be a trace, or a trace gone bad: its reader says what is wrong."""


def find_format(name: str) -> TraceFormat:
    """The format called `name`. Raises InputError for one that is unknown, or known and without the ids it takes."""
    if found := FORMATS.get(name):
        return found
    if refused := next((each for each in REFUSED if each.name == name), None):
        raise InputError(f"--format: {refused.looks} cannot be replayed: {refused.reason}", hint=refused.hint)
    near = nearest(name, FORMATS)
    raise InputError(
        f"--format: there is no format {shown(name)}", hint=f'Did you mean "{near}"?' if near else known_formats()
    )


def known_formats() -> str:
    """A sentence with the names of all formats."""
    return f"Formats of traces: {', '.join(FORMATS)}."
