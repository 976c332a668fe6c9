"""A filter that is being typed: what vLLM would make of it, what it would change. Draws nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.filter_text import read_filter_text
from kvtier_cli.tiering.filters import FilterParse, lint_against, parse_tier_filter
from kvtier_cli.tiering.topology import TierSpec, Topology

OWN: Final = "own"
"""Typed in the place of a filter: each request's own."""


@dataclass(frozen=True, slots=True)
class Draft:
    """`parse` is None where the text cannot be read (`error` says why), and where it asks for the requests' own."""

    text: str
    parse: FilterParse | None
    error: str = ""

    @property
    def is_own(self) -> bool:
        return self.parse is None and not self.error


def draft_of(text: str, topology: Topology) -> Draft:
    """Read what was typed: JSON as vLLM takes it, a short form, or `own`."""
    if text.strip().lower() == OWN:
        return Draft(text, None)
    try:
        source = read_filter_text(text, "filter")
    except InputError as error:
        hint = f"; {error.hint}" if error.hint else ""
        place = f"column {error.column}: " if error.column is not None else ""
        return Draft(text, None, f"{place}{error.message}{hint}")
    parse = parse_tier_filter(source.raw)
    parse = replace(parse, lint=source.lint + parse.lint)
    return Draft(text, lint_against(parse, topology.tiers))


def remarks(parse: FilterParse) -> list[str]:
    """What vLLM logs and what it does not say, the worst first."""
    faults = sorted(parse.faults(), key=lambda note: note.index is None)  # an entry's fault is the reason for the rest
    notes = [*faults, *(note for note in parse.lint if not note.is_fault)]
    found = []
    for note in notes:
        where = "" if note.index is None else f"entry {note.index}: "
        found.append(f"{where}{note.message}" + (f"; {note.hint}" if note.hint else ""))
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """A tier whose verdict would be another. `holds`: so many blocks of the request on show, from the first that was
    not served on, the tier holds in a row (0 where that says nothing)."""

    tier: TierSpec
    admitted: bool
    holds: int


def changes(parse: FilterParse, before: FilterParse, topology: Topology, story: RequestStory | None) -> list[Change]:
    """What another filter would change. Whether blocks would be served only a replay can tell."""
    found = []
    for tier in topology.tiers:
        would = parse.filter.admits(tier.medium, tier.locality)
        if would != before.filter.admits(tier.medium, tier.locality):
            found.append(Change(tier, would, _held(tier.name, story) if would else 0))
    return found


def _held(tier: str, story: RequestStory | None) -> int:
    if story is None or story.stop is None:
        return 0
    held = 0
    for block in story.blocks[story.stop.at :]:
        if tier not in block.holders:
            break
        held += 1
    return held
