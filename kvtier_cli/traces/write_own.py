"""Writes traces in kvtier's own format: a header, then a request a line. It holds all that a `Request` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.own import KIND, VERSION
from kvtier_cli.traces.writer import TraceWriter, encoded, params_of


class OwnWriter(TraceWriter):
    """The header goes out at once; `source` is what it says, in words, of where the requests come from. Whatever is
    written is read again as it was, but for its place in the file."""

    def __init__(
        self, stream: BinaryIO, block_tokens: int, *, tag_names: Sequence[str] = (), source: str | None = None
    ) -> None:
        super().__init__(stream, block_tokens, tag_names=tag_names)
        header: dict[str, object] = {"kvtier": KIND, "version": VERSION, "block_tokens": block_tokens}
        if source is not None:
            header["source"] = source
        stream.write(msgspec.json.encode(header) + b"\n")

    @classmethod
    def holds_tag(cls, name: str) -> bool:
        return True

    def _record(self, request: Request) -> bytes:
        fields: list[tuple[bytes, object]] = [
            (b"request_id", request.request_id),
            (b"session_id", request.session_id),
            (b"timestamp", request.timestamp),
            (b"input_length", request.input_length),
            (b"output_length", request.output_length),
            (b"hash_ids", request.hash_ids),
        ]
        parts = [b'"%b":%b' % (name, encoded(value)) for name, value in fields if value is not None]
        params = params_of(request)
        if params is not None:
            parts.append(b'"kv_transfer_params":' + params)
        if request.tags is not None:
            tags = {name: tag for name, tag in zip(self.tag_names, request.tags, strict=True) if tag is not None}
            if tags:
                parts.append(b'"tags":' + msgspec.json.encode(tags))
        return b"{" + b",".join(parts) + b"}\n"
