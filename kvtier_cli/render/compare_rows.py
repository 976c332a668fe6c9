"""The rows of a comparison: which figures stand side by side, and under what name. Lays nothing out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.tiering.topology import PRIMARY_NAME


class Measure(Enum):
    """In what a row counts."""

    SHARE = "share"
    """Blocks, of which there is a share of all."""
    COUNT = "count"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of each variant. `symbol`: the outcome whose symbol stands before the label, if any; `tier`: a name
    out of a topology that ends the label; `note`: what a difference means."""

    label: str
    values: tuple[int, ...]
    measure: Measure = Measure.COUNT
    symbol: str | None = None
    tier: str | None = None
    note: str | None = None
    main: bool = False

    @property
    def equal(self) -> bool:
        """Whether all variants have the same."""
        return len(set(self.values)) == 1


def rows_of(figures: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows that say something: served and all outcomes, then what it cost. Zero everywhere is left out, but for
    what every comparison has."""
    return [*_outcomes(figures), *_costs(figures)]


def _outcomes(figures: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    yield Row("served", _each(figures, lambda one: one["blocks_loaded"]), Measure.SHARE, main=True)
    yield Row("primary", _each(figures, lambda one: one["outcomes"]["primary"]), Measure.SHARE, "primary")
    for tier in _tiers(figures):
        served = _each(figures, lambda one, tier=tier: one["served_by_tier"].get(tier, 0))
        yield Row("promoted", served, Measure.SHARE, "promoted", tier)
    for outcome in Outcome:
        if outcome not in (Outcome.PRIMARY, Outcome.PROMOTED):
            name = outcome.value
            values = _each(figures, lambda one, name=name: one["outcomes"][name])
            if any(values):
                yield Row(name, values, Measure.SHARE, name)


def _costs(figures: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    lost = _each(figures, lambda one: one["lost_to_filter"])
    if any(lost):
        yield Row("lost to the filter", lost, Measure.SHARE, note="an upper bound")
    stored = _each(figures, lambda one: one["blocks_stored"])
    again = "computed, more of it is recomputed" if len(set(stored)) > 1 else None
    yield Row("stored", stored, Measure.SHARE, note=again)
    refused = _each(figures, lambda one: one["stores_refused"])
    if any(refused):
        yield Row("stores refused", refused)
    if any(one["promoted_by_tier"][tier] != one["served_by_tier"][tier] for one in figures for tier in _names(one)):
        for tier in _tiers(figures):
            started = _each(figures, lambda one, tier=tier: one["promoted_by_tier"].get(tier, 0))
            yield Row("promotions", started, Measure.COUNT, tier=tier)
    waited = _each(figures, lambda one: one["wait_steps"])
    if any(waited):
        yield Row("steps waited", waited)
    if all(one["bytes"] is not None for one in figures):
        for tier in _tiers(figures):
            for way in ("read", "written"):
                moved = _each(figures, lambda one, tier=tier, way=way: one["bytes"].get(tier, {}).get(way, 0))
                yield Row(way, moved, Measure.BYTES, tier=tier)


def _names(one: Mapping[str, Any]) -> list[str]:
    return [name for name in one["served_by_tier"] if name != PRIMARY_NAME]


def _tiers(figures: Sequence[Mapping[str, Any]]) -> list[str]:
    """The secondary tiers of all variants, in order of first sight."""
    return list(dict.fromkeys(name for one in figures for name in _names(one)))


def _each(figures: Sequence[Mapping[str, Any]], value: Callable[..., int]) -> tuple[int, ...]:
    return tuple(value(one) for one in figures)
