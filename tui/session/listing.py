"""The requests of a course as rows of a list, made when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import words_of
from tui.session.rows import RequestRows, Row
from tui.session.tape import Tape
from tui.session.views import RowView


class TraceListing:
    """Rows by position; `count` grows while the replay goes on ahead."""

    def __init__(self, tape: Tape, rows: RequestRows, tiers: Sequence[str]) -> None:
        self.tape = tape
        self.rows = rows
        self._tiers = tiers

    @property
    def count(self) -> int:
        return self.rows.count

    def row(self, index: int) -> RowView:
        row = self.rows.row(index)
        return RowView(
            index,
            self.tape.label(index),
            f"{row.served:,}/{row.blocks:,}",
            row.codes,
            note=stop_note(row, self._tiers),
            outcome=row.stop,
        )


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
