"""Arrival order: requests as their timestamps say, ties and untimed ones as they stand in the file."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from kvtier_cli.traces.model import Request
from kvtier_cli.traces.reader import TraceReader


def in_arrival_order(reader: TraceReader) -> tuple[Iterable[Request], int | None]:
    """The requests of a trace as they arrived, and the first line that was out of order (None: none was).

    A trace in order streams; another has to be held in memory whole.
    """
    fall = reader.first_fall()
    return (reader, None) if fall is None else (arrival_sorted(reader), fall)


def arrival_sorted(requests: Iterable[Request]) -> list[Request]:
    """All `requests` by timestamp, equal ones in the order they came, and counted anew from 0 (in place).

    A request without a timestamp arrives with the one before it in the trace; before any timed one, first of all.
    """
    arrivals: list[tuple[int | float, Request]] = []
    arrival: int | float = -inf
    for request in requests:
        if request.timestamp is not None:
            arrival = request.timestamp
        arrivals.append((arrival, request))
    arrivals.sort(key=lambda each: each[0])
    ordered = [request for _, request in arrivals]
    for index, request in enumerate(ordered):
        request.index = index
    return ordered
