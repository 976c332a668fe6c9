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
    Refused("prompts", "a set of prompts (JSONL)", _TEXTS, _HASH_THEM, _has_texts),
)
