"""The tables: requests, tiers, resident blocks, jobs, events, as rows to sort and to search. Makes rows when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvtier_cli.render.console import plain
from tui.session.views import Moment, Snapshot
from tui.words import event_words

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """`heads` name the columns, numbers stand right. `row` gives one of `count`; `position` says which request a row
    is about, None for none."""

    title: str
    heads: tuple[str, ...]
    count: int
    row: Callable[[int], tuple[Cell, ...]]
    position: Callable[[int], int | None] = lambda _: None


TABLES = {
    "requests": "Requests: how far each was served, and why no further",
    "tiers": "Tiers: how full, what they were asked, hit, skipped, promoted",
    "resident": "Resident blocks: which tiers hold what, at this moment",
    "jobs": "Jobs in flight: age and due step",
    "events": "Events: the latest decisions",
}


def requests_table(snapshot: Snapshot) -> Table:
    """A row a request that was replayed."""
    listing = snapshot.listing

    def row(index: int) -> tuple[Cell, ...]:
        view = listing.row(index)
        if snapshot.rows is None:
            return view.label, None, None, None, view.note or view.text
        found = snapshot.rows.row(index)
        return view.label, found.blocks, found.served, found.passes, view.note

    heads = ("request", "blocks", "served", "passes", "why no further")
    return Table("Requests", heads, snapshot.known, row, lambda index: index)


def tiers_table(moment: Moment) -> Table:
    """A row a tier."""
    tiers = moment.tiers

    def row(index: int) -> tuple[Cell, ...]:
        tier = tiers[index]
        return (
            tier.name,
            tier.declares,
            tier.resident,
            tier.capacity,
            tier.asked,
            tier.hits,
            tier.of_asked,
            tier.of_all,
            tier.skipped,
            tier.promoted,
        )

    heads = ("tier", "declared", "holds", "capacity", "asked", "hits", "of asked", "of all", "skipped", "promoted")
    return Table("Tiers", heads, len(tiers), row)


def jobs_table(moment: Moment) -> Table:
    """A row a job."""
    jobs = moment.jobs

    def row(index: int) -> tuple[Cell, ...]:
        job = jobs[index]
        return job.job, job.tier, job.kind, job.request, job.blocks, job.age, job.due

    return Table("Jobs in flight", ("job", "tier", "kind", "request", "blocks", "age", "due"), len(jobs), row)


def events_table(moment: Moment) -> Table:
    """A row an event."""
    events = moment.events

    def row(index: int) -> tuple[Cell, ...]:
        view = events[index]
        return view.event.step, view.request, view.event.kind.value, event_words(view.event)

    def position(index: int) -> int | None:
        request = events[index].event.request
        return request if isinstance(request, int) else None

    return Table("Events", ("step", "request", "event", "what"), len(events), row, position)


def resident_table(blocks: Sequence[tuple[str, tuple[str, ...]]]) -> Table:
    """A row a block, with the tiers that hold it."""
    return Table(
        "Resident blocks",
        ("block", "tiers"),
        len(blocks),
        lambda index: (blocks[index][0], ", ".join(blocks[index][1])),
    )


def shown_cell(value: Cell, head: str) -> str:
    """A cell as text."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{100 * value:.1f}%"
    return f"{value:,}" if isinstance(value, int) else plain(value)


def order_of(table: Table, words: Sequence[str], column: int | None, *, reverse: bool) -> Sequence[int]:
    """The rows that have all `words`, sorted by a column (None: as they come)."""
    order: Sequence[int] = range(table.count)
    if words or column is not None:
        rows = [(index, table.row(index)) for index in order]
        if words:
            rows = [each for each in rows if _has(each[1], words)]
        if column is not None:
            # Numbers before texts, and what is not known last, whichever way.
            known = [each for each in rows if each[1][column] is not None]
            known.sort(key=lambda each: _key(each[1][column]), reverse=reverse)
            rows = known + [each for each in rows if each[1][column] is None]
        order = [index for index, _ in rows]
    return order


def _has(row: tuple[Cell, ...], words: Sequence[str]) -> bool:
    text = " ".join(str(cell) for cell in row if cell is not None).lower()
    return all(word in text for word in words)


def _key(cell: Cell) -> tuple[int, float, str]:
    if not isinstance(cell, str):
        return 0, float(cell or 0), ""
    digits = cell.lstrip("abcdefghijklmnopqrstuvwxyz")  # r9 comes before r10
    return 1, float(digits) if digits.isdecimal() and len(digits) < 16 else float("inf"), cell
