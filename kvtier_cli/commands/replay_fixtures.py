"""The half of `kvtier replay` that runs scripted fixtures and tells whether their expectations are met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvtier_cli.commands.options import Shared
from kvtier_cli.errors import ExitStatus
from kvtier_cli.render.fixture_view import fixtures_document, report_lines
from kvtier_cli.replay.fixture import Fixture, read_fixture
from kvtier_cli.replay.fixture_run import FixtureReport, report_of, run_ops, runner_of

if TYPE_CHECKING:
    from kvtier_cli.render.junit import Suite


def replay_fixtures(
    files: list[str], options: Shared, *, update: bool, state: bool, suites: list[Suite] | None = None
) -> ExitStatus:
    """Run the fixtures in the order given and print what came of each; NO where one failed.

    With `update` their expectations are rewritten first, with `state` the manager's state is shown at each op that
    failed. All fixtures are read before the first one runs. `suites` takes a test suite of each.
    """
    if update:
        _update(files, options)
    fixtures = [read_fixture(file) for file in files]
    ran = [_run(fixture, keep_states=state) for fixture in fixtures]
    reports = [report for report, _ in ran]
    if suites is not None:
        from kvtier_cli.render.junit_cases import suite_of_fixture

        suites += map(suite_of_fixture, reports)
    if options.json:
        from kvtier_cli.render.json_out import write

        write("fixtures", fixtures_document(reports))
    else:
        for line in report_lines(reports, options.stdout(), [states for _, states in ran]):
            print(line)
    return ExitStatus.NO if any(report.mismatches for report in reports) else ExitStatus.DONE


def _update(files: list[str], options: Shared) -> None:
    from kvtier_cli.replay.update import update_fixture

    for file in files:
        changes = update_fixture(file)
        told = f"{changes:,} expectation{'' if changes == 1 else 's'} rewritten" if changes else "nothing to rewrite"
        options.stderr().note(f"{file}: {told}")


def _run(fixture: Fixture, *, keep_states: bool) -> tuple[FixtureReport, dict[int, dict[str, Any]]]:
    """What came of a fixture, and the states at its failed ops by the ops' numbers, if they are to be kept."""
    runner = runner_of(fixture)
    results = []
    states: dict[int, dict[str, Any]] = {}
    for result in run_ops(fixture, runner):
        results.append(result)
        if keep_states and result.mismatches:
            states[result.op.index] = runner.state()
    return report_of(fixture, results), states
