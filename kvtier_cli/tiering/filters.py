"""The filter on loads, `kv_load_tiers`, read as vLLM reads it. The front door to filters: import from here.

What vLLM leaves unsaid is found in `filter_lint.py`; the FILTER argument of the command line is read in
`filter_text.py`. What is no list, and a list of which every entry is dropped, admits every tier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kvtier_cli.tiering.filter_lint import lint_filter, lint_tiers, word_warning
from kvtier_cli.tiering.filter_model import (
    ALL,
    KEY,
    LOCALITIES,
    MEDIA,
    MISSING,
    Entry,
    FilterParse,
    Note,
    TierFilter,
    TierMatcher,
)
from kvtier_cli.tiering.model import Locality, Medium

if TYPE_CHECKING:
    from kvtier_cli.tiering.topology import TierSpec

__all__ = [
    "ALL",
    "KEY",
    "MISSING",
    "Entry",
    "FilterParse",
    "Note",
    "TierFilter",
    "TierMatcher",
    "lint_against",
    "parse_tier_filter",
]

_MATCHERS: Final = {
    (medium, locality): TierMatcher(medium, locality) for medium in (None, *Medium) for locality in (None, *Locality)
}


def parse_tier_filter(raw: object = MISSING) -> FilterParse:
    """Read the value of `kv_load_tiers` as vLLM 0.33 does; `MISSING` (no parameter) and None are silent.

    Nothing is an error here: what vLLM drops gives a warning, and what it misreads without a word gives lint.
    """
    if raw is MISSING or raw is None:
        parse = FilterParse(raw, ALL)
    elif not isinstance(raw, list):
        parse = FilterParse(raw, ALL, warnings=(word_warning(None, "not_a_list", raw),))
    else:
        entries: list[Entry] = []
        warnings: list[Note] = []
        for index, entry in enumerate(raw):
            matcher = _read_entry(index, entry)
            if isinstance(matcher, Note):
                warnings.append(matcher)
                entries.append(Entry(index, None))
            else:
                entries.append(Entry(index, matcher))
        matchers = tuple(entry.matcher for entry in entries if entry.matcher is not None)
        # Rule 3: a list of which nothing is left admits every tier; a list that was empty from the start, none.
        verdict = TierFilter(matchers) if matchers or not raw else ALL
        parse = FilterParse(raw, verdict, tuple(entries), tuple(warnings))
    return replace(parse, lint=tuple(lint_filter(parse)))


def _read_entry(index: int, entry: object) -> TierMatcher | Note:
    """One entry of a filter: its matcher, or the warning with which vLLM drops it (one at most, the medium's first)."""
    if not isinstance(entry, dict):
        return word_warning(index, "not_an_object", entry)
    medium, locality = entry.get("medium"), entry.get("locality")
    try:
        # `str.upper` is Unicode's, and nothing is stripped.
        return _MATCHERS[
            None if medium is None else MEDIA[medium.upper()],
            None if locality is None else LOCALITIES[locality.upper()],
        ]
    except (AttributeError, KeyError):
        pass
    if medium is not None and not (isinstance(medium, str) and medium.upper() in MEDIA):
        return word_warning(index, "unknown_medium", medium)
    return word_warning(index, "unknown_locality", locality)


def lint_against(parse: FilterParse, tiers: Sequence[TierSpec]) -> FilterParse:
    """The same parse, its lint extended by what shows only against the secondary tiers that are there."""
    return replace(parse, lint=parse.lint + tuple(lint_tiers(parse, tiers)))
