"""What requests carry themselves: their `kv_transfer_params`, read as vLLM reads them, and what is to be said of them.

Texts that are alike are read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.filters import ALL, KEY, MISSING, FilterParse, TierFilter, parse_tier_filter
from kvtier_cli.tiering.token_caps import TokenCaps, parse_token_caps
from kvtier_cli.traces.model import Request

_KEPT: Final = 10_000
"""Different parameters whose reading is remembered: some servers put something new into each request's."""


class ReadParams(NamedTuple):
    """The parameters of a request: its filter, its caps, and how many caps vLLM would warn of."""

    parse: FilterParse
    caps: TokenCaps | None = None
    refused_caps: int = 0


NO_PARAMS: Final = ReadParams(FilterParse(MISSING, ALL))


class OwnParams:
    """Reads the parameters of requests. `reading`: the trace that the requests are from, for errors."""

    def __init__(self) -> None:
        self.reading: str | None = None
        self._read: dict[bytes, ReadParams] = {}

    def of(self, request: Request) -> ReadParams:
        """What a request carries. Raises InputError for what Python's decoder of JSON refuses."""
        params = request.params
        if params is None:
            return NO_PARAMS
        return self._read.get(params) or self._parse(params, request.line)

    def filters(self) -> Iterator[tuple[TierFilter, FilterParse]]:
        """The distinct filters that requests carried, in order of first sight, as far as remembered."""
        return ((read.parse.filter, read.parse) for read in self._read.values())

    def _parse(self, params: bytes, line: int) -> ReadParams:
        from kvtier_cli.tiering.json_text import decode_json

        try:
            value = decode_json(params.decode(), "")
        except InputError as fault:  # the reader has passed over what stands in them, but for its syntax
            raise InputError(fault.message, file=self.reading, line=line, path="$.kv_transfer_params") from fault
        if isinstance(value, dict):
            caps, refused = parse_token_caps(value)
            read = ReadParams(parse_tier_filter(value.get(KEY, MISSING)), caps, len(refused))
        else:
            read = ReadParams(parse_tier_filter(MISSING))
        if len(self._read) < _KEPT:
            self._read[params] = read
        return read
