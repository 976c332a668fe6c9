"""The requests of the trace (or the ops of a fixture), a line each: how far each was served, and what stopped it."""

from __future__ import annotations

from functools import lru_cache

from kvtier_cli.render.cells import Drawn, draw_outcome
from kvtier_cli.render.console import Output, plain
from kvtier_cli.replay.outcomes import Outcome
from tui.lines import TEN, Line, cells_line, cut, mark_of, padded, spaced, width_of
from tui.session.rows import outcome_of
from tui.session.views import Kind, RowView, Snapshot
from tui.widgets.list_pane import ListPane

_TITLES = {Kind.TRACE: "Requests", Kind.FIXTURE: "Ops", Kind.WORKSPACE: "Lookups", Kind.LOG: "Requests"}
_NOTE = 17
_KEPT = 512
"""So many lines are kept; most of those that are visible were so before."""


@lru_cache(maxsize=512)
def _drawn(code: int, out: Output) -> Drawn:
    return draw_outcome(outcome_of(code), out)


def blocks_line(codes: bytes, room: int, out: Output) -> Line:
    """A request's blocks by their outcomes, in at most `room` cells, with the mark where they are cut."""
    fits = max(room - 1, 1)
    shown = fits - (fits - 1) // (TEN + 1)
    line = cells_line(spaced([_drawn(code, out) for code in codes[:shown]])[:fits])
    if len(codes) > shown:
        line.append((out.symbol("cut"), "bold"))
    return line


class RequestsPane(ListPane):
    """The row of the request on show has the mark; those behind it are still to come."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: dict[tuple[RowView, bool, bool, int], Line] = {}

    def pane_title(self) -> str:
        snapshot = self.snapshot
        if snapshot is None:
            return "Requests"
        title = _TITLES[snapshot.kind]
        if snapshot.known < snapshot.total:
            return f"{title} ({snapshot.known:,} replayed)"
        return title

    @property
    def count(self) -> int:
        return 0 if self.snapshot is None else self.snapshot.known

    def show(self, snapshot: Snapshot) -> None:
        anew = self.snapshot is None or self.snapshot.listing is not snapshot.listing
        self.snapshot = snapshot
        if anew or abs(self.cursor - snapshot.cursor) > self.rows_visible:
            self.reach_centred(snapshot.cursor)
        elif self.cursor != snapshot.cursor:
            self.reach(snapshot.cursor, margin=max(1, self.rows_visible // 4))
        self.refresh_changed()

    def row(self, index: int, width: int) -> Line:
        snapshot = self.snapshot
        if snapshot is None or index >= snapshot.known:
            return []
        row = snapshot.listing.row(index)
        asked = row, index == snapshot.cursor, index > snapshot.cursor, width
        if asked not in self._lines:
            if len(self._lines) >= _KEPT:
                self._lines.clear()
            self._lines[asked] = self._line(*asked)
        return self._lines[asked]

    def _line(self, row: RowView, here: bool, ahead: bool, width: int) -> Line:
        mark = ("►" if self.out.unicode else ">") if here else " "
        name = padded(cut(plain(row.label), 8, mark_of(self.out)), 8)
        style = "bold" if here else "muted" if ahead else "text"
        line: Line = [(mark, "bold"), (name, style), (padded(row.count, 8, ">") + "  ", style)]
        note = self._note(row)
        room = width - width_of(line) - _NOTE - 2
        if row.codes:
            cells = blocks_line(row.codes, room, self.out)
        else:
            cells = [(cut(plain(row.text), max(room, 0), mark_of(self.out)), style)]
        line += cells
        gap = max(width - _NOTE - width_of(line) - 1, 1)
        return [*line, (" " * gap, ""), note]

    def _note(self, row: RowView) -> tuple[str, str]:
        text = cut(plain(row.note), _NOTE, mark_of(self.out))
        if row.failed:
            return text, "bad"
        if row.outcome is Outcome.FILTERED:
            return text, "alarm_plain"
        if row.outcome in (Outcome.DENIED, Outcome.FAILED, Outcome.HELD, Outcome.GAVE_UP):
            return text, row.outcome.value
        return text, "muted"
