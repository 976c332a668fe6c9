"""A trace that is open: its tape, the course on show, and finding one's way in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.source import TraceSource
from tui.session.comparison import Comparison
from tui.session.course import Course, Stop
from tui.session.listing import RequestListing
from tui.session.plan import Plan
from tui.session.rows import Mark, RequestRows
from tui.session.tape import Tape
from tui.session.views import FilterView, Kind, Moment

_NUMBER = re.compile(r"r?([0-9]{1,18})")


class Found(NamedTuple):
    """A request, and the place in it of the block that was looked for."""

    position: int
    block: int | None = None


class TraceShow:
    """What the session drives: the part of it that is about traces."""

    kind = Kind.TRACE

    def __init__(
        self,
        source: TraceSource,
        topology: Topology,
        parse: FilterParse | None = None,
        text: str = "",
        *,
        reading: TraceOptions = AS_IT_SAYS,
        skip_bad: bool = False,
    ) -> None:
        self.title = source.name
        self.topology = topology
        self.source = source
        self.tape = Tape(source, topology, reading=reading, skip_bad=skip_bad)
        self._names = [tier.name for tier in topology.tiers]
        self._set(Course(self.tape, Plan().changed(0, parse, text)))

    def _set(self, course: Course) -> None:
        self.course = course
        self.listing = RequestListing(course.rows, self._names, self.tape.label)

    @property
    def rows(self) -> RequestRows:
        return self.course.rows

    @property
    def total(self) -> int:
        return self.tape.expected

    @property
    def is_total(self) -> bool:
        return self.tape.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether the replay ahead is through."""
        return self.course.is_whole

    @property
    def warnings(self) -> Sequence[str]:
        return self.tape.warnings

    def work(self, stop: Stop) -> bool:
        return not self.course.is_whole and self.course.advance(stop)

    def moment(self, index: int, stop: Stop) -> Moment | None:
        return self.course.moment(index, stop)

    def run_on(self, stop: Stop) -> Moment | None:
        return self.course.run_on(stop, self.course.rows.count - 1)

    def filter_at(self, index: int) -> FilterView:
        return self.course.plan.view(index, self.tape)

    def set_filter(self, parse: FilterParse | None, text: str, since: int) -> None:
        """Replay anew, from request `since` on under another filter; None: under the requests' own."""
        plan = self.course.plan if since else Plan()
        self._set(Course(self.tape, plan.changed(since, parse, text)))

    def next_mark(self, mark: Mark, start: int, *, backwards: bool) -> int | None:
        return self.course.rows.find(mark, start, backwards=backwards)

    def go_to(self, text: str) -> Found | None:
        """The request that `text` means: its own id, else its number (`1204`, `r1204`), as far as the trace is read."""
        own = self.tape.number_of(text)
        if own is not None:
            return Found(own)
        number = _NUMBER.fullmatch(text)
        return Found(int(number[1])) if number and int(number[1]) < self.tape.length else None

    def find(self, text: str, start: int, *, backwards: bool = False) -> Found | None:
        """The next request (or the last before) with a block of that name, round the end; else the request `text`."""
        for block in self._blocks(text):
            at = self.tape.find_block(block, start, backwards=backwards)
            if at is None:
                at = self.tape.find_block(block, self.tape.length if backwards else -1, backwards=backwards)
            if at is not None:
                return Found(at, self.tape.keys(at).index(block))
        return self.go_to(text)

    def _blocks(self, text: str) -> list[int]:
        """The blocks that `text` names: `5102`, or one of several with that id, `5102~2`."""
        table = self.tape.table
        label, mark, ordinal = text.rpartition("~")
        for words in (text, label) if mark and ordinal.isdecimal() else (text,):
            found = table.named(int(words) if words.lstrip("-").isdecimal() and str(int(words)) == words else words)
            if found:
                return found if words is text else found[int(ordinal) - 1 :][:1]
        return []

    def compare(self, parse: FilterParse | None, text: str, cursor: int) -> Comparison:
        return Comparison(self.tape, self.course, parse, text, cursor)

    def saved(self, index: int) -> str:
        return self.course.saved(index).text

    def resident(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return self.course.resident()

    def close(self) -> None:
        self.source.close()
