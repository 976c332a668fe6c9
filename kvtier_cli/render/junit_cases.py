"""The test cases of a replay for `--junit`: one a fixture; of a trace one a demand and one a figure of the baseline."""

from __future__ import annotations

from kvtier_cli.render.checks_view import compared_words, found_words
from kvtier_cli.render.console import Output
from kvtier_cli.render.fixture_view import mismatch_words
from kvtier_cli.render.junit import Case, Suite
from kvtier_cli.replay.baseline import Compared
from kvtier_cli.replay.checks import CheckedRun, Checks
from kvtier_cli.replay.fixture_run import FixtureReport
from kvtier_cli.wording import count


def suite_of_fixture(report: FixtureReport) -> Suite:
    """A suite of one case, named by the fixture's title."""
    failure = None
    if report.mismatches:
        failure = f"{len(report.mismatches):,} of {count(report.expectations, 'expectation')} not met"
    details = [mismatch_words(report.file, mismatch, Output(color=False)) for mismatch in report.mismatches]
    return Suite(report.file, [Case(report.title or report.file, failure, details)])


def suite_of_run(checked: CheckedRun, checks: Checks) -> Suite:
    """That the trace was replayed, then what its figures were held to."""
    cases = [Case("replayed")]
    for expression, judged in checked.asserts:
        found = found_words(expression.figure, judged)
        failure = None if judged.holds else found
        details = () if judged.holds else (f"expected {expression.text}", found)
        cases.append(Case(f"assert {expression.text}", failure, details))
    if checked.baseline is not None and checks.baseline is not None:
        cases += [_case_of(each, checks.baseline.file, checks.tolerance.text) for each in checked.baseline.compared]
    return Suite(" + ".join(checked.files), cases)


def _case_of(each: Compared, file: str, tolerance: str) -> Case:
    name = f"baseline {each.figure.name}"
    if not each.differs:
        return Case(name)
    return Case(name, compared_words(each), (f"tolerance {tolerance}, baseline {file}", compared_words(each)))
