"""What a replay's figures were held to, for people and for `--json`: a line a demand, a table of what left the
baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.replay.baseline import BaselineResult, Compared
from kvtier_cli.replay.checks import CheckedRun, Checks
from kvtier_cli.replay.figure_expr import Expression, Judged
from kvtier_cli.replay.figure_names import Figure, Kind
from kvtier_cli.units import format_size
from kvtier_cli.wording import count

MOST = 20
"""Figures shown of those that left the baseline; `--verbose` and `--json` have them all."""


def check_lines(checked: CheckedRun, checks: Checks, out: Output) -> Iterator[str]:
    """A line a demand with what was found, then the baseline and the figures that are too far from it."""
    rows = []
    for expression, judged in checked.asserts:
        rows.append([verdict(judged.holds, out), plain(expression.text), found_words(expression.figure, judged)])
    if checked.baseline is not None and checks.baseline is not None:
        told = baseline_words(checked.baseline, checks.tolerance.text)
        passed = not checked.baseline.differences
        rows.append([verdict(passed, out), f"baseline {plain(checks.baseline.file)}", told])
    lines = columns(rows)
    if max(map(cell_width, lines), default=0) <= out.width:
        yield from lines
    else:
        for head, what, told in rows:
            yield from wrapped(f"{head}  {what}", out, indent=2)
            yield from wrapped(told, out, indent=8)
    if checked.baseline is not None and checked.baseline.differences:
        yield from _difference_lines(checked.baseline.differences, out)


def verdict(passed: bool, out: Output) -> str:
    """`ok` or `FAIL`, as of a fixture."""
    return out.style("ok  ", "good") if passed else out.style("FAIL", "bad")


def found_words(figure: Figure, judged: Judged) -> str:
    """The figure that was found, and its share of the whole where it has one."""
    if judged.found is None:
        return "found none: nothing was there to take a share of"
    return f"found {_figure_words(figure, judged.found, judged.share)}"


def difference_words(figure: Figure, judged: Judged) -> str:
    """A difference that was found, with its sign."""
    if judged.found is None:
        return "not known"
    points = "" if judged.share is None else points_words(judged.share, figure)
    if figure.kind is Kind.RATE:
        return points
    amount = signed(figure, judged.found)
    return f"{amount}, {points}" if points else amount


def points_words(share: float, figure: Figure) -> str:
    """`-1.8 points of all`; of all requests, or of a rate, where it is one of these."""
    whole = {Kind.REQUESTS: " of all requests", Kind.RATE: ""}.get(figure.kind, " of all")
    return f"{100 * share:+.1f} points{whole}"


def signed(figure: Figure, number: int | float) -> str:
    """A difference with its sign; 0 has none."""
    if figure.kind is Kind.BYTES:
        sign = "-" if number < 0 else "+" if number else ""
        return f"{sign}{format_size(abs(number))}"
    return f"{number:+,}" if number else "0"


def _figure_words(figure: Figure, number: int | float, share: float | None) -> str:
    if figure.kind is Kind.RATE:
        return f"{100 * number:.1f} %"
    if figure.kind is Kind.BYTES:
        return format_size(number)
    of = " of all requests" if figure.kind is Kind.REQUESTS else " of all"
    return f"{number:,}" if share is None else f"{number:,}, {100 * share:.1f} %{of}"


def baseline_words(result: BaselineResult, tolerance: str) -> str:
    """How many figures were compared, and how many are too far."""
    compared, away = len(result.compared), len(result.differences)
    within = tolerance.strip("0.") == ""
    if not away:
        return f"all {count(compared, 'figure')} {'equal' if within else f'within {plain(tolerance)}'}"
    differ = f"{away:,} of {count(compared, 'figure')} {'differs' if away == 1 else 'differ'}"
    return differ if within else f"{differ} by more than {plain(tolerance)}"


def compared_words(each: Compared) -> str:
    """One figure beside the baseline's, in a line."""
    now = _amount(each.figure, each.found)
    return f"{each.figure.name}: baseline {_amount(each.figure, each.baseline)}, found {now}"


def _amount(figure: Figure, number: int | float | None) -> str:
    return "none" if number is None else _figure_words(figure, number, None)


def _difference_lines(differences: Sequence[Compared], out: Output) -> Iterator[str]:
    shown = differences if out.verbose else differences[:MOST]
    rows = [["figure", "baseline", "found", "delta", "points"]]
    for each in shown:
        delta = "" if each.delta is None or each.figure.kind is Kind.RATE else signed(each.figure, each.delta)
        points = "" if each.points is None else f"{100 * each.points:+.1f}"
        before, now = _amount(each.figure, each.baseline), _amount(each.figure, each.found)
        rows.append([plain(each.figure.name), before, now, delta, points])
    lines = columns(rows, "<>>>>", indent=8)
    if max(map(cell_width, lines)) > out.width:
        mark = "…" if out.unicode else ".."
        lines = columns([row[:4] for row in rows], "<>>>", gap=1, shrink=0, width=out.width, mark=mark)
    yield from lines
    if len(shown) < len(differences):
        yield f"        and {len(differences) - len(shown):,} more (-v shows all)"


def checks_as_json(checked: CheckedRun, checks: Checks) -> dict[str, Any]:
    """`asserts` and `baseline` of a run, each only where it was asked for."""
    found: dict[str, Any] = {}
    if checked.asserts:
        found["asserts"] = [assert_as_json(expression, judged) for expression, judged in checked.asserts]
    if checked.baseline is not None and checks.baseline is not None:
        found["baseline"] = {
            "file": checks.baseline.file,
            "tolerance": checks.tolerance.text,
            "compared": len(checked.baseline.compared),
            "differences": [
                {
                    "figure": each.figure.name,
                    "baseline": each.baseline,
                    "found": each.found,
                    "delta": each.delta,
                    "share_delta": each.points,
                }
                for each in checked.baseline.differences
            ],
            "notes": checked.baseline.notes,
        }
    return found


def assert_as_json(expression: Expression, judged: Judged) -> dict[str, Any]:
    """A demand, the figure that it is about, and what was found."""
    return {
        "expression": expression.text,
        "figure": expression.figure.name,
        "found": judged.found,
        "share": judged.share,
        "holds": judged.holds,
    }
