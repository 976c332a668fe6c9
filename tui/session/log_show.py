"""A decision log that is open: what a replay decided, request by request, without replaying anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvtier_cli.replay.decision_log import DecisionLog
from kvtier_cli.replay.kvlog_file import LoggedFilter
from kvtier_cli.replay.logged_story import logged_story, logged_topology
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.tiering.filters import FilterParse, lint_against, parse_tier_filter
from kvtier_cli.tiering.topology import PRIMARY_NAME
from tui.session.course import Stop
from tui.session.listing import RequestListing
from tui.session.moments import declared
from tui.session.rows import CODE, PROMOTED_FROM, Mark, RequestRows
from tui.session.trace_show import Found
from tui.session.views import FilterView, Kind, Moment, SlotsView, TierView

_SERVED = (Outcome.PRIMARY, Outcome.PROMOTED)


class LogShow:
    """The tiers are shown as the replay left them in the end; of the moments before that the log knows nothing."""

    kind = Kind.LOG
    is_total = True

    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self.title = log.path
        self.topology = logged_topology(log)
        self.warnings: Sequence[str] = tuple(log.header.warnings)
        self.rows = RequestRows()
        self._parses = [_parse(logged) for logged in log.header.filters]
        self._parses = [lint_against(parse, self.topology.tiers) for parse in self._parses]
        self._tiers = _tier_views(log.figures, [tier.name for tier in self.topology.tiers], self)
        self.listing = RequestListing(self.rows, [tier.name for tier in self.topology.tiers], self._label)

    def _label(self, index: int) -> str:
        return self._log.request_label(index) or f"r{index}"

    @property
    def total(self) -> int:
        return self._log.requests

    def work(self, stop: Stop) -> bool:
        while self.rows.count < self.total:
            self._add(self.rows.count)
            if stop():
                return True
        return False

    def _add(self, index: int) -> None:
        log = self._log
        rows = log.rows(index)
        reason = int(log.of_requests("reason")[index])
        outcomes = [list(Outcome)[place] for place in rows.outcomes]
        served = next((at for at, outcome in enumerate(outcomes) if outcome not in _SERVED), len(outcomes))
        codes = bytes(
            min(PROMOTED_FROM + int(tier) - 1, 255) if outcome is Outcome.PROMOTED else CODE[outcome]
            for outcome, tier in zip(outcomes, rows.tiers, strict=True)
        )
        marks = Mark.PROMOTION if Outcome.PROMOTED in outcomes else Mark(0)
        marks |= Mark.GIVE_UP if log.of_requests("gave_up")[index] else Mark(0)
        lost, tier = 0, None
        if served < len(outcomes):
            place = int(rows.tiers[served])
            tier = place - 1 if place > 0 else None
            if outcomes[served] is Outcome.DENIED:
                marks |= Mark.DENIAL
            elif outcomes[served] is Outcome.FILTERED:
                marks |= Mark.SKIP
                skipped = [place for place, spec in enumerate(self.topology.tiers, 1) if not self._admits(index, spec)]
                held = [bool(row[skipped].any()) for row in rows.held[served:]]
                lost = len(held) if all(held) else held.index(False)
        self.rows.add(codes, served, tier, _reason(reason), int(log.of_requests("passes")[index]), marks, lost)

    def _admits(self, index: int, spec: Any) -> bool:
        return self._parse_of(index).filter.admits(spec.medium, spec.locality)

    def _parse_of(self, index: int) -> FilterParse:
        return self._parses[int(self._log.of_requests("filter")[index])]

    def moment(self, index: int, stop: Stop) -> Moment | None:
        if not 0 <= index < self.total:
            raise IndexError(index)
        logged = self._log.request(index)
        story = logged_story(self._log, self.topology, logged)
        primary = self._tiers[0]
        capacity = primary.capacity or 0
        slots = SlotsView(capacity - primary.resident, primary.resident, 0, 0)
        figures = self._log.figures
        return Moment(index, self._label(index), story, self._tiers, (), 0, slots, (), logged.step, figures)

    def run_on(self, stop: Stop) -> Moment | None:
        return None

    def filter_at(self, index: int) -> FilterView:
        if not 0 <= index < self.total:
            return FilterView("", lint_against(parse_tier_filter(), self.topology.tiers), True)
        parse = self._parse_of(index)
        return FilterView(parse.filter.short(), parse, False)

    def set_filter(self, parse: FilterParse | None, text: str, since: int) -> None:
        """What was replayed was replayed."""

    def next_mark(self, mark: Mark, start: int, *, backwards: bool) -> int | None:
        return self.rows.find(mark, start, backwards=backwards)

    def go_to(self, text: str) -> Found | None:
        from kvtier_cli.errors import InputError

        try:
            return Found(self._log.find_request(text))
        except InputError:
            return None

    def find(self, text: str, start: int, *, backwards: bool = False) -> Found | None:
        import numpy as np

        places = np.flatnonzero(np.isin(self._log.of_rows("key"), list(self._log.find_blocks(text))))
        requests = np.searchsorted(self._log.of_requests("start"), places, side="right") - 1
        if not len(requests):
            return self.go_to(text)
        order = np.flatnonzero(requests < start if backwards else requests > start)
        at = (order[-1] if backwards else order[0]) if len(order) else (-1 if backwards else 0)
        request = int(requests[at])
        return Found(request, int(places[at]) - self._log.span(request).start)

    def compare(self, parse: FilterParse | None, text: str, cursor: int) -> None:
        return None

    def saved(self, index: int) -> None:
        return None

    def resident(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return ()

    def close(self) -> None:
        """The columns are mapped; they go with the show."""


def _parse(logged: LoggedFilter) -> FilterParse:
    if isinstance(logged.matchers, str):
        return parse_tier_filter()
    return parse_tier_filter([{side: value for side, value in entry.items() if value} for entry in logged.matchers])


def _reason(code: int) -> Any:
    from kvtier_cli.replay.decision_columns import REASONS

    return REASONS[code - 1] if code else None


def _tier_views(figures: Mapping[str, Any], names: Sequence[str], show: LogShow) -> tuple[TierView, ...]:
    """The tiers as the replay left them."""
    resident, rates = figures["resident"], figures["rates"]
    topology = show.topology

    def rate(name: str) -> float | None:
        value: float | None = rates[name]["value"]
        return value

    views = [
        TierView(
            PRIMARY_NAME,
            "primary",
            resident["primary"],
            topology.primary.capacity,
            figures["lookups"],
            figures["primary_hits"],
            rate(f"{PRIMARY_NAME}_of_asked"),
            rate(f"{PRIMARY_NAME}_of_all"),
            0,
            0,
        )
    ]
    for name, spec in zip(names, topology.tiers, strict=True):
        views.append(
            TierView(
                name,
                declared(spec.medium, spec.locality),
                resident[name],
                spec.capacity,
                figures["asked_by_tier"][name],
                figures["hits_by_tier"][name],
                rate(f"{name}_of_asked"),
                rate(f"{name}_of_all"),
                figures["skipped_by_tier"][name],
                figures["promoted_by_tier"][name],
                spec.offline,
            )
        )
    return tuple(views)
