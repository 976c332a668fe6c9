"""A filter that would admit a tier which the one in force skips, as little changed as can be."""

from __future__ import annotations

from dataclasses import replace

from kvtier_cli.tiering.filters import FilterParse, TierFilter, TierMatcher
from kvtier_cli.tiering.model import Locality, Medium


def wider_filter(parse: FilterParse, medium: Medium | None, locality: Locality | None) -> tuple[str, str] | None:
    """The short form of the filter and what it changes: one side of an entry dropped, else an entry more.

    None where the tier is admitted already.
    """
    load_filter = parse.filter
    if load_filter.admits(medium, locality):
        return None
    matchers = load_filter.matchers
    for at, matcher in enumerate(matchers):
        for side in ("locality", "medium"):
            if getattr(matcher, side) is None:
                continue
            changed = replace(matcher, **{side: None})
            if changed.matches(medium, locality) and changed != TierMatcher():
                wider = TierFilter((*matchers[:at], changed, *matchers[at + 1 :]))
                return wider.short(), f"drops the {side}"
    own = TierMatcher(medium, locality)
    return TierFilter((*matchers, own)).short(), "adds an entry"
