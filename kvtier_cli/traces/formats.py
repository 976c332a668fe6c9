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


_REQUEST_TRACE: Final = "dynamo.request.trace.v1"
_KV_EVENTS: Final = ("BlockStored", "BlockRemoved", "AllBlocksCleared")


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


def _dynamo_agentic(head: Head) -> Match:
    is_header = bool(head.rows) and head.rows[0].get("schema") == "dynamo.agentic_mooncake"
    return Match.SURE if is_header else Match.NO


def _dynamo_requests(head: Head) -> Match:
    rows = [row["event"] if isinstance(row.get("event"), dict) else row for row in head.rows]
    is_one = any(row.get("schema") == _REQUEST_TRACE or row.get("event_type") == "request_end" for row in rows)
    is_cut = "event" in head.keys and f'"{_REQUEST_TRACE}"' in head.first
    return Match.SURE if is_one or is_cut or head.any_row("event_type", "request") else Match.NO


def _lmcache(head: Head) -> Match:
    return Match.SURE if head.any_row("chunk_hashes", "seq_len") else Match.NO


def _weka(head: Head) -> Match:
    is_one = head.keys >= {"requests", "hash_id_scope"} or head.keys >= {"requests", "models", "block_size"}
    is_one |= head.any_row("requests", "hash_id_scope") or head.any_row("requests", "models", "block_size")
    return Match.SURE if is_one else Match.NO


def _kv_events(head: Head) -> Match:
    """Batches of events, as objects or as arrays."""
    if any(_are_events(row.get("events")) for row in head.rows):
        return Match.SURE
    is_array = head.first.startswith("[") and any(f'"{name}"' in head.first for name in _KV_EVENTS)
    is_cut = head.any_row("events", "ts") and '"BlockStored"' in head.first
    return Match.SURE if is_array or is_cut else Match.NO


def _are_events(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    if isinstance(first, dict):
        return first.get("type") in _KV_EVENTS
    return isinstance(first, list) and bool(first) and first[0] in _KV_EVENTS


def _oracle_general(head: Head) -> Match:
    if not head.is_binary:
        return Match.NO
    from kvtier_cli.traces.oracle_general import sniff_oracle_general

    return sniff_oracle_general(head)


def _libcachesim_csv(head: Head) -> Match:
    columns = {column.strip().strip('"').casefold() for column in head.first.split(",")}
    return Match.SURE if columns & {"obj_id", "obj-id", "objid", "object_id"} else Match.NO


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
        TraceFormat(
            "dynamo-agentic",
            "dynamo_agentic:DynamoAgenticReader",
            "Dynamo's agentic traces, version 2",
            _dynamo_agentic,
        ),
        TraceFormat(
            "dynamo-requests", "dynamo_requests:DynamoRequestsReader", "Dynamo's request events", _dynamo_requests
        ),
        TraceFormat("lmcache", "lmcache:LmcacheReader", "LMCache's log of lookups", _lmcache),
        TraceFormat("weka", "weka:WekaReader", "Weka's conversations (JSON)", _weka),
        TraceFormat("timed-trace", "timed_trace:TimedTraceReader", "any JSONL, with --fields", _never),
        TraceFormat("kv-events", "kv_events:KvEventsReader", "recorded KV events (JSONL)", _kv_events),
        TraceFormat(
            "oracle-general", "oracle_general:OracleGeneralReader", "libCacheSim's oracleGeneral", _oracle_general
        ),
        TraceFormat("libcachesim-csv", "libcachesim_csv:LibcachesimCsvReader", "libCacheSim's CSV", _libcachesim_csv),
    )
}

TIMED_TRACE: Final = "timed-trace"
"""What a trace is read as where the caller names its fields and no format."""

DEFAULT: Final = FORMATS["mooncake"]
"""What lines of JSON are taken for that could be a trace, or a trace gone bad: its reader says what is wrong."""


def find_format(name: str, option: str = "--format") -> TraceFormat:
    """The format called `name`, which `option` of the command line gave. Raises InputError for one that is unknown, or
    known and without the ids it takes."""
    if found := FORMATS.get(name):
        return found
    if refused := next((each for each in REFUSED if each.name == name), None):
        raise InputError(f"{option}: {refused.looks} cannot be replayed: {refused.reason}", hint=refused.hint)
    near = nearest(name, FORMATS)
    raise InputError(
        f"{option}: there is no format {shown(name)}", hint=f'Did you mean "{near}"?' if near else known_formats()
    )


def known_formats() -> str:
    """A sentence with the names of all formats."""
    return f"Formats of traces: {', '.join(FORMATS)}."
