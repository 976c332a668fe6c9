"""A request as a trace records it. Not the request of a replay: nothing is filtered, chained or deduplicated here."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, gc=False):
    """One request of a trace, in the trace's own words.

    `gc=False`: a trace makes hundreds of thousands of these, and none can be part of a reference cycle.
    """

    index: int
    """Position among the requests, from 0: in the file while it streams, in arrival order once sorted."""
    line: int
    """The line of the file that holds it, from 1."""
    input_length: int
    """Tokens of the prompt."""
    hash_ids: list[int | str]
    """The ids of the prompt's blocks, first to last, exact: ints of any size, or strings that spell no int.
    Repeated ids are kept."""
    output_length: int | None = None
    """Tokens generated, where the trace says so."""
    timestamp: int | float | None = None
    """Arrival in milliseconds, relative to a moment of the trace's choosing."""
    request_id: str | None = None
    """The trace's own name for it, where it has one."""
    params: bytes | None = None
    """Its `kv_transfer_params` as undecoded JSON (`b"null"` too), None where it carries none. A trace that gives
    only `kv_load_tiers` is read as `{"kv_load_tiers": …}`, so that there is one shape to decode."""
    session_id: str | None = None
    """The conversation it belongs to, where the trace says so."""
    tags: tuple[str | None, ...] | None = None
    """Values of the fields that the reader was asked for (`TraceOptions.tags`), in their order: text as it is, other
    values as JSON, None for what the record does not have. None altogether where no field was asked for."""
