"""The manager's events as a vLLM server publishes them: KV events with the wire's names.

vLLM 0.33: an offloaded block's BlockStored is a placeholder (one event a block, no parent, no tokens, block size 0)
unless the server was told to describe its events itself; BlockRemoved lists the blocks of one eviction. A tier that
declares no medium publishes nothing. Holds no socket and writes no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvtier_cli.tiering.model import BlockKey, OffloadingEvent, group_of

HashOf = Callable[[BlockKey], int]
"""The hash of a block on the wire: the last 8 bytes of its digest as an unsigned big-endian number."""


def wire_hash(digest: bytes) -> int:
    """A digest as vLLM puts it on the wire by default (VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=1)."""
    return int.from_bytes(digest[-8:], "big")


def kv_events(events: Iterable[OffloadingEvent], hash_of: HashOf) -> list[dict[str, Any]]:
    """KV events in the order of `events`, as maps with the keys in vLLM's order; fields at their default are left
    out, as vLLM leaves them out."""
    found: list[dict[str, Any]] = []
    for event in events:
        where = {} if event.locality is None else {"locality": event.locality.value}
        if event.removed:
            for group, keys in _by_group(event.keys).items():
                found.append(
                    {
                        "type": "BlockRemoved",
                        "block_hashes": [hash_of(key) for key in keys],
                        "medium": event.medium.value,
                        "group_idx": group,
                        **where,
                    }
                )
            continue
        for key in event.keys:
            found.append(
                {
                    "type": "BlockStored",
                    "block_hashes": [hash_of(key)],
                    "parent_block_hash": None,
                    "token_ids": [],
                    "block_size": 0,
                    "lora_id": None,
                    "medium": event.medium.value,
                    "lora_name": None,
                    "group_idx": group_of(key),
                    **where,
                }
            )
    return found


def _by_group(keys: Iterable[BlockKey]) -> dict[int, list[BlockKey]]:
    groups: dict[int, list[BlockKey]] = {}
    for key in keys:
        groups.setdefault(group_of(key), []).append(key)
    return groups
