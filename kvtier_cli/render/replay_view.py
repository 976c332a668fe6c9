"""A replay for people: what was served first, then the outcomes, then the tiers. JSON has all figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.facts import facts, joined
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.replay.reasons import joined as listed
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.token_caps import LOAD_KEY, OFFLOAD_KEY
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology
from kvtier_cli.units import format_size
from kvtier_cli.wording import count

BAR = 25
_USUAL = "mooncake"
"""The format of traces that goes without saying."""
_SKIPPED = 3
_RULES = 3
_BEHIND = "behind the first block not served"


def replay_lines(
    names: Sequence[str],
    figures: Mapping[str, Any],
    topology: Topology,
    parse: FilterParse | None,
    block_tokens: int,
    out: Output,
    seconds: Mapping[str, float] | None = None,
    *,
    formats: Sequence[str] = (),
    own_filters: bool = False,
    rules: Sequence[str] = (),
    groups: Iterable[str] = (),
) -> Iterator[str]:
    """The text of one run of `kvtier replay`, line by line. `parse` is the filter of all requests; None where each had
    its own, if any had one (`own_filters`). `formats` are those of the traces. `rules` say in words which requests had
    another filter; `groups` are the lines of a table of groups."""
    load_filter = _filter(parse, topology, out) if parse is not None else "own filters" if own_filters else "no filter"
    yield from facts(_heading(names, formats, figures, topology, load_filter, rules, block_tokens, out), out)
    served, blocks = figures["blocks_loaded"], figures["blocks"]
    share = f", {_percent(served, blocks)} of all" if blocks else ""
    yield from wrapped(f"served {served:,} of {blocks:,} blocks{share}", out, style="bold")
    yield ""
    yield from _outcome_lines(figures, out)
    yield ""
    yield from _tier_lines(figures, topology, out)
    yield ""
    yield from groups
    yield from _remarks(figures, out)
    if seconds is not None:
        yield from facts([f"{name} {value:.2f} s" for name, value in seconds.items()], out, indent=2)
    yield from wrapped(SCOPE, out, indent=2, style="muted")


def _heading(
    names: Sequence[str],
    formats: Sequence[str],
    figures: Mapping[str, Any],
    topology: Topology,
    load_filter: str,
    rules: Sequence[str],
    block_tokens: int,
    out: Output,
) -> list[str]:
    at_most = max(20, out.width // 2)
    title = out.shorten(plain(names[0]), at_most)
    return [
        title if len(names) == 1 else f"{title} and {len(names) - 1} more, joined",
        *([f"format {listed(list(dict.fromkeys(formats)))}"] if set(formats) - {_USUAL} else []),
        count(figures["requests"], "request"),
        f"{count(figures['blocks'], 'block')} of {count(block_tokens, 'token')}",
        load_filter,
        *(out.shorten(plain(rule), at_most) for rule in rules[:_RULES]),
        *([f"{count(len(rules) - _RULES, 'more rule')}"] if len(rules) > _RULES else []),
        out.shorten(plain(topology.name), at_most),
    ]


def _filter(parse: FilterParse, topology: Topology, out: Output) -> str:
    """The filter of all requests, and which tiers it never lets them ask; of deny that goes without saying."""
    text = f"filter {parse.filter.short()}"
    skipped = [tier.name for tier in topology.tiers if not parse.filter.admits(tier.medium, tier.locality)]
    if not skipped or not parse.filter.matchers:
        return text
    more = [f"{len(skipped) - _SKIPPED:,} more"] if len(skipped) > _SKIPPED + 1 else []
    shown = skipped[:_SKIPPED] if more else skipped
    return f"{text} (skips {listed([*(_name(name, out) for name in shown), *more])})"


def _outcome_lines(figures: Mapping[str, Any], out: Output) -> Iterator[str]:
    blocks = figures["blocks"]
    counts = {name: number for name, number in figures["outcomes"].items() if number}
    most = max(counts.values(), default=1)
    rows = [["", "outcome", "blocks", "of all", "", ""]]
    details = [_details(name, figures, out) for name in counts]
    for (name, number), more in zip(counts.items(), details, strict=True):
        bar = "#" * max(1, round(BAR * number / most))
        rows.append(
            [
                out.style(out.symbol(name), name),
                name,
                f"{number:,}",
                _percent(number, blocks),
                out.style(bar, name) if name != "filtered" else bar,
                reduce(joined, more, ""),
            ]
        )
    lines = columns(rows, "<<>>", gap=1)
    if max(map(cell_width, lines)) <= out.width:
        yield from lines
        return
    lines = columns([row[:5] for row in rows], "<<>>", gap=1)
    if max(map(cell_width, lines)) > out.width:
        lines = columns([row[:4] for row in rows], "<<>>", gap=1)
    yield lines[0]
    for more, line in zip(details, lines[1:], strict=True):
        yield line
        if more:
            yield from facts(more, out, indent=6)


def _details(name: str, figures: Mapping[str, Any], out: Output) -> list[str]:
    """Where the blocks of an outcome came from, or are."""
    parts = {
        "promoted": _parts(figures["served_by_tier"], out, leave_out=PRIMARY_NAME),
        "filtered": _parts(figures["filtered_by_tier"], out, "in "),
        "denied": _parts(figures["denied_by_tier"], out, "hit in "),
        "absent": _parts(figures["absent_by_reason"], out),
        "unreached": _unreached(figures, out),
    }
    return parts.get(name, [])


def _parts(counts: Mapping[str, int], out: Output, word: str = "", *, leave_out: str | None = None) -> list[str]:
    return [f"{word}{_name(name, out)} {number:,}" for name, number in counts.items() if number and name != leave_out]


def _unreached(figures: Mapping[str, Any], out: Output) -> list[str]:
    held = figures["unreached_held_by_tier"]
    nowhere = figures["outcomes"]["unreached"] - sum(held.values())
    behind = f"{_BEHIND}, or a cap" if figures["unreached_capped"] else _BEHIND
    return [f"{behind}:", *_parts(held, out, "held by "), *([f"not stored {nowhere:,}"] if nowhere else [])]


def _name(name: str, out: Output) -> str:
    return out.shorten(plain(name), NAME_WIDTH)


def _tier_lines(figures: Mapping[str, Any], topology: Topology, out: Output) -> Iterator[str]:
    """One row a tier. What does not fit goes: first what it declares, then what says least here."""
    heads = ["tier", "medium", "locality", "asked", "hits", "of asked", "of all", "skipped", "promoted", "resident"]
    rows = [_tier_row(figures, PRIMARY_NAME, "primary", "", topology.primary.capacity, out)]
    for tier in topology.tiers:
        rows.append(
            _tier_row(figures, tier.name, _word(tier.medium, out), _word(tier.locality, out), tier.capacity, out)
        )
    if figures["bytes"] is not None:
        heads += ["read", "written"]
        rows[0] += ["", ""]
        for row, tier in zip(rows[1:], topology.tiers, strict=True):
            moved = figures["bytes"][tier.name]
            row += [format_size(moved["read"]), format_size(moved["written"])]
    table = [heads, *rows]
    lines: list[str] = []
    for shown, shrink in _ever_fewer(len(heads), skipped=any(figures["skipped_by_tier"].values())):
        cells = [[row[at] for at in shown] for row in table]
        align = "".join("<" if at <= 2 else ">" for at in shown)
        lines = columns(cells, align, shrink=shrink, width=out.width, mark="…" if out.unicode else "..")
        if max(map(cell_width, lines)) <= out.width:
            break
    yield from lines


def _ever_fewer(count: int, *, skipped: bool) -> Iterator[tuple[list[int], int | None]]:
    """The columns to show, and which of them may be shortened: at last the names, before the bytes go too."""
    shown = list(range(count))
    yield shown, None
    for gone in (1, 2, 8, 4, 9, 5, 7) if skipped else (1, 2, 7, 8, 4, 9, 5):
        shown.remove(gone)
        yield shown, None
    yield shown, 0
    for gone in (11, 10, 3):
        if gone in shown:
            shown.remove(gone)
            yield shown, 0


def _tier_row(
    figures: Mapping[str, Any], name: str, medium: str, locality: str, capacity: int | None, out: Output
) -> list[str]:
    primary = medium == "primary"
    blocks = figures["blocks"]
    asked = figures["lookups"] if primary else figures["asked_by_tier"][name]
    hits = figures["primary_hits"] if primary else figures["hits_by_tier"][name]
    resident = figures["resident"]["primary" if primary else name]
    return [
        _name(name, out),
        medium,
        locality,
        f"{asked:,}",
        f"{hits:,}",
        _percent(hits, asked),
        _percent(figures["served_by_tier"][name], blocks),
        "" if primary else f"{figures['skipped_by_tier'][name]:,}",
        "" if primary else f"{figures['promoted_by_tier'][name]:,}",
        f"{resident:,}" + ("" if capacity is None else f"/{capacity:,}"),
    ]


def _remarks(figures: Mapping[str, Any], out: Output) -> Iterator[str]:
    """What stands out, and what was not computed."""
    lost = figures["lost_to_filter"]
    if lost:
        yield from wrapped(
            f"lost to the filter: {count(lost, 'block')} (an upper bound: admitting them changes evictions)",
            out,
            indent=2,
        )
    if figures["requests_capped"]:
        caps = [f"{count(figures['requests_capped'], 'request')} with {LOAD_KEY} or {OFFLOAD_KEY}"]
        if figures["unreached_capped"]:
            caps.append(f"{count(figures['unreached_capped'], 'block')} behind them not looked up")
        if figures["unstored_capped"]:
            caps.append(f"{figures['unstored_capped']:,} not stored")
        yield from facts(caps, out, indent=2)
    if figures["stores_refused"]:
        yield from wrapped(
            f"stores refused: {figures['stores_refused']:,}, the primary had no slots to give", out, indent=2
        )
    if figures["promotions_failed"]:
        failed = [f"promotions failed: {figures['promotions_failed']:,}", *_parts(figures["failed_by_tier"], out)]
        yield from facts(failed, out, indent=2)
    if figures["gave_up"]:
        yield from wrapped(
            f"requests that gave up waiting: {figures['gave_up']:,}; vLLM would wait for ever", out, indent=2
        )
    if figures["evicted_unread"]:
        yield from wrapped(f"promoted and evicted unread: {count(figures['evicted_unread'], 'block')}", out, indent=2)
    if figures["bytes"] is None:
        yield from wrapped("bytes: not known (give block.bytes_per_token)", out, indent=2)


def _word(declared: Medium | Locality | None, out: Output) -> str:
    return out.symbol("none") if declared is None else declared.value.lower()


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""
