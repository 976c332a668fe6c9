"""The half of `kvtier replay` that runs scripted fixtures and tells whether their expectations are met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvtier_cli.commands.options import Shared
from kvtier_cli.errors import ExitStatus, InputError
from kvtier_cli.render.fixture_view import fixtures_document, report_lines
from kvtier_cli.replay.fixture import Fixture, read_fixture
from kvtier_cli.replay.fixture_run import FixtureReport, report_of, run_ops, runner_of

if TYPE_CHECKING:
    from kvtier_cli.render.junit import Suite
    from kvtier_cli.replay.break_on import BreakOn


def replay_fixtures(
    files: list[str],
    options: Shared,
    *,
    update: bool,
    state: bool,
    step: bool = False,
    break_on: Sequence[str] = (),
    suites: list[Suite] | None = None,
) -> ExitStatus:
    """Run the fixtures in the order given and print what came of each; NO where one failed.

    With `update` their expectations are rewritten first, with `state` the manager's state is shown at each op that
    failed. With `step` or `break_on` ops are shown as they run; INTERRUPTED where the user quits. All fixtures are
    read before the first one runs. `suites` takes a test suite of each.
    """
    if (step or break_on) and options.json:
        raise InputError(
            "--step and --break-on show ops as text, and --json prints one document",
            hint="Without them --json has every failed expectation.",
        )
    breaks = _breaks(break_on)
    if update:
        _update(files, options)
    fixtures = [read_fixture(file) for file in files]
    if step or breaks:
        reports = _step_through(fixtures, breaks, options, step=step, state=state)
        if reports is None:
            return ExitStatus.INTERRUPTED
        states: list[dict[int, dict[str, Any]]] = [{} for _ in reports]  # they were shown on the way
    else:
        ran = [_run(fixture, keep_states=state) for fixture in fixtures]
        reports, states = [report for report, _ in ran], [kept for _, kept in ran]
    if suites is not None:
        from kvtier_cli.render.junit_cases import suite_of_fixture

        suites += map(suite_of_fixture, reports)
    if options.json:
        from kvtier_cli.render.json_out import write

        write("fixtures", fixtures_document(reports))
    else:
        for line in report_lines(reports, options.stdout(), states):
            print(line)
    return ExitStatus.NO if any(report.mismatches for report in reports) else ExitStatus.DONE


def _breaks(texts: Sequence[str]) -> list[BreakOn]:
    if not texts:
        return []
    from kvtier_cli.replay.break_on import parse_break

    return [parse_break(text) for text in dict.fromkeys(texts)]


def _step_through(
    fixtures: Sequence[Fixture], breaks: Sequence[BreakOn], options: Shared, *, step: bool, state: bool
) -> list[FixtureReport] | None:
    """What came of the fixtures, which were shown as they ran; None where the user quit."""
    from kvtier_cli.commands.fixture_stepping import Stepper, break_warnings

    for warning in break_warnings(breaks, fixtures):
        options.stderr().warn(warning)
    stepper = Stepper(breaks, options, step=step, state=state)
    reports = []
    for fixture in fixtures:
        stepped = stepper.run(fixture)
        if stepped.quit:
            return None
        reports.append(report_of(fixture, stepped.results))
    stepper.tell_unmet()
    return reports


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
