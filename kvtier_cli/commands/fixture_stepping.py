"""Steps through a scripted fixture: op by op, or from break to break, with a pause at each where somebody is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kvtier_cli.commands.options import Shared
from kvtier_cli.commands.pauses import HELP, Pause, Pauses
from kvtier_cli.errors import InputError
from kvtier_cli.render.console import columns, plain
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.render.state_view import whole_state_lines
from kvtier_cli.render.step_view import fixture_head, op_lines
from kvtier_cli.replay.break_on import EVICTED, BreakOn, BreakWatcher, blocks_named, parse_break
from kvtier_cli.replay.fixture import Fixture
from kvtier_cli.replay.fixture_run import OpResult, expectations_of, run_ops, runner_of
from kvtier_cli.wording import nearest


class Stepped(NamedTuple):
    """What ran of one fixture; `quit` says that it was not run to its end."""

    results: list[OpResult]
    quit: bool = False


class Stepper:
    """Steps through one fixture after the other. With `step` it stops at each op, else only at the `breaks`; with
    `state` it shows the whole state wherever it stops."""

    def __init__(self, breaks: Sequence[BreakOn], options: Shared, *, step: bool, state: bool) -> None:
        self._breaks = list(breaks)
        self._options = options
        self._out = options.stdout()
        self._pauses = Pauses(self._out)
        self._step = step
        self._whole = state
        self._met: set[BreakOn] = set()

    def run(self, fixture: Fixture) -> Stepped:
        """Run the ops of `fixture`. Raises as `run_ops` does."""
        watcher = BreakWatcher(self._breaks)
        runner = runner_of(fixture, (watcher,))
        results: list[OpResult] = []
        stepping = self._step
        shown = False
        before = runner.state()
        for result in run_ops(fixture, runner):
            results.append(result)
            after = runner.state()
            met = watcher.met(result, runner)
            self._met.update(met)
            if stepping or met:
                if not shown:
                    shown = True
                    self._print(fixture_head(fixture, self._out))
                reasons = list(met.values())
                self._print(op_lines(fixture, result, before, after, self._out, reasons=reasons, whole=self._whole))
                answer = self._pause(fixture, watcher, after)
                if answer is Pause.QUIT:
                    self._tell_quit(fixture, results)
                    return Stepped(results, quit=True)
                if answer is not Pause.END:
                    stepping = answer is Pause.NEXT
            before = after
        self._breaks = watcher.breaks
        if shown:
            print()
        return Stepped(results)

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line)

    def tell_unmet(self) -> None:
        """Say on stderr which breaks no op met: else a run that stopped nowhere would look as if there were none."""
        for stop in self._breaks:
            if stop not in self._met:
                self._options.stderr().note(f"no op met the break {stop}")

    def _pause(self, fixture: Fixture, watcher: BreakWatcher, state: dict[str, Any]) -> Pause:
        """Answers what can be answered at a pause, until it is known how to go on."""
        while True:
            pause, rest = self._pauses.ask()
            if pause is Pause.STATE:
                self._print(whole_state_lines(state, self._out))
            elif pause is Pause.BREAK:
                self._add_break(rest, fixture, watcher)
            elif pause is Pause.HELP:
                self._print(columns(HELP))
            else:
                return pause

    def _add_break(self, text: str, fixture: Fixture, watcher: BreakWatcher) -> None:
        if text:
            try:
                stop = parse_break(text)
            except InputError as error:
                print(plain(f"{error}: {error.hint}" if error.hint else str(error)))
                return
            if stop not in watcher.breaks:
                watcher.breaks.append(stop)
            for warning in break_warnings([stop], [fixture]):
                print(plain(warning))
        print("breaks on " + (", ".join(plain(str(stop)) for stop in watcher.breaks) or "nothing"))

    def _tell_quit(self, fixture: Fixture, results: list[OpResult]) -> None:
        checked = sum(result.expectations for result in results)
        failed = sum(len(result.mismatches) for result in results)
        total = sum(expectations_of(fixture, op) for op in fixture.ops)
        told = (
            f"{plain(fixture.file)}: quit at op {len(results):,} of {len(fixture.ops):,}; {checked:,} of {total:,} "
            f"expectations checked, {failed or 'none'} not met"
        )
        self._print(wrapped(told, self._out))


def break_warnings(breaks: Sequence[BreakOn], fixtures: Sequence[Fixture]) -> list[str]:
    """One line for each break on a block that no op of any of the fixtures names."""
    named: set[str] = set()
    for fixture in fixtures:
        blocks = blocks_named(fixture)
        if blocks is None:
            return []
        named |= blocks
    found = []
    for stop in breaks:
        if stop.kind == EVICTED and stop.block is not None and stop.block not in named:
            near = nearest(stop.block, sorted(named))
            hint = f'; did you mean "{near}"?' if near else ""
            found.append(f"{stop}: no op names this block{hint}")
    return found
