"""Writes traces in Mooncake's format, with what its reader takes besides: it holds all that a `Request` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import BLOCK_TOKENS
from kvtier_cli.traces.writer import TraceWriter, encoded, params_of

_OWN_FIELDS: Final = frozenset(
    (
        *("timestamp", "created_time", "delay", "input_length", "input_tokens", "output_length", "output_tokens"),
        *("hash_ids", "block_size", "request_id", "id", "session_id", "kv_transfer_params", "kv_load_tiers"),
    )
)
"""Fields with a meaning of their own, so no names for tags."""


class MooncakeWriter(TraceWriter):
    """A request a line: Mooncake's own four fields first, in its order. `block_size` is said where it is not 512, and a
    tag is a field, unless that name has a meaning of its own: then it is lost."""

    def __init__(self, stream: BinaryIO, block_tokens: int, *, tag_names: Sequence[str] = ()) -> None:
        super().__init__(stream, block_tokens, tag_names=tag_names)
        self._size = b"" if block_tokens == BLOCK_TOKENS else b',"block_size":%d' % block_tokens
        self._tag_keys = [b",%b:" % encoded(name) for name in self.tag_names]

    @classmethod
    def holds_tag(cls, name: str) -> bool:
        return name not in _OWN_FIELDS

    def _record(self, request: Request) -> bytes:
        parts = [b"{"]
        if request.timestamp is not None:
            parts.append(b'"timestamp":%b,' % encoded(request.timestamp))
        parts.append(b'"input_length":%d,' % request.input_length)
        if request.output_length is not None:
            parts.append(b'"output_length":%d,' % request.output_length)
        parts += b'"hash_ids":', encoded(request.hash_ids), self._size
        if request.request_id is not None:
            parts += b',"request_id":', encoded(request.request_id)
        if request.session_id is not None:
            parts += b',"session_id":', encoded(request.session_id)
        params = params_of(request)
        if params is not None:
            parts += b',"kv_transfer_params":', params
        if request.tags is not None:
            for name, key, tag in zip(self.tag_names, self._tag_keys, request.tags, strict=True):
                if tag is not None and name not in _OWN_FIELDS:
                    parts += key, encoded(tag)
        parts.append(b"}\n")
        return b"".join(parts)
