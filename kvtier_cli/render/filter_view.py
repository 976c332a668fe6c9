"""A filter as vLLM reads it, for people: the verdict first, then each entry, then each tier. JSON: `filter_json.py`."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, noted_table, wrapped
from kvtier_cli.tiering.filter_lint import suggest
from kvtier_cli.tiering.filter_reasons import PRIMARY_REASON, matcher_words, tier_reason
from kvtier_cli.tiering.filters import ALL, MISSING, FilterParse, Note
from kvtier_cli.tiering.topology import PRIMARY_NAME, Tiers
from kvtier_cli.wording import kind_of, shown

ROWS = 12
"""Entries that the text shows; JSON has all."""

_NAMES = 4
_ENTRY_CHARACTERS = 120


def filter_lines(parse: FilterParse, topology: Tiers, form: str, out: Output) -> Iterator[str]:
    """The text of `kvtier filter`, line by line, at most `out.width` wide where its words allow."""
    yield from wrapped(_headline(parse, topology, form, out), out, style="bold")
    for note in (*parse.warnings, *parse.lint):
        if note.index is None and note.code in ("not_a_list", "unknown_key"):
            yield from wrapped(_sentence(note), out, indent=2)
    if parse.entries:
        yield ""
        yield from _entry_lines(parse, out)
    yield ""
    yield from _tier_lines(parse, topology, out)
    yield ""
    count = len(parse.warnings)
    yield from wrapped(
        f"vLLM 0.33.0 would log {count:,} warning{'' if count == 1 else 's'}. The tiers are those of "
        f"{plain(_topology_words(topology))}.",
        out,
    )
    meant = suggest(parse)
    if meant is not None:
        text = json.dumps(meant, ensure_ascii=False, separators=(",", ":"))
        yield f"You probably mean:  kvtier filter {plain(shlex.quote(text))}"


def strict_line(parse: FilterParse) -> str:
    """What `--strict` adds: the faults by kind, or that there is none."""
    counts = Counter(note.code for note in parse.faults())
    if not counts:
        return "strict: no fault"
    kinds = ", ".join(f"{code} {count:,}" if count > 1 else code for code, count in counts.items())
    total = counts.total()
    return f"strict: {total:,} fault{'' if total == 1 else 's'}: {kinds}"


def _headline(parse: FilterParse, topology: Tiers, form: str, out: Output) -> str:
    raw = parse.raw
    if raw is MISSING or raw is None:
        carries = {"json": "null is no filter", "short form": "there is no filter"}
        return f"Admits every tier: {carries.get(form, 'the request carries no kv_load_tiers')}."
    if parse.filter is ALL:
        said = f"{kind_of(raw)} is not a list" if not isinstance(raw, list) else "every entry is dropped"
        return f"Admits every tier: {said}, and so the filter fails open."
    if not parse.filter.matchers:
        return "Admits no secondary tier: only blocks in the CPU tier are served."
    everything = [note for note in parse.lint if note.code == "admits_everything"]
    if everything:
        return f"Admits every tier. {_unrestricted(parse, everything[0].index)}"
    admitted = [tier.name for tier in topology.tiers if parse.filter.admits(tier.medium, tier.locality)]
    skipped = [tier.name for tier in topology.tiers if not parse.filter.admits(tier.medium, tier.locality)]
    answer = f"Admits {len(admitted)} of {len(topology.tiers)} secondary tiers"
    answer += f": {_names(admitted, out)}." if admitted else "."
    return f"{answer} Skips {_names(skipped, out)}." if skipped else answer


def _unrestricted(parse: FilterParse, index: int | None) -> str:
    if index is None:
        return "Together the entries leave none out."
    ignored = [note for note in parse.lint if note.index == index and note.code == "unknown_key"]
    subject = "Nothing in it" if len(parse.entries) == 1 else f"Entry {index}"
    verb = "restricts anything" if len(parse.entries) == 1 else "restricts nothing"
    if not ignored:
        return f"{subject} {verb}."
    key = ignored[0].message.removeprefix("unknown ")
    more = f" and {len(ignored) - 1:,} more" if len(ignored) > 1 else ""
    return f"{subject} {verb}: vLLM ignores the {key}{more}."


def _entry_lines(parse: FilterParse, out: Output) -> Iterator[str]:
    raw = parse.raw if isinstance(parse.raw, list) else []
    noted = parse.notes_by_entry
    rows = []
    for entry, value in zip(parse.entries[:ROWS], raw, strict=False):
        read_as = matcher_words(entry.matcher) if entry.matcher else "dropped"
        notes = "; ".join(_row_notes(noted.get(entry.index, ())))
        rows.append([str(entry.index), shown(value, _ENTRY_CHARACTERS), read_as, notes])
    yield from noted_table(["#", "entry", "read as", "note"], rows, out, align=">", shrink=1)
    hidden = parse.entries[ROWS:]
    if hidden:
        counts = Counter(note.code for entry in hidden for note in noted.get(entry.index, ()))
        kinds = ", ".join(f"{code} {count:,}" for code, count in counts.most_common())
        told = f", with notes on them: {kinds}" if kinds else ""
        yield from wrapped(f"and {len(hidden):,} more entries{told} (--json has them all)", out, indent=5)


def _tier_lines(parse: FilterParse, topology: Tiers, out: Output) -> Iterator[str]:
    rows = [[PRIMARY_NAME, "primary", "", PRIMARY_REASON]]
    for tier in topology.tiers:
        medium = tier.medium.value.lower() if tier.medium else out.symbol("none")
        locality = tier.locality.value.lower() if tier.locality else out.symbol("none")
        why = tier_reason(parse, tier)
        if parse.filter.admits(tier.medium, tier.locality):
            verdict = f"{out.style('admitted', 'good')}{' ' if why.startswith('by ') else ': '}{why}"
        else:
            verdict = f"{out.style('SKIPPED', 'filtered')}: {why}"
        rows.append([out.shorten(plain(tier.name), NAME_WIDTH), medium, locality, verdict])
    yield from noted_table(["tier", "medium", "locality", "under this filter"], rows, out)


def _row_notes(notes: Sequence[Note]) -> Iterator[str]:
    blind = any(note.code == "unknown_key" for note in notes)
    for note in notes:
        # What an unknown key makes of an entry is the headline; the tiers of an unmet one are in the table below.
        if not (blind and note.code == "admits_everything"):
            yield f"{note.message}, {note.hint}" if note.hint and note.code != "unmet" else note.message


def _sentence(note: Note) -> str:
    text = f"{note.message[:1].upper()}{note.message[1:]}"
    return f"{text}; {note.hint}" if note.hint else f"{text}."


def _names(names: Sequence[str], out: Output) -> str:
    more = len(names) - _NAMES
    told = ", ".join(out.shorten(plain(name), NAME_WIDTH) for name in names[:_NAMES])
    return f"{told} and {more:,} more" if more > 0 else told


def _topology_words(topology: Tiers) -> str:
    # The built-in and the inline topology are no names of files.
    return f"the {topology.name}" if topology.name.endswith(" topology") else topology.name
