"""The Mooncake format: JSONL, a request a line with the ids of its blocks. Streams; sorts and chains nothing.

As released with the FAST'25 paper: `timestamp` (ms), `input_length`, `output_length` (tokens), `hash_ids`, blocks of
512 tokens, an id for the partly filled last block too. Read besides, where a record has them: `block_size`,
`request_id` or `id`, `session_id`, `kv_transfer_params` or `kv_load_tiers`, and the names that NVIDIA's Dynamo and
AIPerf also take: `input_tokens`, `output_tokens`, `created_time`. Any other key is ignored. A record that has only a
`delay` after its session's last one has no time of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import MAX_TOKENS
from kvtier_cli.traces.reader import MAX_TIMESTAMP


class _IntRow(msgspec.Struct, gc=False):
    """A line of the usual kind: every id is a number. `hash_ids` first: of all that is missing it is named first."""

    hash_ids: list[int]
    input_length: int
    output_length: int | None = None
    timestamp: int | float | None = None
    block_size: int | None = None
    request_id: int | str | None = None
    id: int | str | None = None
    session_id: int | str | None = None
    output_tokens: int | None = None
    created_time: int | float | None = None
    kv_transfer_params: Raw | UnsetType = UNSET
    kv_load_tiers: Raw | UnsetType = UNSET


class _AnyRow(_IntRow, gc=False):
    """A line whose ids may be strings; an eighth slower to read, so used from the first such line on."""

    hash_ids: list[int | str]  # type: ignore[assignment]


class _Arrival(msgspec.Struct, gc=False):
    timestamp: int | float | None = None
    created_time: int | float | None = None


class _TokensRow(_AnyRow, gc=False):
    """A line that calls its length input_tokens."""

    input_length: int = msgspec.field(name="input_tokens")


_decode_any = msgspec.json.Decoder(_AnyRow).decode
_decode_tokens = msgspec.json.Decoder(_TokensRow).decode


def _decode_other(line: bytes) -> _AnyRow:
    """A line whose ids may be strings and whose length may be called input_tokens."""
    try:
        return _decode_any(line)
    except msgspec.ValidationError:
        if b'"input_tokens"' not in line:
            raise
        return _decode_tokens(line)


class MooncakeReader(JsonLinesReader[_IntRow]):
    """Reads a Mooncake trace; see TraceReader."""

    TIME_UNIT_IS_OPEN = True
    USUAL = msgspec.json.Decoder(_IntRow)
    ARRIVAL = _Arrival

    def _request(self, row: _IntRow, number: int) -> Request | None:
        length, output, timestamp = row.input_length, row.output_length, row.timestamp
        if output is None:
            output = row.output_tokens
        if timestamp is None:
            timestamp = row.created_time
        if not 0 <= length <= MAX_TOKENS:
            self._check_length(length, number, "$.input_length")
        if output is not None and not 0 <= output <= MAX_TOKENS:
            self._check_length(output, number, "$.output_length")
        if timestamp is not None and not (self._is_in_ms and -MAX_TIMESTAMP <= timestamp <= MAX_TIMESTAMP):
            timestamp = self._time(timestamp, number)
        if row.block_size is not None:
            self._settle_block_tokens(row.block_size, number)
        ids: list[int | str] = row.hash_ids  # type: ignore[assignment]
        if type(row) is not _IntRow:
            ids = canonical_ids(ids)
        own_id = row.id if row.request_id is None else row.request_id
        params = None
        if row.kv_transfer_params is not UNSET or row.kv_load_tiers is not UNSET:
            params = self._params(row, number)
        return Request(
            self.requests,
            number,
            length,
            ids,
            output,
            timestamp,
            None if own_id is None else str(own_id),
            params,
            None if row.session_id is None else str(row.session_id),
        )

    def read_fields(self) -> frozenset[str]:
        return (super().read_fields() or frozenset()) | {"input_tokens"}

    def _other(self) -> Callable[[bytes], _IntRow]:
        return _decode_other

    def _params(self, row: _IntRow, number: int) -> bytes:
        """The request's `kv_transfer_params`, undecoded: how a filter is to be read is for its own parser to say."""
        own, tiers = row.kv_transfer_params, row.kv_load_tiers
        if isinstance(tiers, UnsetType):
            return bytes(own)  # type: ignore[arg-type]
        if not isinstance(own, UnsetType) and bytes(own) != b"null":
            raise InputError(
                "given beside kv_transfer_params; expected one of the two",
                file=self.source.name,
                line=number,
                path="$.kv_load_tiers",
            )
        return b'{"kv_load_tiers":' + bytes(tiers) + b"}"

    def _arrival(self, arrival: _Arrival) -> int | float | None:
        return arrival.created_time if arrival.timestamp is None else arrival.timestamp
