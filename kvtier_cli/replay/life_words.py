"""A block's life in words: the rows of a table, events of one kind joined, and one sentence. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from kvtier_cli.replay.explain import LifeEntry, LifeStory
from kvtier_cli.replay.life import Deed
from kvtier_cli.replay.outcomes import AbsentReason
from kvtier_cli.replay.reasons import Show, joined
from kvtier_cli.tiering.token_caps import LOAD_KEY

_NOT_SERVED: Final = {
    Deed.FILTERED: "not served: its filter skipped {tier}, which holds it",
    Deed.ABSENT: "not served: no tier had it",
    Deed.DENIED: "not served: {tier} hit, but no slot could be had",
    Deed.FAILED: "not served: its load from {tier} failed",
    Deed.HELD: "not served: promotions were held",
    Deed.GAVE_UP: "not served: gave up waiting for it",
    Deed.UNREACHED: f"not looked up: its {LOAD_KEY} ends before it",
}


class LifeRow(NamedTuple):
    """Events of one kind in a row: the first and the last step, whose doing (`own`: the request's that is explained
    alone), and what it was."""

    first: int
    last: int
    requests: str
    own: bool
    what: str


def life_rows(life: LifeStory, show: Show = str) -> list[LifeRow]:
    """The rows of a life's table. What one request did alike in one step is one row, and so are loads in a row, and
    promotions in a row whose loads failed."""
    rows = []
    for entries in _grouped(life.entries):
        first, last = entries[0], entries[-1]
        requests = show(first.request)
        if last.request != first.request:
            requests += f" to {show(last.request)}"
        rows.append(LifeRow(first.step, last.step, requests, first.own, _what(entries, show)))
    return rows


def _grouped(entries: Sequence[LifeEntry]) -> Iterator[list[LifeEntry]]:
    """Events that are told together. A doomed promotion is started again in each pass: all of these are one."""
    units: list[tuple[tuple[object, ...], list[LifeEntry]]] = []
    for entry in entries:
        before = units[-1][1] if units else []
        if entry.deed is Deed.LOAD_FAILED and len(before) == 1 and _is_promotion_of(before[0], entry):
            units[-1] = (entry.deed, entry.request, entry.tier), [*before, entry]
        else:
            units.append((_kind(entry), [entry]))
    for _, group in groupby(units, key=lambda unit: unit[0]):
        yield [entry for _, alike in group for entry in alike]


def _is_promotion_of(entry: LifeEntry, failed: LifeEntry) -> bool:
    return entry.deed is Deed.PROMOTED and (entry.request, entry.tier) == (failed.request, failed.tier)


def _kind(entry: LifeEntry) -> tuple[object, ...]:
    if entry.deed is Deed.LOADED and not entry.own:
        return (entry.deed,)
    tier = None if entry.deed in (Deed.CASCADED, Deed.NOT_CASCADED) else entry.tier
    return entry.deed, entry.request, entry.step, tier, entry.unread


def _what(entries: Sequence[LifeEntry], show: Show) -> str:
    entry, deed = entries[0], entries[0].deed
    tiers = joined(dict.fromkeys(show(entry.tier) for entry in entries if entry.tier is not None))
    numbers = [entry.job for entry in entries if entry.job is not None]
    jobs = joined(f"{number:,}" for number in numbers)
    if deed is Deed.STORED:
        return f"stored in {tiers}"
    if deed is Deed.REFUSED:
        return f"its store in {tiers} was refused"
    if deed is Deed.CASCADED:
        return f"cascaded to {tiers}"
    if deed is Deed.NOT_CASCADED:
        return f"not kept by {tiers}, job {jobs}"
    if deed is Deed.PROMOTED and len(numbers) > 1:
        times = f"{len(numbers):,} times, each load failed"
        return f"promoted from {tiers} {times}, jobs {numbers[0]:,} to {numbers[-1]:,}"
    if deed is Deed.PROMOTED:
        return f"promoted from {tiers}" + (f", its load failed, job {jobs}" if numbers else "")
    if deed is Deed.LOAD_FAILED:
        return f"its load from {tiers} failed, job {jobs}"
    if deed is Deed.LOADED:
        return f"loaded{f' {len(entries):,} times' if len(entries) > 1 else ''}"
    if deed is Deed.EVICTED:
        return f"evicted from {tiers}{' unread' if entry.unread else ''}"
    return not_served(deed, tiers, entry.reason)


def not_served(deed: Deed, tier: str, reason: AbsentReason | None) -> str:
    """How a request was not served the block, `deed` being one of the last six."""
    if reason is AbsentReason.OFFLINE:
        return f"not served: {tier} holds it, but is offline"
    why = f" ({reason.value})" if reason is not None and deed is Deed.ABSENT else ""
    return _NOT_SERVED[deed].replace("{tier}", tier) + why


def short_life(life: LifeStory, show: Show = str) -> str | None:
    """The block's life since it was last stored, in one sentence; None where it had none."""
    kept = [entry for entry in life.entries if entry.deed in _SHORT]
    if not kept:
        return None
    stored = [number for number, entry in enumerate(kept) if entry.deed is Deed.STORED]
    parts = list(_phrases(kept[stored[-1] :] if stored else kept, show))
    if life.loads:
        parts.append(f"loaded {'once' if life.loads == 1 else f'{life.loads:,} times'} in all")
    if len(stored) > 1:
        parts[0] = f"last {parts[0]}"
    return f"Before that it was {', '.join(parts)}."


_SHORT: Final = (Deed.STORED, Deed.CASCADED, Deed.PROMOTED, Deed.EVICTED, Deed.LOAD_FAILED, Deed.NOT_CASCADED)
_PHRASES: Final = 8


def _phrases(entries: Sequence[LifeEntry], show: Show) -> Iterator[str]:
    phrases = []
    for alike in _grouped(entries):
        entry, last = alike[0], alike[-1]
        by = "this request" if entry.own else show(entry.request)
        what = _what(alike, show)
        steps = f"step {entry.step:,}" if entry.step == last.step else f"steps {entry.step:,} to {last.step:,}"
        when = "" if entry.deed is Deed.CASCADED else f" by {by} in {steps}"
        phrases.append(what + when)
    if len(phrases) <= _PHRASES:
        yield from phrases
    else:
        yield from phrases[:2]
        yield f"({len(phrases) - _PHRASES:,} more)"
        yield from phrases[2 - _PHRASES :]


def whereabouts(life: LifeStory, show: Show = str) -> str:
    """Which tiers have the block when the trace is over."""
    return joined(map(show, life.holders)) or "no tier"
