"""The filter on loads as data: matchers, the filter, how one was read. Reading one is `filters.py`, the front door.

The rules (vLLM 0.27 to 0.33): a tier takes part if any matcher matches; a matcher is an AND of its fields; a field
left out matches anything, and so does a side that the tier does not declare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final

from kvtier_cli.tiering.model import Locality, Medium

KEY: Final = "kv_load_tiers"
KNOWN_KEYS: Final = ("medium", "locality")
MEDIA: Final = {medium.value: medium for medium in Medium}
LOCALITIES: Final = {locality.value: locality for locality in Locality}


class _Absent(Enum):
    MISSING = "absent"


MISSING: Final = _Absent.MISSING
"""Stands for a filter that a request does not carry; `None` is one that is `null`."""


@dataclass(frozen=True, slots=True)
class TierMatcher:
    """One entry of a filter. A side that is None matches anything."""

    medium: Medium | None = None
    locality: Locality | None = None

    def matches(self, medium: Medium | None, locality: Locality | None) -> bool:
        """Whether a tier that declares these (None: not declared, passes that side) meets this matcher."""
        return (self.medium is None or medium is None or self.medium is medium) and (
            self.locality is None or locality is None or self.locality is locality
        )

    def as_json(self) -> dict[str, str | None]:
        """The matcher as the recordings write it; a side that is not set is None."""
        return {
            "medium": self.medium.value if self.medium else None,
            "locality": self.locality.value if self.locality else None,
        }

    def __str__(self) -> str:
        """The short form of the command line: `storage:local`, `storage`, `local`, `any`."""
        return ":".join(side.value.lower() for side in (self.medium, self.locality) if side is not None) or "any"


@dataclass(frozen=True, slots=True, eq=False)
class TierFilter:
    """What a request may load from. Immutable and hashable; `ALL` is told apart by identity alone."""

    matchers: tuple[TierMatcher, ...]
    _distinct: tuple[TierMatcher, ...] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A filter may have a hundred thousand entries, and at most nine different ones; and it is a key in the
        # manager's table of admitted tiers, so neither question may cost its length each time. (By `id` first:
        # equal matchers are mostly one object, and hashing an enum's members is slow.)
        distinct = tuple(dict.fromkeys({id(matcher): matcher for matcher in self.matchers}.values()))
        object.__setattr__(self, "_distinct", distinct)
        object.__setattr__(self, "_hash", hash((len(self.matchers), distinct)))

    def admits(self, medium: Medium | None, locality: Locality | None) -> bool:
        """Whether a secondary tier that declares these may serve. The primary is never asked about."""
        return any(matcher.matches(medium, locality) for matcher in self._distinct)

    def as_json(self) -> str | list[dict[str, str | None]]:
        """`"ALL"`, or the matchers: the form in which the recordings state a filter."""
        return "ALL" if self is ALL else [matcher.as_json() for matcher in self.matchers]

    def short(self, most: int = 8) -> str:
        """The short form of the command line (`all`, `deny`, `storage:local,cpu`), cut after `most` entries."""
        if self is ALL:
            return "all"
        if not self.matchers:
            return "deny"
        more = len(self.matchers) - most
        return ",".join(map(str, self.matchers[:most])) + (f" and {more:,} more" if more > 0 else "")

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, TierFilter):
            return self is other
        return self is not ALL and other is not ALL and self.matchers == other.matchers

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> str | tuple[object, ...]:
        # Pickled (to the processes of a sweep) and copied, ALL stays the one object that it is.
        return "ALL" if self is ALL else (TierFilter, (self.matchers,))


ALL: Final = TierFilter((TierMatcher(),))
"""No filter: every secondary tier. `[{}]` admits the same, and is another filter."""

WARNING_CODES: Final = frozenset({"not_a_list", "not_an_object", "unknown_medium", "unknown_locality"})
"""Where vLLM logs a warning."""

FAULT_CODES: Final = WARNING_CODES | {"fails_open", "unknown_key", "unmet"}
"""What `--strict` refuses."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something to say about a filter: `index` of the entry (None: the whole), a `code`, and words for people."""

    index: int | None
    code: str
    message: str
    hint: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether `--strict` refuses a filter for it."""
        return self.code in FAULT_CODES


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as vLLM reads it; `matcher` is None where it is dropped."""

    index: int
    matcher: TierMatcher | None

    @property
    def kept(self) -> bool:
        return self.matcher is not None

    @property
    def medium(self) -> Medium | None:
        return self.matcher.medium if self.matcher else None

    @property
    def locality(self) -> Locality | None:
        return self.matcher.locality if self.matcher else None


@dataclass(frozen=True)
class FilterParse:
    """How a filter reads. `warnings` are as many as vLLM would log, in its order; `lint` is what it does not say."""

    raw: object
    filter: TierFilter
    entries: tuple[Entry, ...] = ()
    warnings: tuple[Note, ...] = ()
    lint: tuple[Note, ...] = ()

    @property
    def fails_open(self) -> bool:
        """Whether every tier is admitted although something else was asked for."""
        return any(note.code == "fails_open" for note in self.lint)

    def faults(self) -> tuple[Note, ...]:
        """What `--strict` refuses: warnings, failing open, unknown keys, and (after `lint_against`) unmet matchers."""
        return self.warnings + tuple(note for note in self.lint if note.is_fault)

    @cached_property
    def first_entries(self) -> dict[TierMatcher, int]:
        """Each different matcher that is kept, with the index of the first entry that states it."""
        # Backwards, so that the first one stays; by `id` first, as the parser gives one object for one matcher.
        kept = {id(entry.matcher): entry for entry in reversed(self.entries) if entry.matcher is not None}
        firsts: dict[TierMatcher, int] = {}
        for entry in sorted(kept.values(), key=lambda entry: entry.index):
            if entry.matcher is not None:
                firsts.setdefault(entry.matcher, entry.index)
        return firsts

    @cached_property
    def notes_by_entry(self) -> dict[int, list[Note]]:
        """The warnings, then the lint, of each entry that has any."""
        found: dict[int, list[Note]] = {}
        for note in (*self.warnings, *self.lint):
            if note.index is not None:
                found.setdefault(note.index, []).append(note)
        return found

    def admitting_entry(self, medium: Medium | None, locality: Locality | None) -> int | None:
        """The index of the first entry that a tier which declares these meets; None if no entry does."""
        return next((index for matcher, index in self.first_entries.items() if matcher.matches(medium, locality)), None)
