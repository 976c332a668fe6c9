"""The requests of a trace as a run has read them, kept by their blocks' numbers: any of them can be replayed again.

A trace is read once, in order; going back to a checkpoint needs the requests behind it, and not the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from struct import pack
from typing import TYPE_CHECKING

from kvtier_cli.replay.loop import Served
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import TierFilter
from kvtier_cli.traces.model import Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RecordedRequests:
    """Reads the requests of `run` when they are asked for, and keeps them: 4 bytes a block, under 200 a request.

    Requests count from 0 in order of arrival. The run's loop must not read the trace by itself.
    """

    def __init__(self, run: TraceRun) -> None:
        self._run = run
        self._unread = run.requests()
        self._is_whole = False
        self._numbers = array("i")
        self._ends = array("q", [0])
        self._heads: list[Request] = []
        self._latest: list[int] = []
        self._params: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        """How many have been read so far."""
        return len(self._heads)

    @property
    def is_whole(self) -> bool:
        """Whether the trace has been read to its end."""
        return self._is_whole

    def read_to(self, count: int | None = None) -> int:
        """Read on until `count` requests are known, or all; returns how many are."""
        run = self._run
        under_way = run.request
        while not self._is_whole and (count is None or len(self._heads) < count):
            request = next(self._unread, None)
            if request is None:
                self._is_whole = True
                break
            numbers = run.loop.marked_numbers(request)
            self._numbers.frombytes(pack(f"{len(numbers)}i", *numbers))  # much faster than array's look at each
            self._ends.append(len(self._numbers))
            self._latest = numbers
            request.hash_ids = []
            if request.params is not None:
                request.params = self._params.setdefault(request.params, request.params)
            self._heads.append(request)
        run.request = under_way  # reading ahead replays nothing
        return len(self._heads)

    def head(self, index: int) -> Request:
        """A request as its trace has it, but without the ids of its blocks. Raises IndexError behind the end."""
        if index >= len(self._heads):
            self.read_to(index + 1)
        return self._heads[index]

    def numbers(self, index: int) -> list[int]:
        """The blocks of a request, by their numbers in the loop's table."""
        self.head(index)
        if index == len(self._heads) - 1:
            return self._latest.copy()
        return self._numbers[self._ends[index] : self._ends[index + 1]].tolist()

    def length(self, index: int) -> int:
        """How many blocks a request has."""
        self.head(index)
        return self._ends[index + 1] - self._ends[index]

    def requests_with(self, number: int) -> NDArray[np.intp]:
        """The requests that have a block, once for each time they do, as far as the trace is read."""
        import numpy as np

        places = np.flatnonzero(np.frombuffer(self._numbers, dtype=np.int32) == number)
        return np.searchsorted(np.frombuffer(self._ends, dtype=np.int64), places, side="right") - 1

    def filter_of(self, index: int) -> TierFilter:
        """The filter that holds for a request in this run."""
        return self._run.filter_of(self.head(index))

    def name(self, index: int) -> str:
        """Its own id in the trace, else `r1204`."""
        return self.head(index).request_id or f"r{index}"

    def steps(self, stop: int | None = None) -> Iterator[Served]:
        """Replay from where the run is on until `stop` requests are replayed, or all; each request is over when its
        result comes out. Reads the trace where it is not read yet."""
        run = self._run
        loop = run.loop
        while stop is None or loop.requests < stop:
            index = loop.requests
            if index >= self.read_to(index + 1):
                break
            run.request = self._heads[index]
            numbers = self.numbers(index)
            loop.prompt = numbers
            limits = run.limits_of(self._heads[index], len(numbers))
            yield loop.replay(numbers, self.filter_of(index), loop.first_new(numbers), limits)
        if self._is_whole and loop.requests == len(self._heads):
            run.warn_at_end()
