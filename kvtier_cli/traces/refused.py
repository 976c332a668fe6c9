"""Traces that are known and cannot be replayed, told by their content: each with why not, and what could be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kvtier_cli.traces.sniff import Head

_NO_IDS = "it has no ids of blocks, so nothing in it says what its prompts share"
_USE_IDS = "Use a trace that lists the ids of its blocks."
_TEXTS = "it has texts, and no ids of their blocks"
_HASH_THEM = "Split its prompts into blocks with the model's tokenizer first, and write the blocks' hashes as hash_ids."


_MSGPACK_MAPS = [bytes([0x80 + entries]) for entries in range(1, 16)]
_MSGPACK_BATCHES = [bytes([0x90 + items, 0xCB]) for items in range(2, 6)]


@dataclass(frozen=True, slots=True)
class Refused:
    """A kind of trace that is not read: its name, what it looks like, and why it is refused."""

    name: str
    looks: str
    reason: str
    hint: str
    sniff: Callable[[Head], bool]


def _columns(head: Head) -> set[str]:
    return {column.strip().strip('"').casefold() for column in head.first.split(",")}


def _has_inner_prompts(head: Head) -> bool:
    return any(_is_list_of(row.get("requests"), "prompt") for row in head.rows)


def _is_list_of(value: Any, key: str) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) and key in each for each in value)


def _has_texts(head: Head) -> bool:
    texts = {"prompt", "messages", "text_input", "payload", "conversations"}
    return any(texts & row.keys() for row in head.rows)


REFUSED: Final = (
    Refused(
        "burstgpt",
        "a BurstGPT trace (CSV)",
        _NO_IDS,
        _USE_IDS,
        lambda head: _columns(head) >= {"timestamp", "request tokens", "response tokens"},
    ),
    Refused(
        "azure",
        "an Azure LLM inference trace (CSV)",
        _NO_IDS,
        _USE_IDS,
        lambda head: _columns(head) >= {"timestamp", "contexttokens", "generatedtokens"},
    ),
    Refused("aibrix", "an AIBrix workload (JSONL)", _TEXTS, _HASH_THEM, _has_inner_prompts),
    Refused(
        "tracelab",
        "a TraceLab trace (JSONL)",
        _NO_IDS,
        _USE_IDS,
        lambda head: head.any_row("prefix_tokens", "newly_append_tokens"),
    ),
    Refused(
        "applied-compute",
        "an Applied Compute agentic trace (JSONL)",
        _NO_IDS,
        _USE_IDS,
        lambda head: head.any_row("num_turns", "input_prompt_length"),
    ),
    Refused(
        "lmcache-storage",
        "an LMCache storage trace (.lct)",
        "it has the calls of a storage manager, and neither requests nor their order of blocks",
        "Use LMCache's log of lookups (lookup_hashes_*.jsonl).",
        lambda head: head.content[4:5] in _MSGPACK_MAPS and b"LMCT" in head.content[:256],
    ),
    Refused(
        "kv-events-msgpack",
        "KV events in msgpack",
        "such recordings have no common form of file",
        "Write each batch as a line of JSON: msgspec.json.encode(msgspec.msgpack.decode(payload)).",
        lambda head: head.content[:2] in _MSGPACK_BATCHES and b"BlockStored" in head.content,
    ),
    Refused("prompts", "a set of prompts (JSONL)", _TEXTS, _HASH_THEM, _has_texts),
)
