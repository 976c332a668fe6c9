"""kvtier's own traces: JSONL with a header, able to hold all that a `Request` has. Reads them.

The first line is `{"kvtier": "trace", "version": 1, "block_tokens": 16}`, with a `source` in words if one likes. Each
line after it is a request: `hash_ids` and `input_length`, and what there is of `request_id`, `session_id`, `timestamp`
(ms), `output_length`, `kv_transfer_params` (as the server would get them) and `tags`, an object of names and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_faults import json_fault
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.json_tags import Tags, tag_reader
from kvtier_cli.traces.model import Request

KIND: Final = "trace"
"""The header's value of the key `kvtier`."""
VERSION: Final = 1

_EXPECTED = 'Expected a header: {"kvtier": "trace", "version": 1, "block_tokens": 16}.'

_Tag = str | int | float | bool | None


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    kvtier: str
    version: int
    block_tokens: int
    source: str | None = None


class _IntRow(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    hash_ids: list[int]
    input_length: int
    output_length: int | None = None
    timestamp: int | float | None = None
    request_id: str | None = None
    session_id: str | None = None
    kv_transfer_params: Raw | UnsetType = UNSET
    tags: dict[str, _Tag] | None = None


class _AnyRow(_IntRow, gc=False, forbid_unknown_fields=True):
    hash_ids: list[int | str]  # type: ignore[assignment]


class _Tagged(msgspec.Struct, gc=False):
    tags: Raw = Raw(b"null")


class OwnReader(JsonLinesReader[_IntRow]):
    """Reads a trace in kvtier's own format; see TraceReader. Tags come from `tags`, or else are fields of the row."""

    HAS_HEADER = True
    USUAL = msgspec.json.Decoder(_IntRow)
    OTHER = msgspec.json.Decoder(_AnyRow)
    FIELDS = _IntRow.__struct_fields__

    about: str | None = None
    """Where the header says that the requests come from."""

    def _header(self, line: bytes, number: int) -> None:
        file = self.source.name
        try:
            found = msgspec.json.decode(line, type=dict[str, Raw])
            if "kvtier" not in found:
                raise InputError("the header has no kvtier", file=file, line=number, hint=_EXPECTED)
            version = found.get("version", Raw(b"1"))
            if bytes(version) != b"%d" % VERSION and bytes(version).isdigit():
                raise InputError(
                    f"is a kvtier trace of version {bytes(version).decode()[:20]}; this kvtier reads version {VERSION}",
                    file=file,
                    line=number,
                )
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            fault = json_fault(line, error, file=file, number=number, what="header", fields=_Header.__struct_fields__)
            fault.hint = _EXPECTED
            raise fault from None
        if header.kvtier != KIND:
            raise InputError(f'expected "{KIND}"', file=file, line=number, path="$.kvtier")
        self._settle_block_tokens(header.block_tokens, number, "$.block_tokens")
        self.about = header.source

    def _request(self, row: _IntRow, number: int) -> Request:
        self._check_length(row.input_length, number, "$.input_length")
        if row.output_length is not None:
            self._check_length(row.output_length, number, "$.output_length")
        ids: list[int | str] = row.hash_ids  # type: ignore[assignment]
        if type(row) is not _IntRow:
            ids = canonical_ids(ids)
        params = row.kv_transfer_params
        return Request(
            self.requests,
            number,
            row.input_length,
            ids,
            row.output_length,
            None if row.timestamp is None else self._time(row.timestamp, number),
            row.request_id,
            None if isinstance(params, UnsetType) else bytes(params),
            row.session_id,
        )

    def _tag_reader(self) -> Callable[[bytes], Tags] | None:
        if not self.options.tags:
            return None
        of_object = tag_reader(self.options.tags)
        tags_of = msgspec.json.Decoder(_Tagged).decode

        def read(line: bytes) -> Tags:
            tags = tags_of(line).tags
            fields = of_object(line)
            if bytes(tags) == b"null":
                return fields
            return tuple(
                [own if own is not None else field for own, field in zip(of_object(tags), fields, strict=True)]
            )

        return read
