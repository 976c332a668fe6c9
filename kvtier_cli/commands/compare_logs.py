"""The half of `kvtier compare` that reads decision logs in the place of a trace: nothing is replayed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kvtier_cli.commands.log_options import refuse_replay_options
from kvtier_cli.commands.options import Shared
from kvtier_cli.errors import ExitStatus, InputError
from kvtier_cli.traces.logs import is_kvlog
from kvtier_cli.traces.source import STDIN

if TYPE_CHECKING:
    from kvtier_cli.replay.compare_checks import FailOn
    from kvtier_cli.replay.compare_logs import LoggedComparison
    from kvtier_cli.replay.decision_log import DecisionLog
    from kvtier_cli.replay.figure_expr import Judged

    Verdicts = list[tuple[FailOn, list[tuple[str, Judged]]]]

TAKEN = ("traces", "fail_on", "limit", "offset")


def are_logs(paths: Sequence[str]) -> bool:
    """Whether `paths` are decision logs, two to six of them; not so of one trace. Raises InputError for anything else,
    and for what is neither."""
    from kvtier_cli.replay.compare import FEWEST, MOST

    logs = [path for path in paths if is_kvlog(path)]
    if not logs and len(paths) == 1:
        return False
    other = next((path for path in paths if path not in logs), None)
    if other is not None and logs:
        if not Path(other).exists() and other != STDIN:
            raise InputError("no such file", file=other)
        raise InputError(
            f"is no decision log, and {logs[0]} is one",
            file=other,
            hint="Compare logs with logs: kvtier replay TRACE --log OUT.kvlog makes one.",
        )
    if other is not None:
        raise InputError(
            f"there are {len(paths):,} traces, and variants are compared over one",
            hint="Repeat --tiers, --topology, --policy or --primary; or compare the logs of replays.",
        )
    if not FEWEST <= len(logs) <= MOST:
        found = "there is one log, and nothing to compare it with" if len(logs) == 1 else f"there are {len(logs)} logs"
        raise InputError(f"{found}, expected {FEWEST} to {MOST}", hint="kvtier replay TRACE --log OUT.kvlog makes one.")
    return True


def compare_logs(
    ctx: typer.Context, options: Shared, paths: Sequence[str], fail_on: Sequence[str], *, limit: int, offset: int
) -> int:
    """Compare the logs at `paths`, which are called A, B, C."""
    from kvtier_cli.replay.compare_logs import LoggedComparison
    from kvtier_cli.replay.decision_log import open_log

    refuse_replay_options(ctx, paths[0], TAKEN)
    comparison = LoggedComparison([open_log(path) for path in paths], keep=offset + limit)
    judged: Verdicts = []
    if fail_on:
        from kvtier_cli.replay.compare_checks import parse_fail_on
        from kvtier_cli.replay.figure_names import FigureNames

        names = [FigureNames(topology) for topology in comparison.topologies]
        demands = [parse_fail_on(text, names) for text in fail_on]
        judged = [(demand, demand.judge(comparison.figures)) for demand in demands]
    if options.json:
        _write(comparison, judged, offset=offset, limit=limit)
    else:
        _print(comparison, judged, options, offset=offset)
    failed = any(each.holds for _, found in judged for _, each in found)
    return ExitStatus.NO if failed else ExitStatus.DONE


def _labels(logs: Sequence[DecisionLog]) -> tuple[list[str], list[str]]:
    """What tells the logs apart, and what is common to all: besides their paths filters and topologies."""
    told = [[log.path] for log in logs]
    common = []
    for each in ([_filter(log) for log in logs], [_topology(log) for log in logs]):
        if len(set(each)) == 1:
            common.append(each[0])
        else:
            for parts, text in zip(told, each, strict=True):
                parts.append(text)
    return [", ".join(parts) for parts in told], common


def _filter(log: DecisionLog) -> str:
    if log.header.filter is None:
        return "own filters"
    return f"filter {log.header.filters[0].short}" if log.header.filters else "a filter"


def _topology(log: DecisionLog) -> str:
    return str(log.header.topology.get("name"))


def _print(comparison: LoggedComparison, judged: Verdicts, options: Shared, *, offset: int) -> None:
    from kvtier_cli.commands.compare import told_once
    from kvtier_cli.render.compare_view import Shown, compare_lines
    from kvtier_cli.render.console import plain

    logs = comparison.logs
    sizes = {topology.block.bytes_per_token for topology in comparison.topologies}
    per_token = sizes.pop() if len(sizes) == 1 else None
    labels, common = _labels(logs)
    shown = Shown(
        title=", ".join(logs[0].header.files),
        labels=labels,
        common=common,
        figures=comparison.figures,
        remote_reads=comparison.remote_reads(),
        block_tokens=comparison.block_tokens,
        block_bytes=per_token * comparison.block_tokens if per_token else None,
        differences=comparison.differences,
        page=comparison.differences.worst()[offset:],
        offset=offset,
        explains=[f"kvtier explain {shlex.quote(log.path)}" for log in logs],
        judged=judged,
    )
    for line in compare_lines(shown, options.stdout()):
        print(line)
    for text in told_once([log.header.warnings for log in logs]):
        options.stderr().warn(plain(text))


def _write(comparison: LoggedComparison, judged: Verdicts, *, offset: int, limit: int) -> None:
    from kvtier_cli.render import compare_json as shape
    from kvtier_cli.render.json_out import write

    logs, page = comparison.logs, comparison.differences.worst()[offset:]
    settings: list[dict[str, Any]] = [
        {
            "log": log.path,
            "topology": log.header.topology,
            "filter": log.header.filter,
            "warnings": log.header.warnings,
        }
        for log in logs
    ]
    labels, _ = _labels(logs)
    figures = comparison.figures
    write(
        "compare",
        {
            "files": logs[0].header.files,
            "block_tokens": comparison.block_tokens,
            "variants": shape.variants_as_json(
                labels, settings, figures, comparison.moved(), comparison.remote_reads()
            ),
            "totals": shape.totals_as_json(figures, comparison.differences),
            "offset": offset,
            "limit": limit,
            "requests": shape.requests_as_json(page),
            "differences": shape.differences_as_json(page),
            "fail_on": shape.fail_on_as_json(judged),
            "warnings": [],
        },
    )
