"""What each tier served of all blocks, over the last requests before the cursor: a line of bars a tier."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

from kvtier_cli.render.console import cell_width, plain
from tui.lines import Line, bar_symbol, cut, mark_of, padded
from tui.session.rows import PROMOTED_FROM, RequestRows
from tui.widgets.pane import Pane

LAST: Final = 500


@lru_cache(maxsize=8)
def _shares(rows: RequestRows, upto: int, columns: int, tiers: int) -> list[list[float | None]]:
    """For each tier (the primary first) its share of all blocks in each column."""
    first = max(0, upto - LAST)
    edges = [first + round(at * (upto - first) / columns) for at in range(columns + 1)]
    shares: list[list[float | None]] = [[] for _ in range(tiers)]
    for start, end in pairwise(edges):
        codes = rows.codes(start, end)
        for tier in range(tiers):
            served = codes.count(PROMOTED_FROM + tier - 1 if tier else 0)
            shares[tier].append(served / len(codes) if codes else None)
    return shares


class PlotsPane(Pane, can_focus=True):
    """Two lines a tier: bars, and below them nothing, as in a table with air."""

    def pane_title(self) -> str:
        return f"Served by tier, of all blocks, last {LAST} requests"

    def line(self, y: int, width: int) -> Line:
        snapshot = self.snapshot
        moment = None if snapshot is None else snapshot.moment
        if snapshot is None or moment is None or snapshot.rows is None:
            return [(" no requests were replayed", "muted")] if y == 0 else []
        spread = 2 if self.size.height > 2 * len(moment.tiers) else 1
        at, rest = divmod(y, spread)
        if at >= len(moment.tiers) or rest:
            return []
        names = [plain(tier.name) for tier in moment.tiers]
        widest = min(12, max(map(cell_width, names)))
        columns = max(8, min(width - widest - 14, 120))
        shares = _shares(snapshot.rows, min(snapshot.cursor + 1, snapshot.known), columns, len(names))[at]
        of_all = moment.tiers[at].of_all
        style = "primary" if at == 0 else "promoted"
        return [
            (f" {padded(cut(names[at], widest, mark_of(self.out)), widest)}  ", "bold"),
            ("".join(bar_symbol(share, self.out) for share in shares), style),
            ("   -" if of_all is None else f"  {100 * of_all:5.1f}%", "muted"),
        ]
