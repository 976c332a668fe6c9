"""What a caller says about single requests beside a filter for all: filters by tag, parameters from a log of requests.

Of what could hold for a request's filter the most specific does: the first rule that its tags meet, then the filter for
all, then what the log says that it carries, then what the trace says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.request_log import RequestLog


class TagRule(NamedTuple):
    """A filter for the requests whose tag at `place` has a `value` (None: that do not have the tag), told as `text`.
    `parse` is None where they keep their own."""

    text: str
    place: int
    value: str | None
    parse: FilterParse | None


@dataclass(frozen=True, slots=True)
class RequestRules:
    """Rules by tag, in their order, and the log. The places of tags are those of `Request.tags`."""

    by_tag: tuple[TagRule, ...] = ()
    log: RequestLog | None = None

    def rule_for(self, request: Request) -> TagRule | None:
        """The first rule that a request meets."""
        tags = request.tags or ()
        for rule in self.by_tag:
            if (tags[rule.place] if rule.place < len(tags) else None) == rule.value:
                return rule
        return None


NO_RULES: Final = RequestRules()


class JoinedLog:
    """Gives requests of a trace the parameters that a log has for their ids, and counts how that went."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._met: set[str] = set()
        self.requests = 0
        self.missing = 0

    def join(self, requests: Iterable[Request]) -> Iterable[Request]:
        """The requests, each with its parameters from the log; one that the log does not have keeps its own."""
        known = self._log.params
        for request in requests:
            self.requests += 1
            own_id = request.request_id
            if own_id is not None and own_id in known:
                request.params = known[own_id]
                self._met.add(own_id)
            else:
                self.missing += 1
            yield request

    def warnings(self) -> list[str]:
        """What the reader of a result should know, once all requests are joined."""
        found, name = self._log.warnings, self._log.name
        if self.missing:
            which = "none" if self.missing == self.requests else f"{self.requests - self.missing:,}"
            found.append(f"{name}: it has {which} of the {_count(self.requests)}; the others keep their own parameters")
        unmet = len(self._log.params) - len(self._met)
        if unmet:
            verb = "is" if unmet == 1 else "are"
            found.append(f"{name}: {unmet:,} of its {_count(len(self._log.params))} {verb} not in the trace")
        return found


def _count(number: int) -> str:
    return f"{number:,} request{'' if number == 1 else 's'}"
