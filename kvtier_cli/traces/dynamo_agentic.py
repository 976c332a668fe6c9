"""Dynamo's agentic traces, version 2: a header line, then a request a line, which may wait for others.

The header states `block_size` and `hash_id_scope`: "local" ids hold within one play, "global" ones in the whole trace.
A request arrives at its `not_before_ms`, and not before those that it depends on plus their `delay_ms`; how long they
took to be answered is not in the trace, and a replay, one request after another, has no such time either.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import LocalIds, canonical_ids
from kvtier_cli.traces.json_faults import json_fault
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.reader import TraceReader

SCHEMA: Final = "dynamo.agentic_mooncake"
VERSION: Final = 2

_EXPECTED = f'Expected a header: {{"schema": "{SCHEMA}", "version": {VERSION}, "block_size": 16, …}}.'


class _Header(msgspec.Struct):
    schema: str
    version: int
    block_size: int
    hash_id_scope: str


class _Dependency(msgspec.Struct, gc=False):
    request_id: int | str
    delay_ms: int | float = 0


class _IntRow(msgspec.Struct, gc=False):
    hash_ids: list[int]
    input_length: int
    request_id: int | str
    play_id: int | str
    not_before_ms: int | float | None = None
    output_length: int | None = None
    output_tokens: int | None = None
    session_id: int | str | None = None
    dependencies: list[_Dependency] | None = None


class _AnyRow(_IntRow, gc=False):
    hash_ids: list[int | str]  # type: ignore[assignment]


class DynamoAgenticReader(JsonLinesReader[_IntRow]):
    """Reads an agentic trace; holds the arrival of each request in memory. See TraceReader."""

    HAS_HEADER = True
    USUAL = msgspec.json.Decoder(_IntRow)
    OTHER = msgspec.json.Decoder(_AnyRow)

    def _reset(self) -> None:
        super()._reset()
        self._is_local = True
        self._ids = LocalIds()
        self._arrivals_of: dict[tuple[str, str], int | float | None] = {}
        self._unmet = 0

    def _header(self, line: bytes, number: int) -> None:
        file = self.source.name
        try:
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            fault = json_fault(line, error, file=file, number=number, what="header")
            fault.hint = _EXPECTED
            raise fault from None
        if header.schema != SCHEMA:
            raise InputError(f'expected "{SCHEMA}"', file=file, line=number, path="$.schema", hint=_EXPECTED)
        if header.version != VERSION:
            raise InputError(
                f"is an agentic trace of version {header.version:,}; only version {VERSION} is read",
                file=file,
                line=number,
                path="$.version",
            )
        if header.hash_id_scope not in {"local", "global"}:
            raise InputError("expected local or global", file=file, line=number, path="$.hash_id_scope")
        self._is_local = header.hash_id_scope == "local"
        self._settle_block_tokens(header.block_size, number)

    def _request(self, row: _IntRow, number: int) -> Request:
        self._check_length(row.input_length, number, "$.input_length")
        output = row.output_tokens if row.output_length is None else row.output_length
        if output is not None:
            self._check_length(output, number, "$.output_length")
        play, name = str(row.play_id), str(row.request_id)
        arrival = None if row.not_before_ms is None else self._time(row.not_before_ms, number, "$.not_before_ms")
        for index, dependency in enumerate(row.dependencies or ()):
            needed = play, str(dependency.request_id)
            before = self._arrivals_of.get(needed)
            delay = self._time(dependency.delay_ms, number, f"$.dependencies[{index}].delay_ms")
            if before is None:  # it has no time, or is not there
                self._unmet += needed not in self._arrivals_of
            elif arrival is None or arrival < before + delay:
                arrival = self._time(before + delay, number, f"$.dependencies[{index}].delay_ms")
        self._arrivals_of[play, name] = arrival
        return Request(
            self.requests,
            number,
            row.input_length,
            self._ids.of(play, row.hash_ids) if self._is_local else canonical_ids(row.hash_ids),
            output,
            arrival,
            name,
            None,
            None if row.session_id is None else str(row.session_id),
        )

    def _remarks(self) -> list[str]:
        if not self._unmet:
            return []
        if self._unmet == 1:
            return ["1 dependency on a request that did not come before it was passed over"]
        return [f"{self._unmet:,} dependencies on requests that did not come before them were passed over"]

    def first_fall(self) -> int | None:
        """See TraceReader: reads all, for a time may follow from other lines."""
        return TraceReader.first_fall(self)
