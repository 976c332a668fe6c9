"""A comparison for people: who serves more, figures side by side with their differences, the requests that differ."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_cli.render.checks_view import difference_words, found_words, verdict
from kvtier_cli.render.compare_rows import Measure, Row, rows_of
from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.facts import facts
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.replay.compare import LETTERS, Difference, Differences, Span
from kvtier_cli.replay.compare_checks import FailOn
from kvtier_cli.replay.figure_expr import Judged
from kvtier_cli.replay.reasons import joined
from kvtier_cli.units import format_size
from kvtier_cli.wording import count

BAR = 10
_HEAD_WIDTH = 16
_SPANS = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the text says: `labels` tell the variants apart, `common` is what they share, `block_bytes` the size of
    a block where every variant has the same; `remote_reads` are None where they are not known. `explains`: for each
    variant the command that tells a request's story, without its number; None where there is none."""

    title: str
    labels: Sequence[str]
    common: Sequence[str]
    figures: Sequence[Mapping[str, Any]]
    remote_reads: Sequence[int | None]
    block_tokens: int
    block_bytes: int | None
    differences: Differences
    page: Sequence[Difference]
    offset: int
    explains: Sequence[str | None]
    judged: Sequence[tuple[FailOn, list[tuple[str, Judged]]]]


def compare_lines(shown: Shown, out: Output) -> Iterator[str]:
    """The text of `kvtier compare`, line by line."""
    first = shown.figures[0]
    at_most = max(20, out.width // 2)
    blocks = f"{count(first['blocks'], 'block')} of {count(shown.block_tokens, 'token')}"
    common = [out.shorten(plain(text), at_most) for text in shown.common]
    title = out.shorten(plain(shown.title), at_most)
    yield from facts([title, count(first["requests"], "request"), blocks, *common], out)
    yield from wrapped(_answer(shown), out, style="bold")
    yield ""
    yield from _table(shown, out)
    yield from _remote(shown, out)
    yield ""
    yield from _requests(shown, out)
    if shown.judged:
        yield ""
        yield from _verdicts(shown, out)
    yield ""
    yield from wrapped(SCOPE, out, indent=2, style="muted")


def _answer(shown: Shown) -> str:
    served = [one["blocks_loaded"] for one in shown.figures]
    blocks = shown.figures[0]["blocks"]
    if len(set(served)) == 1:
        both = "A and B serve" if len(served) == 2 else "All serve"
        return f"{both} the same, {_of(served[0], blocks)}."
    best = max(range(len(served)), key=lambda index: (served[index], -index))
    fewer = []
    for index, number in enumerate(served):
        behind = served[best] - number
        points = "" if not blocks else f" ({-100 * behind / blocks:.1f} points)"
        if behind:
            fewer.append(f"{LETTERS[index]} {behind:,} fewer{points}")
    most = "more" if len(served) == 2 else "most"
    all_best = [letter for letter, number in zip(LETTERS, served, strict=False) if number == served[best]]
    who = f"{joined(all_best)} {'serves' if len(all_best) == 1 else 'serve'}"
    return f"{who} {most}, {_of(served[best], blocks)}; {', '.join(fewer)}."


def _of(part: int, whole: int) -> str:
    share = f", {100 * part / whole:.1f} % of all" if whole else ""
    return f"{part:,} of {count(whole, 'block')}{share}"


def _table(shown: Shown, out: Output) -> Iterator[str]:
    """With two variants figures and differences side by side, else the differences below. What does not fit goes: the
    bar, the points, the notes, at last the names in the heads."""
    rows = rows_of(shown.figures)
    labels = [plain(label) for label in shown.labels]
    heads = [f"{letter} {label}" for letter, label in zip(LETTERS, labels, strict=False)]
    if len(heads) > 2 or max(map(cell_width, heads)) > _HEAD_WIDTH:
        for letter, label in zip(LETTERS, labels, strict=False):
            yield f"  {letter}  {out.shorten(label, out.width - 5)}"
        yield ""
        heads = list(LETTERS[: len(labels)])
    if len(heads) == 2:
        yield from _pair(rows, heads, shown.figures, out)
        return
    values = [[_amount(row, value) for value in row.values] for row in rows]
    deltas = [[_signed(row, value - row.values[0]) for value in row.values[1:]] for row in rows]
    yield from _grid(rows, heads, values, out)
    yield ""
    yield from _grid(rows, [f"{letter} - A" for letter in heads[1:]], deltas, out)


def _grid(rows: Sequence[Row], heads: Sequence[str], cells: Sequence[Sequence[str]], out: Output) -> Iterator[str]:
    """As many columns at once as fit, the rest below."""
    start, width = 0, len(heads)
    while start < len(heads):
        part = slice(start, start + width)
        table = [["", *heads[part]], *([_label(row, out), *line[part]] for row, line in zip(rows, cells, strict=True))]
        lines = columns(table, "<" + ">" * width)
        if max(map(cell_width, lines)) > out.width:
            if width > 1:
                width -= 1
                continue
            lines = columns(table, "<>", shrink=0, width=out.width, mark="…" if out.unicode else "..")
        if start:
            yield ""
        yield lines[0]
        yield from (_toned(line, row, out) for line, row in zip(lines[1:], rows, strict=True))
        start += width


def _pair(
    rows: Sequence[Row], heads: Sequence[str], figures: Sequence[Mapping[str, Any]], out: Output
) -> Iterator[str]:
    most = max((abs(row.values[1] - row.values[0]) for row in rows if row.measure is Measure.SHARE), default=0)
    table = [["", *heads, "B - A", "points", "", ""]]
    for row in rows:
        one, other = row.values
        points = _points(row, figures)
        bar = _bar(other - one, most) if row.measure is Measure.SHARE else ""
        note = f"({row.note})" if row.note and not row.equal else ""
        table.append([_label(row, out), *(_amount(row, value) for value in row.values), _signed(row, other - one)])
        table[-1] += [points, bar, note]
    lines: list[str] = []
    noted = True
    for used in (7, 6, 5, 4):
        noted = used == 7
        lines = columns([row[:used] for row in table], "<>>>><<")
        if max(map(cell_width, lines)) <= out.width:
            break
    if max(map(cell_width, lines)) > out.width:
        yield from _grid(rows, ["A", "B"], [row[1:3] for row in table[1:]], out)
        yield ""
        yield from _grid(rows, ["B - A"], [row[3:4] for row in table[1:]], out)
    else:
        yield lines[0]
        yield from (_toned(line, row, out) for line, row in zip(lines[1:], rows, strict=True))
    remarks = [f"{row.label}: {row.note}" for row in rows if row.note and not row.equal]
    if remarks and not noted:
        yield from wrapped("; ".join(remarks), out, indent=2, style="muted")


def _points(row: Row, figures: Sequence[Mapping[str, Any]]) -> str:
    """The difference of the shares of all blocks: of each variant's, which a dropped tail may make fewer."""
    if row.measure is not Measure.SHARE or row.equal or not all(one["blocks"] for one in figures):
        return ""
    one, other = (100 * value / each["blocks"] for value, each in zip(row.values, figures, strict=True))
    text = f"{other - one:+.1f}"
    return text[1:] if text[1:] == "0.0" else text


def _bar(delta: int, most: int) -> str:
    return ("-" if delta < 0 else "+") * (max(1, round(BAR * abs(delta) / most)) if delta else 0)


def _label(row: Row, out: Output) -> str:
    symbol = ""
    if row.symbol:  # in grey where all have the same
        symbol = f"{out.symbol(row.symbol) if row.equal else out.style(out.symbol(row.symbol), row.symbol)} "
    tier = f" {out.shorten(plain(row.tier), NAME_WIDTH)}" if row.tier else ""
    return f"{symbol}{row.label}{tier}"


def _toned(line: str, row: Row, out: Output) -> str:
    if row.main:
        return out.style(line, "bold")
    return out.style(line, "muted") if row.equal else line


def _amount(row: Row, value: int) -> str:
    return format_size(value) if row.measure is Measure.BYTES else f"{value:,}"


def _signed(row: Row, delta: int) -> str:
    if not delta:
        return "0"
    if row.measure is Measure.BYTES:
        return f"{'-' if delta < 0 else '+'}{format_size(abs(delta))}"
    return f"{delta:+,}"


def _requests(shown: Shown, out: Output) -> Iterator[str]:
    differences, first = shown.differences, shown.figures[0]
    if not differences.requests:
        yield from wrapped("No request differs: every block ends in the same way.", out, indent=2)
        return
    differ = f"{differences.requests:,} of {count(first['requests'], 'request')} differ"
    told = [f"{differ}, in {count(differences.blocks, 'block')}"]
    for letter, against in list(zip(LETTERS, differences.against_first, strict=False))[1:]:
        same = against.differ - against.fewer - against.more
        parts = [(against.fewer, "fewer blocks"), (against.more, "more blocks"), (same, "as many in another way")]
        counted = [f"{words} in {number:,}" for number, words in parts if number]
        told.append(f"{letter} serves {', '.join(counted)}" if counted else f"{letter} differs in none")
    yield from wrapped("; ".join(told) + "." + (" Worst first:" if shown.page else ""), out, indent=2)
    width = max((len(f"r{each.number}") for each in shown.page), default=0)
    for each in shown.page:
        name = f"r{each.number}"
        change = f"{each.change:+,}" if each.change else "0"
        if len(each.served) > 2:
            change += f" ({LETTERS[each.furthest]})"
        own = "" if each.label is None or each.label == name else f"   {out.shorten(plain(each.label), NAME_WIDTH)}"
        yield f"  {name:<{width}}  {change}{own}"
        for letter, spans in zip(LETTERS, each.spans, strict=False):
            yield from wrapped(f"{letter}  {_spans(spans, out)}", out, indent=6)
    hidden = differences.requests - len(shown.page)
    if hidden and shown.page:
        after = shown.offset + len(shown.page)
        more = f"--offset {after}" if after < differences.requests else "--offset 0"
        yield f"  and {hidden:,} more ({more}, --limit N)"
    explain = shown.explains[shown.page[0].furthest] if shown.page else None
    if explain is not None:
        request = shlex.quote(shown.page[0].label or str(shown.page[0].number))
        yield from wrapped(f"why: {plain(f'{explain} --request {request}')}", out, indent=2)


def _spans(spans: Sequence[Span], out: Output) -> str:
    """`■ 5  ▲ 36 s3  □ 1  · 12`: how many blocks ended how, from the start of the prompt."""
    parts = []
    start = 0
    for span in spans[:_SPANS]:
        tier = f" {out.shorten(plain(span.tier), NAME_WIDTH)}" if span.tier else ""
        symbol = out.style(out.symbol(span.outcome.value), span.outcome.value)
        parts.append(f"{symbol} {span.stop - start:,}{tier}")
        start = span.stop
    if len(spans) > _SPANS:
        parts.append(f"and {len(spans) - _SPANS:,} more runs of blocks")
    return "  ".join(parts)


def _remote(shown: Shown, out: Output) -> Iterator[str]:
    first = shown.remote_reads[0]
    for letter, reads in list(zip(LETTERS, shown.remote_reads, strict=False))[1:]:
        change = 0 if reads is None or first is None else reads - first
        if change:
            size = "" if shown.block_bytes is None else f", {format_size(abs(change) * shown.block_bytes)}"
            does = "avoids" if change < 0 else "costs"
            more = "" if change < 0 else " more"
            text = f"{letter} {does} {count(abs(change), 'block')}{more} read from remote tiers{size}."
            yield from wrapped(text, out, indent=2)
    if shown.block_bytes is None and any(one["bytes"] is None for one in shown.figures):
        yield from wrapped("bytes: not known (give block.bytes_per_token)", out, indent=2)


def _verdicts(shown: Shown, out: Output) -> Iterator[str]:
    rows = []
    for fail_on, judged in shown.judged:
        for name, each in judged:
            figure = fail_on.expression.figure
            told = difference_words(figure, each) if fail_on.delta else found_words(figure, each)
            rows.append([verdict(not each.holds, out), f"fail on {plain(fail_on.expression.text)}", f"{name}: {told}"])
    lines = columns(rows)
    if max(map(cell_width, lines)) <= out.width:
        yield from lines
        return
    for head, what, told in rows:
        yield from wrapped(f"{head}  {what}", out, indent=2)
        yield from wrapped(told, out, indent=8)
