"""Two lines over the whole trace: the share served, and what the filter lost; what is ahead of the cursor in grey."""

from __future__ import annotations

from textual import events
from textual.message import Message

from tui.lines import Line, Part, bar_symbol
from tui.session.views import Snapshot
from tui.widgets.pane import Pane

_LABEL = 10
_RIGHT = 17


class Timeline(Pane):
    """Line 0: served; line 1: lost to the filter. A click goes there."""

    HAS_TITLE = False

    class Sought(Message):
        """The user wants to go to a request."""

        def __init__(self, index: int) -> None:
            self.index = index
            super().__init__()

    def _columns(self) -> int:
        return max(self.size.width - _LABEL - _RIGHT, 1)

    def line(self, y: int, width: int) -> Line:
        snapshot = self.snapshot
        rows = None if snapshot is None else snapshot.rows
        if snapshot is None or rows is None or not snapshot.total:
            return []
        columns = self._columns()
        sums = rows.served_sums if y == 0 else rows.lost_sums
        shares: list[float | None] = []
        for at in range(columns):
            # Each column stands for some requests; where there are fewer than columns, for one.
            first = at * snapshot.total // columns
            last = min(max(first + 1, (at + 1) * snapshot.total // columns), snapshot.known)
            if first >= last:
                shares.append(None)
                continue
            blocks = rows.ends[last] - rows.ends[first]
            shares.append((sums[last] - sums[first]) / blocks if blocks else 0.0)
        cursor = min(columns - 1, snapshot.cursor * columns // max(snapshot.total, 1))
        line: Line = [(f" {'served' if y == 0 else 'filtered':<{_LABEL - 1}}", "muted")]
        line += self._bars(shares, cursor, "primary" if y == 0 else "alarm_plain")
        return [*line, ("  ", ""), *self._so_far(snapshot, y)]

    def _bars(self, shares: list[float | None], cursor: int, style: str) -> Line:
        """As runs of one style; the cursor stands in front of what is ahead."""
        line: Line = []
        for at, share in enumerate(shares):
            if at == cursor:
                part: Part = ("│" if self.out.unicode else "|", "bold")
            else:
                behind = "ahead" if share is not None else "unreached"
                part = (bar_symbol(share, self.out), style if at < cursor else behind)
            if line and line[-1][1] == part[1]:
                line[-1] = (line[-1][0] + part[0], part[1])
            else:
                line.append(part)
        return line

    def _so_far(self, snapshot: Snapshot, y: int) -> Line:
        rows = snapshot.rows
        if rows is None:
            return []
        upto = min(snapshot.cursor + 1, snapshot.known)
        if y == 0:
            blocks = rows.ends[upto]
            return [(f"{100 * rows.served_sums[upto] / blocks:.1f} % so far" if blocks else "", "muted")]
        return [(f"{rows.lost_sums[upto]:,} blocks", "muted")]

    def on_click(self, event: events.Click) -> None:
        snapshot = self.snapshot
        if snapshot is not None and snapshot.total and event.x >= _LABEL:
            self.post_message(self.Sought((event.x - _LABEL) * snapshot.total // self._columns()))
