"""Why a filter admits or skips a tier, in words that commands and explanations share. Decides nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvtier_cli.tiering.filter_model import ALL, FilterParse, TierFilter, TierMatcher
from kvtier_cli.tiering.model import Locality, Medium

if TYPE_CHECKING:
    from kvtier_cli.tiering.topology import TierSpec

PRIMARY_REASON = "always asked, no filter applies to it"


def tier_reason(parse: FilterParse, tier: TierSpec) -> str:
    """Why the filter admits `tier` ("by entry 0", "ALL admits every tier"), or why it skips it."""
    if not parse.filter.admits(tier.medium, tier.locality):
        return skip_reason(parse.filter, tier.medium, tier.locality)
    if parse.filter is ALL:
        return "ALL admits every tier"
    if tier.medium is None and tier.locality is None:
        return "declares nothing, so only [] stops it"
    return f"by entry {parse.admitting_entry(tier.medium, tier.locality)}"


def skip_reason(load_filter: TierFilter, medium: Medium | None, locality: Locality | None) -> str:
    """Why `load_filter` skips a tier that declares these: "its locality REMOTE matches no entry"."""
    if not load_filter.matchers:
        return "[] admits no secondary tier"
    if medium is not None and not load_filter.admits(medium, None):
        return f"its medium {medium.value} matches no entry"
    if locality is not None and not load_filter.admits(None, locality):
        return f"its locality {locality.value} matches no entry"
    return "no entry matches its medium and its locality both"


def matcher_words(matcher: TierMatcher) -> str:
    """What a matcher asks for: "storage, any locality"."""
    medium = matcher.medium.value.lower() if matcher.medium else "any medium"
    locality = matcher.locality.value.lower() if matcher.locality else "any locality"
    return f"{medium}, {locality}"
