"""Transfers under way with their age and when they are due, and what the slots of the CPU tier are taken by."""

from __future__ import annotations

from kvtier_cli.render.console import plain
from tui.lines import Line, cut, mark_of, padded
from tui.session.views import Moment
from tui.widgets.list_pane import ListPane


class JobsPane(ListPane):
    """The slots, a head, then a line a job."""

    HEAD = 2

    def pane_title(self) -> str:
        moment = self._moment
        more = "" if moment is None or moment.jobs_running == len(moment.jobs) else f" ({moment.jobs_running:,})"
        return f"Jobs in flight{more}"

    @property
    def _moment(self) -> Moment | None:
        return None if self.snapshot is None else self.snapshot.moment

    @property
    def count(self) -> int:
        return 0 if self._moment is None else len(self._moment.jobs)

    def head(self, y: int, width: int) -> Line:
        moment = self._moment
        if moment is None:
            return []
        if y == 0:
            slots = moment.slots
            return [
                (" cpu slots: ", "muted"),
                (f"free {slots.free:,}  evictable {slots.evictable:,}  pinned {slots.pinned:,}  ", "text"),
                (f"pending {slots.pending:,}", "text"),
            ]
        if not moment.jobs:
            return [(" no job is running", "muted")]
        return [(f" {'job':>7}  {'tier':<10}{'kind':<7}{'blocks':>8}{'age':>6}{'due':>6}  request", "muted")]

    def row(self, index: int, width: int) -> Line:
        moment = self._moment
        if moment is None:
            return []
        job = moment.jobs[index]
        tier = padded(cut(plain(job.tier), 9, mark_of(self.out)), 10)
        age, due = ("-" if value is None else f"{value:,}" for value in (job.age, job.due))
        style = "promoted" if job.kind == "load" else "muted"
        return [
            (f" {job.job:>7,}  {tier}", "text"),
            (padded(job.kind, 7), style),
            (f"{job.blocks:>8,}{age:>6}{due:>6}", "text"),
            (f"  {plain(job.request)}", "muted"),
        ]
