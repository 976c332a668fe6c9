"""What a replay's figures are held to: demands (`--assert`) and an earlier run (`--baseline`). Read before, judged
after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kvtier_cli.replay.baseline import (
    Baseline,
    BaselineResult,
    Tolerance,
    against_baseline,
    differing_settings,
    run_for,
)
from kvtier_cli.replay.figure_expr import Expression, Judged


class CheckedRun(NamedTuple):
    """What came of the checks of one run: `files` it replayed, each demand with its judgement, and the baseline."""

    files: list[str]
    asserts: list[tuple[Expression, Judged]]
    baseline: BaselineResult | None

    @property
    def passed(self) -> bool:
        """Whether every demand holds and no figure left the baseline."""
        return all(judged.holds for _, judged in self.asserts) and not (self.baseline and self.baseline.differences)


class Checks(NamedTuple):
    """All that is to be checked; judges nothing before a run is over. Without anything every run passes."""

    asserts: list[Expression]
    baseline: Baseline | None
    tolerance: Tolerance

    def match(self, runs: Sequence[Sequence[str]]) -> None:
        """Raises InputError where the baseline has no runs for those of these files."""
        for position, files in enumerate(runs):
            if self.baseline is not None:
                run_for(self.baseline, files, position, len(runs))

    def judge(
        self,
        files: list[str],
        figures: Mapping[str, Any],
        *,
        topology: Mapping[str, Any],
        load_filter: Mapping[str, Any] | None,
        position: int,
        runs: int,
    ) -> CheckedRun:
        """What comes of run number `position` of `runs`; `topology` and `load_filter` as `--json` states them."""
        result = None
        if self.baseline is not None:
            run = run_for(self.baseline, files, position, runs)
            result = against_baseline(run, figures, self.tolerance)
            notes = [*differing_settings(self.baseline, run, topology, load_filter, files), *result.notes]
            result = result._replace(notes=notes)
        return CheckedRun(files, [(each, each.judge(figures)) for each in self.asserts], result)
