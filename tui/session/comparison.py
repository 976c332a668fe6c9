"""Two courses of one trace side by side: their figures, the requests that differ, and one of these on show."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_cli.tiering.filters import FilterParse
from tui.session.course import Course, Stop
from tui.session.plan import Plan
from tui.session.rows import RequestRows
from tui.session.tape import Tape
from tui.session.views import Moment


@dataclass(frozen=True, slots=True)
class VariantView:
    """One side. `parse` None: the requests' own filters. `figures` as `replay --json`, of what it replayed so far."""

    text: str
    parse: FilterParse | None
    figures: Mapping[str, Any]
    rows: RequestRows
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """`differing`: the requests whose blocks ended differently, in the order asked for; `compared` of `total` are
    known. `cursor` is the request on show; the moments are None until they are there."""

    serial: int
    tape: Tape
    sides: tuple[VariantView, VariantView]
    compared: int
    total: int
    differing: Sequence[int]
    by_size: bool
    cursor: int
    moments: tuple[Moment, Moment] | None

    @property
    def is_whole(self) -> bool:
        return self.sides[0].is_whole and self.sides[1].is_whole

    def change(self, request: int) -> int:
        """How many blocks more the second side served."""
        first, second = (side.rows.served_sums for side in self.sides)
        return (second[request + 1] - second[request]) - (first[request + 1] - first[request])


class Comparison:
    """See the module. Only the session's thread calls it, but for `view`, which is replaced as a whole."""

    def __init__(self, tape: Tape, first: Course, parse: FilterParse | None, text: str, cursor: int) -> None:
        self.tape = tape
        self._courses = [first, Course(tape, Plan().changed(0, parse, text))]
        self._compared = 0
        self._differing = array("I")
        self._by_size = True
        self._cursor = cursor
        self._moments: tuple[Moment, Moment] | None = None
        self._serial = 0
        self._sorted: Sequence[int] = ()
        self._sorted_of = -1
        self.view = self._view()

    # Orders

    def seek(self, request: int) -> None:
        """Show another request."""
        self._cursor = max(0, min(request, max(self.tape.length - 1, 0)))

    def swap(self) -> None:
        """The first side is the second from now on."""
        self._courses.reverse()
        self._moments = None if self._moments is None else (self._moments[1], self._moments[0])
        self._sorted_of = -1

    def sort(self) -> None:
        """By the size of the change, or by request."""
        self._by_size = not self._by_size
        self._sorted_of = -1

    # Work

    def work(self, stop: Stop) -> bool:
        """One slice; whether there is more. `view` is new afterwards."""
        more = self._work(stop)
        self.view = self._view()
        return more

    def _work(self, stop: Stop) -> bool:
        if self._moments is None or self._moments[0].index != self._cursor:
            if not self.tape.has(self._cursor):
                self._cursor = max(self.tape.length - 1, 0)
            found = [course.moment(self._cursor, stop) for course in self._courses]
            if found[0] is None or found[1] is None:
                return True
            self._moments = found[0], found[1]
            return True
        unfinished = [course for course in self._courses if not course.is_whole]
        if unfinished:
            min(unfinished, key=lambda course: course.rows.count).advance(stop)
        self._compare()
        return not all(course.is_whole for course in self._courses)

    def _compare(self) -> None:
        first, second = (course.rows for course in self._courses)
        known = min(first.count, second.count)
        for request in range(self._compared, known):
            if first.codes(request, request + 1) != second.codes(request, request + 1):
                self._differing.append(request)
        self._compared = known

    def _view(self) -> ComparisonView:
        self._serial += 1
        self._sort()
        return ComparisonView(
            self._serial,
            self.tape,
            (_side(self._courses[0]), _side(self._courses[1])),
            self._compared,
            self.tape.expected,
            self._sorted,
            self._by_size,
            self._cursor,
            self._moments,
        )

    def _sort(self) -> None:
        """While the replay goes on, only when there are twice as many as at the last time."""
        found = len(self._differing)
        whole = all(course.is_whole for course in self._courses)
        if found == self._sorted_of or not (whole or found > 2 * self._sorted_of):
            return
        first, second = (course.rows.served_sums for course in self._courses)

        def size(request: int) -> int:
            return -abs((second[request + 1] - second[request]) - (first[request + 1] - first[request]))

        self._sorted = sorted(self._differing, key=size) if self._by_size else list(self._differing)
        self._sorted_of = found


def _side(course: Course) -> VariantView:
    part = course.plan.parts[0]
    parts = len(course.plan.parts)
    text = part.text if part.parse is not None else "own filters"
    text += "" if parts == 1 else f", another from request {course.plan.parts[1].since:,} on"
    return VariantView(text, part.parse, course.figures(), course.rows, course.is_whole)
