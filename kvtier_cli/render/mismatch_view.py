"""One expectation that was not met, in words: what was expected, what was found; of lists only where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.flow import flow
from kvtier_cli.replay.fixture_run import Mismatch
from kvtier_cli.replay.list_diff import DiffItem, diff_lists, diff_places

_ITEMS = 12
"""Items of one list that are shown inside a value, and differing ones of a list in a row; `--verbose` shows all."""
_ALIKE = 2
"""Items that both lists have and that are shown on either side of a difference."""


_BY_PLACE = frozenset(("verdicts", "outcomes", "sources"))
"""Lists whose items stand for a tier or a block each, by their place."""


def mismatch_text(mismatch: Mismatch, out: Output) -> str:
    """`expected result HIT, found MISS (no tier holds it)`; with a sign at each item of a list that is not as it is
    to be. Expected things are in one colour and found ones in another, where there is colour; the words tell too."""
    remark = f" ({plain(mismatch.remark)})" if mismatch.remark else ""
    expected, found = mismatch.expected, mismatch.found
    path = plain(mismatch.path)
    most = None if out.verbose else _ITEMS
    if isinstance(expected, list) and isinstance(found, list) and expected and found:
        by_place = mismatch.path in _BY_PLACE and len(expected) == len(found)
        items = diff_places(expected, found) if by_place else diff_lists(expected, found)
        if any(item.kind != "same" for item in items):
            return f"{path} (-missing +unexpected): [{', '.join(_diff(items, out, most))}]{remark}"
    wanted, there = out.style(flow(expected, most), "good"), out.style(flow(found, most), "bad")
    return f"expected {path} {wanted}, found {there}{remark}"


def _diff(items: Sequence[DiffItem], out: Output, most: int | None) -> Iterator[str]:
    runs = [(kind, [item.value for item in run]) for kind, run in groupby(items, key=lambda item: item.kind)]
    for index, (kind, values) in enumerate(runs):
        if kind == "same":
            yield from _alike([flow(value, most) for value in values], first=index == 0, last=index == len(runs) - 1)
            continue
        sign, style = ("-", "good") if kind == "missing" else ("+", "bad")
        for value in values[:most]:
            yield out.style(sign + flow(value, most), style)
        if most is not None and len(values) > most:
            yield out.style(f"{sign}{len(values) - most:,} more", style)


def _alike(texts: list[str], *, first: bool, last: bool) -> Iterator[str]:
    """Items that are as expected: the nearest to what differs, and how many there are besides."""
    before, after = (0 if first else _ALIKE), (0 if last else _ALIKE)
    hidden = len(texts) - before - after
    if hidden < 2:
        yield from texts
        return
    yield from texts[:before]
    yield f"({hidden:,} as expected)"
    yield from texts[len(texts) - after :]
