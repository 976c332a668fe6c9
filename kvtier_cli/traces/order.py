"""Arrival order: requests as their timestamps say, ties and untimed ones as they stand in the file. Reads no files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from kvtier_cli.traces.model import Request


class OutOfOrder(Exception):
    """A request that arrived before the one ahead of it in the trace. A signal, not a fault of the input.

    Who streams and gets it starts again with `arrival_sorted`, which has to hold the whole trace.
    """

    def __init__(self, request: Request, latest: int | float) -> None:
        super().__init__(f"line {request.line:,} arrived at {request.timestamp} ms, after one at {latest} ms")
        self.request = request
        """The first request that is out of order."""
        self.latest = latest
        """The latest timestamp before it, in ms."""


def in_arrival_order(requests: Iterable[Request]) -> Iterator[Request]:
    """Passes `requests` on, one at a time, as long as their timestamps do not fall.

    Raises OutOfOrder in the place of the first request that is earlier than one before it.
    """
    latest: int | float = -inf
    for request in requests:
        timestamp = request.timestamp
        if timestamp is not None:
            if timestamp < latest:
                raise OutOfOrder(request, latest)
            latest = timestamp
        yield request


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
