"""Which filter holds for which request of a replay: the requests' own, one for all, or another from one on."""

from __future__ import annotations

from dataclasses import dataclass

from kvtier_cli.tiering.filters import FilterParse, TierFilter
from tui.session.tape import Tape
from tui.session.views import FilterView


@dataclass(frozen=True, slots=True)
class Part:
    """From request `since` on `parse` holds, written as `text`; None: each request's own."""

    since: int
    parse: FilterParse | None
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Parts in the order of their first requests; the first begins at 0."""

    parts: tuple[Part, ...] = (Part(0, None, ""),)

    def part(self, index: int) -> Part:
        """The part that holds for request `index`."""
        last = self.parts[-1]
        return last if last.since <= index else next(part for part in reversed(self.parts) if part.since <= index)

    def changed(self, since: int, parse: FilterParse | None, text: str) -> Plan:
        """The same up to request `since`, and from there on another filter."""
        kept = tuple(part for part in self.parts if part.since < since)
        return Plan((*kept, Part(since, parse, text)))

    def parse(self, index: int, tape: Tape) -> FilterParse:
        """The filter of request `index`, which `tape` has."""
        return self.part(index).parse or tape.parse(index)

    @property
    def only(self) -> TierFilter | None:
        """The one filter that holds for all requests, if it is one."""
        first = self.parts[0].parse
        return first.filter if first is not None and len(self.parts) == 1 else None

    def filter(self, index: int, tape: Tape) -> TierFilter:
        """What a request may load from; `parse` says it in words."""
        parse = self.part(index).parse
        return tape.filter(index) if parse is None else parse.filter

    def view(self, index: int, tape: Tape) -> FilterView:
        """The filter at request `index`, as the filter line shows it."""
        part = self.part(index)
        if part.parse is not None:
            return FilterView(part.text, part.parse, False, part.since)
        parse = tape.parse(index) if index < tape.length else tape.unfiltered
        return FilterView("", parse, True, part.since)
