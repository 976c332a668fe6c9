"""Runs a scripted fixture and tells what came out otherwise than expected. Shows nothing; `update.py` rewrites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_cli.errors import InputError, ManagerError
from kvtier_cli.replay.expect import Difference, compare_part, compare_whole, count_leaves
from kvtier_cli.replay.fixture import Fixture, FixtureOp
from kvtier_cli.replay.ops import OpRunner, Outcome
from kvtier_cli.replay.remarks import remark
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.tiering.topology_shape import path_text
from kvtier_cli.wording import did_you_mean


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One expectation that was not met. `op` counts from 0, `line` from 1 (None where it cannot be told), `what` is
    the op in short, `path` the place inside its outcome. `found` is None where there is nothing; `remark` says so,
    or why."""

    line: int | None
    op: int
    what: str
    path: str
    expected: Any
    found: Any
    remark: str | None


@dataclass(frozen=True, slots=True)
class OpResult:
    """What came of one op. `expectations` is how many there were."""

    op: FixtureOp
    outcome: Outcome
    expectations: int
    mismatches: tuple[Mismatch, ...]


@dataclass(frozen=True, slots=True)
class FixtureReport:
    """What came of a fixture: how many `ops` ran, how many `expectations` were checked, which were not met."""

    file: str
    title: str
    ops: int
    expectations: int
    mismatches: tuple[Mismatch, ...]

    @property
    def verdict(self) -> str:
        """`ok`, `FAIL`, or `replayed` where nothing was expected."""
        if self.mismatches:
            return "FAIL"
        return "ok" if self.expectations else "replayed"


def run_fixture(fixture: Fixture) -> FixtureReport:
    """Run all ops of `fixture` on a fresh manager, whatever comes out, and compare. Raises as `run_ops` does."""
    return report_of(fixture, list(run_ops(fixture)))


def report_of(fixture: Fixture, results: Sequence[OpResult]) -> FixtureReport:
    """What the results of all ops of `fixture` come to."""
    return FixtureReport(
        fixture.file,
        fixture.title,
        len(results),
        sum(result.expectations for result in results),
        tuple(mismatch for result in results for mismatch in result.mismatches),
    )


def run_ops(fixture: Fixture, runner: OpRunner | None = None) -> Iterator[OpResult]:
    """Run the ops one by one; between two of them `runner.state()` tells the state.

    Raises InputError with the op's line for one that the manager cannot do, and for an expectation of a figure that
    there is not.
    """
    runner = runner or runner_of(fixture)
    for op in fixture.ops:
        outcome = run_op(fixture, op, runner)
        differences = compare_part(op.expect, outcome, runner.manager.primary.resident)
        _check_figures(op, differences, outcome)
        if fixture.outcomes is not None:
            differences += compare_whole(fixture.outcomes[op.index], outcome)
        mismatches = tuple(_mismatch(op, difference, outcome, runner) for difference in differences)
        yield OpResult(op, outcome, expectations_of(fixture, op), mismatches)


def runner_of(fixture: Fixture, observers: Sequence[Observer] = ()) -> OpRunner:
    """A fresh manager for the ops of `fixture`, of whose decisions `observers` hear."""
    return OpRunner(fixture.topology, folder=fixture.folder, observers=observers)


def expectations_of(fixture: Fixture, op: FixtureOp) -> int:
    """How many expectations there are of the outcome of one op."""
    whole = 0 if fixture.outcomes is None else count_leaves(fixture.outcomes[op.index])
    return count_leaves(op.expect) + whole


def run_op(fixture: Fixture, op: FixtureOp, runner: OpRunner) -> Outcome:
    """The outcome of one op, with the state where the fixture expects something of it."""
    try:
        outcome = runner.run(op.fields)
    except ManagerError as error:
        raise InputError(
            f"{op}: {error.message}", file=fixture.file, line=op.line, path=f"ops[{op.index}]", hint=error.hint
        ) from error
    whole = fixture.outcomes[op.index] if fixture.outcomes is not None else {}
    if "state" in op.expect or "state" in whole:
        outcome["state"] = runner.state()
    return outcome


def _mismatch(op: FixtureOp, difference: Difference, outcome: Outcome, runner: OpRunner) -> Mismatch:
    path = difference.path
    return Mismatch(
        op.line,
        op.index,
        str(op),
        path_text(path),
        difference.expected,
        difference.found,
        remark(difference, op.fields, outcome, runner.manager),
    )


def _check_figures(op: FixtureOp, differences: Sequence[Difference], outcome: Outcome) -> None:
    """Raises InputError for an expectation of a figure that there is not; only now is it known which there are."""
    for path, _, _, missing in differences:
        if path[0] == "figures" and missing:
            known: Any = outcome
            for step in path[:-1]:
                known = known[step]
            hint = did_you_mean(str(path[-1]), known)
            op.source.fail(("ops", op.index, "expect", *path), "there is no such figure", hint)
