"""Scripted fixtures for people: a line a fixture, below it what came out otherwise than expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kvtier_cli.render.console import Output, cell_width, columns, plain
from kvtier_cli.render.mismatch_view import mismatch_text
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.render.state_view import whole_state_lines
from kvtier_cli.replay.fixture_run import FixtureReport, Mismatch
from kvtier_cli.wording import count

MOST = 10
"""Mismatches shown of one fixture; `--verbose` and `--json` have them all."""


def report_lines(
    reports: Sequence[FixtureReport], out: Output, states: Sequence[Mapping[int, Mapping[str, Any]]]
) -> Iterator[str]:
    """A line a fixture: verdict, file, title where the width allows, how much was checked; then what failed in it.

    `states` has, for each fixture, the states of its failed ops that are to be shown.
    """
    rows = []
    for report in reports:
        counted = count(report.ops, "op")
        if report.expectations:
            counted += f", {count(report.expectations, 'expectation')}"
        verdict = out.style(report.verdict, "bad" if report.mismatches else "good")
        rows.append([verdict, plain(report.file), plain(report.title), counted])
    mark = "…" if out.unicode else ".."
    lines = columns(rows, indent=0)
    if any(cell_width(line) > out.width for line in lines):
        lines = columns([row[:2] + row[3:] for row in rows], indent=0, shrink=1, width=out.width, mark=mark)
    for line, report, kept in zip(lines, reports, states, strict=True):
        yield line
        yield from _mismatch_lines(report, out, kept)
    failed = sum(bool(report.mismatches) for report in reports)
    if failed:
        yield f"{failed:,} of {count(len(reports), 'fixture')} failed."
    elif len(reports) > 1:
        yield f"{count(len(reports), 'fixture')}, none failed."


def _mismatch_lines(report: FixtureReport, out: Output, states: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """What was expected and what was found, the first `MOST` places, with the states of their ops if there are any."""
    shown = report.mismatches if out.verbose else report.mismatches[:MOST]
    told: set[int] = set()
    for mismatch in shown:
        yield from wrapped(mismatch_words(report.file, mismatch, out), out, indent=2)
        if mismatch.op in states and mismatch.op not in told:
            told.add(mismatch.op)
            yield from whole_state_lines(states[mismatch.op], out, indent=6)
    hidden = len(report.mismatches) - len(shown)
    if hidden:
        yield f"  and {hidden:,} more (-v shows all)"


def fixtures_document(reports: Sequence[FixtureReport]) -> dict[str, Any]:
    """The body of `kvtier replay --json` for fixtures."""
    failed = sum(bool(report.mismatches) for report in reports)
    return {
        "fixtures": [
            {
                "file": report.file,
                "title": report.title,
                "verdict": report.verdict,
                "passed": not report.mismatches,
                "ops": report.ops,
                "expectations": report.expectations,
                "failures": [
                    {
                        "line": mismatch.line,
                        "op": mismatch.op,
                        "what": mismatch.what,
                        "path": mismatch.path,
                        "expected": mismatch.expected,
                        "found": mismatch.found,
                        "remark": mismatch.remark,
                    }
                    for mismatch in report.mismatches
                ],
            }
            for report in reports
        ],
        "passed": len(reports) - failed,
        "failed": failed,
    }


def mismatch_words(file: str, mismatch: Mismatch, out: Output) -> str:
    """Where and what was expected, and what was found, in one line."""
    place = file if mismatch.line is None else f"{file}:{mismatch.line}"
    return f"{plain(place)}  {plain(mismatch.what)}   {mismatch_text(mismatch, out)}"
