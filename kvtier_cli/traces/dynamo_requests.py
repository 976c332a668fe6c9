"""Dynamo's request traces: JSONL, an event a line, of which `request_end` holds a request and its blocks' hashes.

An event may stand in an outer `{"event": …}`. They are written as requests end; a request arrives at its
`request_received_ms`, or else, if the server did not note it, when its answer was complete less the time that took.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from kvtier_cli.errors import InputError
from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.json_tags import Tags, tag_reader
from kvtier_cli.traces.model import Request
from kvtier_cli.wording import count

_END: Final = "request_end"


class _Replay(msgspec.Struct, gc=False):
    input_sequence_hashes: list[int | str]
    input_length: int
    trace_block_size: int | None = None


class _Request(msgspec.Struct, gc=False):
    replay: _Replay
    request_id: int | str | None = None
    output_tokens: int | None = None
    request_received_ms: int | float | None = None
    total_time_ms: int | float | None = None


class _Context(msgspec.Struct, gc=False):
    session_id: int | str | None = None


class _Event(msgspec.Struct, gc=False):
    request: _Request
    event_type: str
    event_time_unix_ms: int | float | None = None
    agent_context: _Context | None = None


class _Outer(msgspec.Struct, gc=False):
    event: _Event


class _Kind(msgspec.Struct, gc=False):
    event_type: str | None = None


class _AnyKind(_Kind, gc=False):
    event: _Kind | None = None


class _Times(msgspec.Struct, gc=False):
    request_received_ms: int | float | None = None
    total_time_ms: int | float | None = None


class _TimedEvent(msgspec.Struct, gc=False):
    event_type: str | None = None
    event_time_unix_ms: int | float | None = None
    request: _Times | None = None


class _Arrival(_TimedEvent, gc=False):
    event: _TimedEvent | None = None


class _Enclosed(msgspec.Struct, gc=False):
    event: Raw = Raw(b"null")


_Row = _Event | None

_decode_event = msgspec.json.Decoder(_Event).decode
_decode_outer = msgspec.json.Decoder(_Outer).decode
_decode_kind = msgspec.json.Decoder(_AnyKind).decode
_decode_enclosed = msgspec.json.Decoder(_Enclosed).decode


def _decode(line: bytes) -> _Row:
    """The `request_end` of a line; None for an event of another type, whatever is in it."""
    kind = _decode_kind(line)
    event_type = kind.event_type if kind.event is None else kind.event.event_type
    if event_type is not None and event_type != _END:
        return None
    return _decode_event(line) if kind.event is None else _decode_outer(line).event


def _received(received: int | float | None, end: int | float | None, took: int | float | None) -> int | float | None:
    """When a request came; Dynamo writes 0 where it does not know."""
    return received or (end if end is None or took is None else end - took)


class DynamoRequestsReader(JsonLinesReader[_Row]):
    """Reads a trace of Dynamo's request events; see TraceReader. Events of other types are passed over."""

    IDS_FIELD = "input_sequence_hashes"
    ARRIVAL = _Arrival

    def _reset(self) -> None:
        super()._reset()
        self._unclocked = 0

    def _usual(self) -> Callable[[bytes], _Row]:
        return _decode

    _other = _usual

    def _request(self, row: _Row, number: int) -> Request | None:
        if row is None:
            return None
        request, replay = row.request, row.request.replay
        self._check_length(replay.input_length, number, "$.request.replay.input_length")
        if request.output_tokens is not None:
            self._check_length(request.output_tokens, number, "$.request.output_tokens")
        time = _received(request.request_received_ms, row.event_time_unix_ms, request.total_time_ms)
        if time is not None:
            time = self._time(time, number, "$.request.request_received_ms")
        if replay.trace_block_size is not None:
            self._settle_block_tokens(replay.trace_block_size, number, "$.request.replay.trace_block_size")
        self._unclocked += not request.request_received_ms
        session = None if row.agent_context is None else row.agent_context.session_id
        return Request(
            self.requests,
            number,
            replay.input_length,
            canonical_ids(replay.input_sequence_hashes),
            request.output_tokens,
            time,
            None if request.request_id is None else str(request.request_id),
            None,
            None if session is None else str(session),
        )

    def _arrival(self, arrival: _Arrival) -> int | float | None:
        event: _TimedEvent = arrival if arrival.event is None else arrival.event
        times = event.request
        if times is None or event.event_type != _END:
            return None
        return _received(times.request_received_ms, event.event_time_unix_ms, times.total_time_ms)

    def _tag_reader(self) -> Callable[[bytes], Tags] | None:
        if not self.options.tags:
            return None
        of_object = tag_reader(self.options.tags)

        def read(line: bytes) -> Tags:
            event = _decode_enclosed(line).event
            return of_object(line if bytes(event) == b"null" else event)

        return read

    def _remarks(self) -> list[str]:
        if not self._unclocked:
            return []
        return [
            f"{count(self._unclocked, 'request')} without request_received_ms: taken to have come when it ended less "
            "the time it took, or else with the one before"
        ]

    def _no_request(self) -> InputError:
        fault = super()._no_request()
        if not self.bad_lines:
            fault.message = f"holds no request: no {_END} event"
            fault.hint = None
        return fault
