"""The requests of a course as rows of a list, made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import words_of
from tui.session.rows import RequestRows, Row
from tui.session.views import RowView


class RequestListing:
    """Rows by position; `count` grows while the replay goes on ahead, or while a log is read."""

    def __init__(self, rows: RequestRows, tiers: Sequence[str], label: Callable[[int], str]) -> None:
        self.rows = rows
        self._tiers = tiers
        self._label = label

    @property
    def count(self) -> int:
        return self.rows.count

    def row(self, index: int) -> RowView:
        row = self.rows.row(index)
        count = f"{row.served:,}/{row.blocks:,}"
        note = stop_note(row, self._tiers)
        return RowView(index, self._label(index), count, row.codes, note=note, outcome=row.stop)


def stop_note(row: Row, tiers: Sequence[str]) -> str:
    """Why a request was served no further, in a word or two: `filtered: in s3`."""
    if row.stop is None:
        return "served whole" if row.blocks else "no blocks"
    tier = "" if row.tier is None else tiers[row.tier]
    word = words_of(row.stop)
    if row.stop is Outcome.FILTERED:
        return f"{word}: in {tier}"
    if row.stop is Outcome.ABSENT and row.reason is not None:
        return f"{word}: {row.reason.value}"
    if row.stop is Outcome.DENIED:
        return f"{word}: {tier} hit"
    if row.stop is Outcome.FAILED:
        return f"{word}: {tier}"
    return word
