"""The first line: what is open, where in it, and whether it plays."""

from __future__ import annotations

from pathlib import PurePath

from kvtier_cli.render.console import plain
from tui.lines import Line, between, mark_of
from tui.session.views import Kind
from tui.widgets.pane import Pane

_NOUNS = {Kind.TRACE: "request", Kind.FIXTURE: "op", Kind.WORKSPACE: "lookup", Kind.LOG: "request"}


class Header(Pane):
    """One line."""

    HAS_TITLE = False

    def line(self, y: int, width: int) -> Line:
        snapshot = self.snapshot
        badge: Line = [(" kvtier ", "badge"), (" ", "")]
        if snapshot is None:
            return [*badge, ("nothing open", "muted")]
        name = plain(PurePath(snapshot.title).name or snapshot.title)
        left: Line = [*badge, (self.out.shorten(name, max(16, width // 3)), "bold"), ("   ", "")]
        total = f"{snapshot.total:,}" if snapshot.is_total else f"~{snapshot.total:,}"
        if snapshot.total:
            left += [(f"{_NOUNS[snapshot.kind]} ", "muted"), (f"{snapshot.cursor:,}/{total}", "text")]
        moment = snapshot.moment
        if moment is not None and moment.story is not None:
            shown = self.dashboard.pass_shown(moment.story)
            left += [("   pass ", "muted"), (shown, "text")]
        if moment is not None and width >= 100:
            left += [("   step ", "muted"), (f"{moment.step:,}", "text")]
        if snapshot.kind is Kind.TRACE and not snapshot.listing.count >= snapshot.total and width >= 110:
            left += [(f"   replayed {100 * snapshot.known // max(snapshot.total, 1)} %", "muted")]
        return between(left, self._right(width), width, mark_of(self.out))

    def _right(self, width: int) -> Line:
        snapshot = self.snapshot
        if snapshot is None:
            return []
        speed = "max" if snapshot.speed is None else f"{snapshot.speed}/s"
        arrow = "►" if self.out.unicode else ">"
        state: Line = [(f"{arrow} {speed}", "bold")] if snapshot.playing else [(f"paused {speed}", "muted")]
        minutes, seconds = divmod(int(snapshot.seconds), 60)
        return [*state, (f"  {minutes:02}:{seconds:02} ", "muted")]
