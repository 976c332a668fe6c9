"""The options of `kvtier replay` that make it a test: --assert, --baseline, --tolerance, --junit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from kvtier_cli.render.console import Output
    from kvtier_cli.render.junit import Suite
    from kvtier_cli.replay.checks import CheckedRun, Checks
    from kvtier_cli.tiering.topology import Topology

AssertOption = Annotated[
    list[str] | None,
    typer.Option(
        "--assert",
        metavar="EXPR",
        help="Exit with 1 unless a figure is so: 'served >= 36%', 'promoted.s3 < 10k'. Repeatable; the names are "
        "those of --json.",
        show_default=False,
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Exit with 1 where figures differ from those of an earlier --json.",
        show_default=False,
    ),
]
ToleranceOption = Annotated[
    str | None,
    typer.Option(
        "--tolerance",
        metavar="T",
        help="How far from the baseline is still equal: 0.5pt (of all blocks), 1% (of the figure) or a count; "
        "without it nothing is.",
        show_default=False,
    ),
]
JunitOption = Annotated[
    str | None,
    typer.Option(
        "--junit",
        metavar="OUT",
        help="Write what was checked as JUnit XML, for CI.",
        show_default=False,
    ),
]


def given_checks(
    asserts: Sequence[str] | None, baseline: str | None, tolerance: str | None, topology: Topology
) -> Checks | None:
    """What the figures are held to, read and understood before anything is replayed; None for nothing. Raises
    InputError."""
    if tolerance is not None and baseline is None:
        raise InputError("--tolerance is for --baseline, which is not there")
    if not asserts and baseline is None:
        return None
    from kvtier_cli.replay.baseline import read_baseline, read_tolerance
    from kvtier_cli.replay.checks import Checks
    from kvtier_cli.replay.figure_expr import parse_expression
    from kvtier_cli.replay.figure_names import FigureNames

    expressions = []
    if asserts:
        names = FigureNames(topology)
        expressions = [parse_expression(text, names, "--assert") for text in asserts]
    allowed = read_tolerance("0" if tolerance is None else tolerance)
    return Checks(expressions, None if baseline is None else read_baseline(baseline), allowed)


@contextmanager
def junit_file(path: str | None) -> Iterator[list[Suite]]:
    """A list that takes test suites; they are written to `path` (None: nowhere) when the block ends well, whatever
    failed in them."""
    suites: list[Suite] = []
    if path is None:
        yield suites
        return
    if path == "-":
        raise InputError("--junit - and the result both write to stdout", hint="Give --junit a file.")
    from kvtier_cli.commands.outputs import output_file
    from kvtier_cli.render.junit import junit_document

    with output_file(path) as file:
        yield suites
        file.write(junit_document(suites))


class Verdicts:
    """Judges the runs of a replay, one after another, and keeps what is to be said of the last one.

    `checks` is None where nothing was asked for. `suites` takes a test suite of each run. `topology` as `--json` has
    it; `runs` has the names of each run's files. Raises InputError where the baseline has not as many runs.
    """

    def __init__(
        self, checks: Checks | None, suites: list[Suite], topology: Mapping[str, Any], runs: list[list[str]]
    ) -> None:
        self._checks = checks
        self._suites = suites
        self._topology = topology
        self._runs = runs
        self._last: CheckedRun | None = None
        self.passed = True
        """Whether all runs so far passed."""
        if checks is not None:
            checks.match(runs)

    def judge(self, position: int, document: Mapping[str, Any]) -> dict[str, Any]:
        """What came of run number `position`, whose document this is, as further entries of that document."""
        files = self._runs[position]
        if self._checks is None:
            from kvtier_cli.render.junit import Case, Suite

            self._suites.append(Suite(" + ".join(files), [Case("replayed")]))
            return {}
        from kvtier_cli.render.checks_view import checks_as_json
        from kvtier_cli.render.junit_cases import suite_of_run

        self._last = self._checks.judge(
            files,
            document["figures"],
            topology=self._topology,
            load_filter=document["filter"],
            position=position,
            runs=len(self._runs),
        )
        self.passed = self.passed and self._last.passed
        self._suites.append(suite_of_run(self._last, self._checks))
        return checks_as_json(self._last, self._checks)

    def lines(self, out: Output) -> Iterator[str]:
        """The last run's verdicts, for people, set off from what comes before."""
        if self._last is not None and self._checks is not None:
            from kvtier_cli.render.checks_view import check_lines

            yield ""
            yield from check_lines(self._last, self._checks, out)

    @property
    def notes(self) -> list[str]:
        """What is not as it was when the baseline was made: remarks on the last run."""
        if self._last is None or self._last.baseline is None or self._checks is None or self._checks.baseline is None:
            return []
        return [f"{self._checks.baseline.file}: {note}" for note in self._last.baseline.notes]
