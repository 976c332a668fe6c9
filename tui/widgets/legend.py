"""The symbols and what they stand for: all of them where they fit, else those that occur most."""

from __future__ import annotations

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import words_of
from tui.lines import Line, width_of
from tui.widgets.pane import Pane

_RARE = (Outcome.HELD, Outcome.GAVE_UP, Outcome.FAILED, Outcome.DENIED)


class Legend(Pane):
    """One line."""

    HAS_TITLE = False

    def line(self, y: int, width: int) -> Line:
        for left_out in range(len(_RARE) + 1):
            line = self._line(set(_RARE[:left_out]), wide=not left_out)
            if width_of(line) <= width:
                return line
        return line

    def _line(self, left_out: set[Outcome], *, wide: bool) -> Line:
        entries: list[tuple[str, str, str]] = [
            (self.symbol(outcome.value), outcome.value, words_of(outcome))
            for outcome in Outcome
            if outcome not in left_out
        ]
        entries.append((self.symbol("holds"), "holds_skipped", "holds it, not asked" if wide else "holds it"))
        line: Line = []
        for symbol, style, words in entries:
            line += [(" " if not line else "  ", ""), (symbol, style), (f" {words}", "muted")]
        return line
