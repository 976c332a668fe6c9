"""The caps on tokens that a request may carry, `max_load_tokens` and `max_offload_tokens`, read as vLLM reads them.

The rules are those of `RequestOffloadState`, of the lookup and of the store in vLLM 0.33.0's
`kv_connector/v1/offloading/scheduler.py`. The manager knows nothing of caps: whoever drives it asks and stores less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

LOAD_KEY: Final = "max_load_tokens"
OFFLOAD_KEY: Final = "max_offload_tokens"


class BlockLimits(NamedTuple):
    """A request's caps in blocks of its prompt, from the first on: `load` may be looked up and loaded, `store` may be
    stored. A cap that there is not leaves all of them."""

    load: int
    store: int
    caps: TokenCaps


class TokenCaps(NamedTuple):
    """The caps of a request in tokens; None caps nothing."""

    max_load: int | None = None
    max_offload: int | None = None

    def limits(self, blocks: int, block_tokens: int, prompt_tokens: int | None = None) -> BlockLimits:
        """The caps for a prompt of so many `blocks` of `block_tokens` tokens each.

        Whole blocks count: a cap in the midst of a block leaves that one out. A last block that the prompt of
        `prompt_tokens` fills in part ends where the prompt does, so that a cap as long as the prompt caps nothing, as
        in vLLM. No block of the prompt is in the GPU before: both caps count from its start.
        """
        whole = blocks * block_tokens
        if prompt_tokens is not None and whole - block_tokens < prompt_tokens < whole:
            whole = prompt_tokens
        load, store = (
            blocks if cap is None or cap >= whole else min(blocks, cap // block_tokens)
            for cap in (self.max_load, self.max_offload)
        )
        return BlockLimits(load, store, self)


def parse_token_caps(parameters: Mapping[str, object]) -> tuple[TokenCaps | None, tuple[str, ...]]:
    """The caps in a request's `kv_transfer_params`, None without any, and the keys of those that are none.

    A cap is a non-negative int; null is no cap. Whatever else (a bool, a float, a text, a number below 0) is none
    either: vLLM logs one warning for it.
    """
    found: list[int | None] = []
    refused: list[str] = []
    for key in (LOAD_KEY, OFFLOAD_KEY):
        raw = parameters.get(key)
        if type(raw) is int and raw >= 0:
            found.append(raw)
            continue
        found.append(None)
        if raw is not None:
            refused.append(key)
    return (None if found == [None, None] else TokenCaps(*found)), tuple(refused)
