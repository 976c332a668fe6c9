"""What vLLM does not say about a filter: near misses, entries that do nothing, what the writer probably meant.

Decides nothing about what a filter admits; that is `filter_model.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kvtier_cli.tiering.filter_model import KNOWN_KEYS, LOCALITIES, MEDIA, MISSING, FilterParse, Note, TierMatcher
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.wording import kind_of, nearest, shown

if TYPE_CHECKING:
    from kvtier_cli.tiering.topology import TierSpec

WORDS: Final = {"medium": ("cpu", "storage"), "locality": ("local", "remote")}
"""The words of each key, as people write them."""

MEANT: Final = {
    "medium": dict.fromkeys(("dram", "host", "memory", "ram"), "cpu")
    | dict.fromkeys(("disk", "file", "fs", "nvme", "obj", "object", "s3", "ssd"), "storage"),
    "locality": dict.fromkeys(("here", "host", "node"), "local")
    | dict.fromkeys(("cluster", "distributed", "global", "network", "shared"), "remote"),
}
"""Words that vLLM does not know, and what people mean by them (tiers of type fs and obj are storage)."""

_COMPARED = 200
"""No near miss is looked for after so many different unknown keys, or so many entries: finding one is slow."""

_SUGGESTED_ENTRIES = 20


def word_warning(index: int | None, code: str, found: object) -> Note:
    """The warning of vLLM's with that `code`, in our words, about the value that was `found`."""
    if code == "not_a_list":
        hint = f"wrap it in a list: {shown([found])}" if _is_matcher(found) else "a filter is a list of matchers"
        return Note(index, code, f"{_kind_and_value(found)} is not a list: vLLM ignores it", hint)
    if code == "not_an_object":
        return Note(index, code, f"{_kind_and_value(found)} is not an object: vLLM drops the entry")
    key = "medium" if code == "unknown_medium" else "locality"
    return Note(
        index,
        code,
        f"unknown {key} {shown(found)}: vLLM drops the entry",
        _value_hint(key, found, compare=(index or 0) < _COMPARED),
    )


def meant_value(key: str, value: str) -> str | None:
    """The word of `key` that a value which vLLM does not know probably stands for."""
    word = value.strip().lower()
    if word in WORDS[key]:
        return word
    return MEANT[key].get(word) or nearest(word, WORDS[key])


def lint_filter(parse: FilterParse) -> Iterator[Note]:
    """Notes on a filter by itself, those on the whole first, then by entry."""
    if parse.raw is MISSING or parse.raw is None:
        said = "no filter" if parse.raw is MISSING else "null is no filter"
        yield Note(None, "absent", f"{said}: every secondary tier is admitted")
    elif not isinstance(parse.raw, list):
        yield Note(None, "fails_open", "the filter fails open: it is ignored as a whole, and every tier is admitted")
    elif not parse.raw:
        yield Note(None, "deny_all", "[] admits no secondary tier: only blocks in the CPU tier are served")
    else:
        yield from _lint_list(parse, parse.raw)


def lint_tiers(parse: FilterParse, tiers: Sequence[TierSpec]) -> Iterator[Note]:
    """Notes on a filter in front of these secondary tiers: matchers that none of them meets."""
    declared = {(tier.medium, tier.locality) for tier in tiers}
    unmet = {matcher for matcher in parse.first_entries if not any(matcher.matches(*sides) for sides in declared)}
    cpu = TierMatcher(Medium.CPU)
    if unmet == {cpu} == set(parse.first_entries):
        # `cpu` alone is how people say "the primary only", and that is what it comes to here: not a fault.
        yield Note(
            parse.first_entries[cpu], "primary_only", "no secondary tier here is of medium cpu: it acts as [] does"
        )
    elif unmet:
        hint = _declared_hint(tiers)
        words = {id(matcher): f"no secondary tier here is {_side_words(matcher) or 'configured'}" for matcher in unmet}
        for entry in parse.entries:
            if id(entry.matcher) in words:
                yield Note(entry.index, "unmet", words[id(entry.matcher)], hint)


def suggest(parse: FilterParse) -> list[object] | None:
    """The filter that was probably meant, where near misses explain every fault; None where they do not."""
    if not parse.faults():
        return None
    raw = parse.raw
    if isinstance(raw, str):
        raw = {"medium": raw}
    entries = raw if isinstance(raw, list) else [raw] if _is_matcher(raw) else []
    if not entries or len(entries) > _SUGGESTED_ENTRIES:
        return None
    repaired: list[object] = []
    for entry in entries:
        fixed = _repair(entry)
        if fixed is None:
            return None
        repaired.append(fixed)
    return repaired if repaired != parse.raw else None


def _lint_list(parse: FilterParse, raw: list[object]) -> Iterator[Note]:
    firsts = parse.first_entries
    everything = firsts.get(TierMatcher())
    unknown = list(_unknown_keys(raw))
    blind = {note.index for note in unknown}
    if not firsts:
        yield Note(None, "fails_open", "the filter fails open: every entry is dropped, so every tier is admitted")
    elif blind and any(entry.matcher == TierMatcher() and entry.index in blind for entry in parse.entries):
        yield Note(
            None, "fails_open", "the filter fails open: an entry restricts nothing, since vLLM ignores its unknown keys"
        )
    if everything is None and all(
        any(matcher.matches(medium, locality) for matcher in firsts) for medium in Medium for locality in Locality
    ):
        yield Note(None, "admits_everything", "together the entries admit every tier")
    yield from sorted([*unknown, *_idle_entries(parse)], key=lambda note: note.index or 0)


def _unknown_keys(raw: list[object]) -> Iterator[Note]:
    hints: dict[str, str] = {}
    for index, entry in enumerate(raw):
        if not isinstance(entry, dict) or not (entry.keys() - set(KNOWN_KEYS)):
            continue
        for key in entry:
            if key in KNOWN_KEYS:
                continue
            text = key if isinstance(key, str) else str(key)
            hint = hints.get(text)
            if hint is None:
                near = nearest(text, KNOWN_KEYS) if len(hints) < _COMPARED else None
                hint = f'did you mean "{near}"?' if near else "vLLM ignores it; known are medium, locality"
                hints[text] = hint
            yield Note(index, "unknown_key", f"unknown key {shown(text)}", hint)


def _idle_entries(parse: FilterParse) -> Iterator[Note]:
    """Entries that admit everything, repeat another or add nothing to a wider one; and what `cpu` means."""
    firsts = parse.first_entries
    facts = {id(matcher): (first, _cover(matcher, firsts)) for matcher, first in firsts.items()}
    cpu = next((index for matcher, index in firsts.items() if matcher.medium is Medium.CPU), None)
    for entry in parse.entries:
        index, matcher = entry.index, entry.matcher
        if matcher is None:
            continue
        first, cover = facts[id(matcher)]
        if first != index:
            yield Note(index, "duplicate", f"says the same as entry {first}")
        elif cover is not None:
            yield Note(index, "covered", f"adds nothing: entry {cover} already admits all that it admits")
        elif matcher == TierMatcher():
            yield Note(index, "admits_everything", "restricts nothing: admits every tier")
        if index == cpu:
            yield Note(
                index, "cpu_secondary_only", "cpu means secondary tiers of that medium; the CPU tier is never filtered"
            )


def _cover(matcher: TierMatcher, firsts: dict[TierMatcher, int]) -> int | None:
    """The first entry with a wider matcher, one that leaves out a side that `matcher` sets."""
    wider = {
        TierMatcher(medium, locality) for medium in {matcher.medium, None} for locality in {matcher.locality, None}
    } - {matcher}
    return min((firsts[other] for other in wider if other in firsts), default=None)


def _value_hint(key: str, found: object, *, compare: bool) -> str:
    words = WORDS[key]
    if isinstance(found, str):
        other = "locality" if key == "medium" else "medium"
        if found.strip() != found and found.strip().lower() in words:
            return f'spaces count, write "{found.strip().lower()}"'
        if found.upper() in (MEDIA if other == "medium" else LOCALITIES):
            return f'{shown(found)} is a {other}, write {{"{other}":"{found.lower()}"}}'
        if compare and (meant := meant_value(key, found)):
            return f'did you mean "{meant}"?'
    return f'a {key} is "{words[0]}" or "{words[1]}"'


def _repair(entry: object) -> dict[str, object] | None:
    if isinstance(entry, str):
        meant = meant_value("medium", entry)
        return {"medium": meant} if meant else None
    if not isinstance(entry, dict):
        return None
    fixed: dict[str, object] = {}
    for key, value in entry.items():
        known = key if key in KNOWN_KEYS else nearest(key, KNOWN_KEYS) if isinstance(key, str) else None
        if known is None or known in fixed:
            return None
        if value is None or (isinstance(value, str) and value.upper() in (MEDIA if known == "medium" else LOCALITIES)):
            fixed[known] = value
            continue
        if not isinstance(value, str):
            return None
        if value.upper() in (*MEDIA, *LOCALITIES):
            known, meant = "medium" if value.upper() in MEDIA else "locality", value.lower()
        else:
            meant = meant_value(known, value) or ""
        if not meant or known in fixed:
            return None
        fixed[known] = meant
    return fixed


def _is_matcher(found: object) -> bool:
    return isinstance(found, dict) and any(
        key in KNOWN_KEYS or (isinstance(key, str) and nearest(key, KNOWN_KEYS)) for key in found
    )


def _kind_and_value(found: object) -> str:
    kind = kind_of(found)
    return kind if kind in ("null", "true", "false") else f"{kind} ({shown(found)})"


def _side_words(sides: TierMatcher | TierSpec) -> str:
    return " and ".join(side.value.lower() for side in (sides.medium, sides.locality) if side is not None)


def _declared_hint(tiers: Sequence[TierSpec]) -> str | None:
    if not tiers:
        return None
    # A tier that declares nothing meets every matcher, so each of these declares something.
    told = [f"{shown(tier.name)} is {_side_words(tier)}" for tier in tiers[:4]]
    return ", ".join(told) + (f" and {len(tiers) - 4} more" if len(tiers) > 4 else "")
