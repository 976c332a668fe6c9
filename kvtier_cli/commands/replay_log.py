"""The half of `kvtier replay --log` that minds files: what may be written where, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvtier_cli.commands.inputs import GivenFilter
from kvtier_cli.commands.options import Shared
from kvtier_cli.commands.outputs import output_file
from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_output import STDOUT, DecisionOutput, log_format

if TYPE_CHECKING:
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import Topology


def check_log(out: str, traces: int, options: Shared, *, join: bool, others: Mapping[str, str | None]) -> None:
    """Refuse a `--log OUT` that cannot be, before any work; `others`: what other options write, by their names. Raises
    InputError and EnvironmentFault."""
    if traces > 1 and not join:
        raise InputError("--log writes one run", hint="Replay one trace at a time, or --join them.")
    if out == STDOUT and options.json:
        raise InputError("--log - and --json both write to stdout", hint="Give --log a file.")
    for option, other in others.items():
        if other is not None and (out == other or (STDOUT not in (out, other) and _same_file(out, other))):
            both = "stdout" if out == STDOUT else "one file"
            raise InputError(f"--log and {option} both write to {both}", hint="Give each a file of its own.")
    log_format(out)


def _same_file(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def about_run(
    names: list[str], topology: Topology, given: GivenFilter | None, warnings: list[str]
) -> Callable[[TraceRun, Mapping[str, Any]], dict[str, Any]]:
    """What a log says of its run, once the run is over and its figures are there."""

    def about(run: TraceRun, figures: Mapping[str, Any]) -> dict[str, Any]:
        from kvtier_cli.render.filter_json import filter_as_json
        from kvtier_cli.render.json_out import SCOPE
        from kvtier_cli.tiering.topology_file import topology_as_json

        return {
            "scope": SCOPE,
            "files": names,
            "topology": {"name": topology.name, **topology_as_json(topology)},
            "filter": None if given is None else filter_as_json(given.parse),
            "figures": figures,
            "warnings": [*warnings, *run.warnings],
        }

    return about


@contextmanager
def logging(
    run: TraceRun, out: str, about: Callable[[TraceRun, Mapping[str, Any]], dict[str, Any]]
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write the decisions of `run`, which is about to begin, to `out`. Yields what is to be called with its figures
    when it is over."""
    with output_file(out) as file:
        output = DecisionOutput(run, file, log_format(out))
        yield lambda figures: output.finish(about(run, figures))
