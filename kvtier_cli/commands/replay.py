"""`kvtier replay`: traces and scripted fixtures through the embedded manager."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.inputs import (
    FILTER_HELP,
    BlockTokensOption,
    FieldsOption,
    FormatOption,
    TimeUnitOption,
    TopologyOption,
    filter_file,
    given_filter,
    given_topology,
    read_options,
    refuse_to_overwrite,
)
from kvtier_cli.commands.options import shared
from kvtier_cli.commands.replay_checks import (
    AssertOption,
    BaselineOption,
    JunitOption,
    ToleranceOption,
    given_checks,
    junit_file,
)
from kvtier_cli.commands.request_options import (
    TOP,
    ByOption,
    RequestsOption,
    TagOption,
    TiersForOption,
    TopOption,
    given_rules,
)
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from kvtier_cli.traces.source import TraceSource

EXAMPLES = (
    "kvtier replay trace.jsonl",
    "kvtier replay trace.jsonl --tiers storage:local --topology tiers.toml --json",
    "kvtier replay trace.jsonl --assert 'served >= 36%' --baseline run.json",
    "kvtier replay trace.jsonl --by tenant --tiers-for tenant=acme storage:local",
    "kvtier replay bug.yaml",
    "kvtier replay bug.yaml --break-on mismatch",
)


def command(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Traces (- is stdin) or scripted fixtures (YAML, JSON)."),
    ],
    tiers: Annotated[
        str | None,
        typer.Option("--tiers", metavar="FILTER", help=f"Applies to every request. {FILTER_HELP}", show_default=False),
    ] = None,
    topology: TopologyOption = None,
    tiers_for: TiersForOption = None,
    requests: RequestsOption = None,
    tag: TagOption = None,
    by: ByOption = None,
    top: TopOption = TOP,
    join: Annotated[bool, typer.Option("--join", help="Replay the traces one after another as one run.")] = False,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    events: Annotated[
        str | None,
        typer.Option(
            "--events",
            metavar="OUT",
            help="Write the KV events that a server would have published, as JSON lines; - is stdout, and the summary "
            "then goes to stderr.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="OUT",
            help="Write what was decided about each block: OUT.kvlog, .jsonl, .csv or .parquet; - is JSON lines on "
            "stdout, and the summary then goes to stderr.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Keep the secondary tiers on disk, in this new or empty folder; without it they are in memory.",
            show_default=False,
        ),
    ] = None,
    timing: Annotated[bool, typer.Option("--timing", help="Tell the seconds it took.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite a fixture's expectations to what was found.")
    ] = False,
    state: Annotated[
        bool, typer.Option("--state", help="Show the manager's state at each failed expectation, or at each step.")
    ] = False,
    step: Annotated[
        bool, typer.Option("--step", help="Stop at each op of a fixture and show what it did; ? tells the commands.")
    ] = False,
    break_on: Annotated[
        list[str] | None,
        typer.Option(
            "--break-on",
            metavar="WHAT",
            help="Stop at each op at which this happens: denied (a promotion), evicted:BLOCK (from any tier) or "
            "mismatch (of an expectation). Repeatable.",
            show_default=False,
        ),
    ] = None,
    asserts: AssertOption = None,
    baseline: BaselineOption = None,
    tolerance: ToleranceOption = None,
    junit: JunitOption = None,
) -> int:
    """Replay traces (each a run of its own) or scripted fixtures, which are checked against their expectations.

    A trace's requests come one after another, under their own filters unless --tiers gives one for all.
    """
    options = shared(ctx)
    reading = read_options(trace_format, block_tokens, time_unit, fields=fields)
    with ExitStack() as stack:
        traces, fixtures = _sort(files, stack, only_traces=reading.format is not None)
        if traces and fixtures and (options.json or join):
            raise InputError("traces and fixtures in one command line", hint="Replay the one kind, then the other.")
        if fixtures:
            source = ctx.get_parameter_source("topology")
            named = topology if source is not None and source.name == "COMMANDLINE" else None
            _refuse_for_fixtures(
                fixtures[0],
                {
                    "--tiers": tiers,
                    "--topology": named,
                    "--events": events,
                    "--log": log,
                    "--store": store,
                    "--requests": requests,
                }
                | {"--tiers-for": " ".join(tiers_for[0]) if tiers_for else None, "--by": by[0] if by else None}
                | ({} if traces else {"--assert": asserts[0] if asserts else None, "--baseline": baseline})
                | ({} if traces else {"--block-tokens": block_tokens, "--time-unit": time_unit})
                | {"--join": join, "--skip-bad": skip_bad, "--timing": timing},
            )
        if traces:
            _refuse_for_traces(
                traces[0].name, {"--update": update, "--state": state, "--step": step, "--break-on": break_on}
            )
        status = ExitStatus.DONE
        read: dict[str, list[str | None]] = {
            "fixture": [*fixtures],
            "trace": [file for file in files if file not in fixtures],
            "baseline": [baseline],
            "topology": [topology],
            "filter": [filter_file(tiers)],
        }
        if junit is not None:
            refuse_to_overwrite(read, junit, "--junit")
            if events is not None and events != "-" and Path(events).resolve() == Path(junit).resolve():
                raise InputError("--events and --junit write to the same file", file=junit)
        suites = stack.enter_context(junit_file(junit))
        if fixtures:
            from kvtier_cli.commands.replay_fixtures import replay_fixtures

            status = replay_fixtures(
                fixtures, options, update=update, state=state, step=step, break_on=break_on or (), suites=suites
            )
            if status is ExitStatus.INTERRUPTED:
                raise typer.Exit(status)  # what would be written is not whole
        if traces:
            if events is not None and len(traces) > 1 and not join:
                raise InputError("--events writes one run", hint="Replay one trace at a time, or --join them.")
            if store is not None and len(traces) > 1 and not join:
                raise InputError("--store takes one run", hint="Replay one trace at a time, or --join them.")
            if events == "-" and options.json:
                raise InputError("--events - and --json both write to stdout", hint="Give --events a file.")
            if tiers == "-" and "-" in files:
                raise InputError("the trace and --tiers both come from stdin", hint="Give the filter as text or @FILE.")
            if events is not None:
                refuse_to_overwrite(read, events, "--events")
            if log is not None:
                from kvtier_cli.commands.replay_log import check_log

                check_log(log, len(traces), options, join=join, others={"--events": events, "--junit": junit})
                refuse_to_overwrite(read, log, "--log")
            chosen = given_topology(topology)
            stdin = [*(["the trace"] if "-" in files else []), *(["--tiers"] if tiers == "-" else [])]
            asked = given_rules(tag, tiers_for, requests, by, stdin=stdin, skip_bad=skip_bad)
            given = None if tiers is None else given_filter(tiers, chosen)
            from kvtier_cli.commands.replay_traces import replay_traces

            passed = replay_traces(
                traces,
                chosen,
                given,
                asked,
                options,
                asked.reading(reading),
                top=top,
                join=join,
                skip_bad=skip_bad,
                events=events,
                log=log,
                store=store,
                timing=timing,
                checks=given_checks(asserts, baseline, tolerance, chosen),
                suites=suites,
            )
            status = status if passed else ExitStatus.NO
        return status


def _sort(files: list[str], stack: ExitStack, *, only_traces: bool) -> tuple[list[TraceSource], list[str]]:
    """The traces, opened, and the names of the fixtures, told apart by what is in the files, unless all are traces."""
    from kvtier_cli.traces.detect import HEAD_BYTES, looks_like_fixture
    from kvtier_cli.traces.source import TraceSource

    traces, fixtures = [], []
    for file in files:
        source = stack.enter_context(TraceSource(file))
        if not only_traces and file != "-" and looks_like_fixture(source.head(HEAD_BYTES), file):
            fixtures.append(file)
        else:
            traces.append(source)
    return traces, fixtures


def _refuse_for_fixtures(fixture: str, given: Mapping[str, object]) -> None:
    """Raises InputError for an option, by its name, that is there for traces and was given (is not None or False)."""
    for option, value in given.items():
        if value not in (None, False):
            reason = ", which states its own" if option in ("--tiers", "--topology") else ""
            raise InputError(f"{option} does not apply to a scripted fixture{reason}", file=fixture)


def _refuse_for_traces(trace: str, given: Mapping[str, object]) -> None:
    """Raises InputError for those options, by their names, that are there for scripted fixtures and were given."""
    names = [option for option, value in given.items() if value]
    if names:
        verb = "is" if len(names) == 1 else "are"
        raise InputError(f"{' and '.join(names)} {verb} for scripted fixtures, this is a trace", file=trace)
