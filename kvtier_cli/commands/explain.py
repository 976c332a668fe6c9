"""`kvtier explain`: one request's whole story, and the life of one of its blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.inputs import (
    FILTER_HELP,
    BlockTokensOption,
    FieldsOption,
    FormatOption,
    GivenFilter,
    TimeUnitOption,
    TopologyOption,
    given_filter,
    given_topology,
    read_options,
    refuse_fixture,
    warnings_before,
)
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.commands.request_options import (
    GivenRules,
    RequestsOption,
    TagOption,
    TiersForOption,
    given_rules,
    rules_as_json,
)
from kvtier_cli.commands.save_fixture import SaveFixtureOption, check_target, save, write_fixture
from kvtier_cli.errors import ExitStatus, InputError
from kvtier_cli.traces.logs import is_kvlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvtier_cli.replay.explain import Explanation
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import Topology
    from kvtier_cli.traces.options import TraceOptions
    from kvtier_cli.traces.source import TraceSource

EXAMPLES = (
    "kvtier explain fixtures/chat.jsonl --request 284 --tiers local \\\n      --topology fixtures/demo.toml",
    "kvtier explain fixtures/chat.jsonl --request 284 --block 242 \\\n      --topology fixtures/demo.toml",
    "kvtier explain fixtures/agent.jsonl --request t30.21 --json",
)


def command(
    ctx: typer.Context,
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace (- is stdin), or a decision log (.kvlog).")],
    request: Annotated[
        str, typer.Option("--request", metavar="ID", help="Its id in the trace, or its number from 0 (1204, r1204).")
    ],
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            metavar="B",
            help="Tell the life of one of its blocks over the whole trace: its id (242; 7~2 is the second block with "
            "the id 7), else its place in the request, from 0.",
            show_default=False,
        ),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option("--tiers", metavar="FILTER", help=f"Applies to every request. {FILTER_HELP}", show_default=False),
    ] = None,
    topology: TopologyOption = None,
    tiers_for: TiersForOption = None,
    requests: RequestsOption = None,
    tag: TagOption = None,
    rows: Annotated[bool, typer.Option("--rows", help="A row a block, and all rows of long tables.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Names and ids whole.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="N",
            min=0,
            help="Events a page of a block's life in --json; without it all.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Events to pass over.")] = 0,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    save_fixture: SaveFixtureOption = None,
) -> int:
    """Tell one request's whole story: each pass, each tier's verdict, waits, what it stored and what it evicted.

    The requests run under their own filters unless --tiers gives one for all. Where a filter skipped a tier, it also
    says what this one request would have got without, after the same history. A decision log (kvtier replay --log)
    tells at once, without a replay, what it knows: not the passes, stores and evictions.
    """
    options = shared(ctx)
    if trace == "-" and tiers == "-":
        raise InputError("the trace and --tiers both come from stdin", hint="Give the filter as text or @FILE.")
    if (limit is not None or offset) and (block is None or not options.json):
        raise InputError("--limit and --offset page a block's life", hint="Give --block and --json with them.")
    if is_kvlog(trace):
        from kvtier_cli.commands.explain_log import explain_log

        return explain_log(ctx, options, trace, request, block, rows=rows, wide=wide, limit=limit, offset=offset)
    check_target(save_fixture, request=request, trace=trace, topology=topology, tiers=tiers)
    chosen = given_topology(topology)
    stdin = [*(["the trace"] if trace == "-" else []), *(["--tiers"] if tiers == "-" else [])]
    asked = given_rules(tag, tiers_for, requests, stdin=stdin, skip_bad=skip_bad)
    reading = asked.reading(read_options(trace_format, block_tokens, time_unit, fields=fields))
    given = None if tiers is None else given_filter(tiers, chosen)
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.traces.source import TraceSource

    with TraceSource(trace) as source:
        if reading.format is None:
            refuse_fixture(source)
        run, index, explanation = _explain(
            source, request, block, chosen, given, asked, options, reading, skip_bad=skip_bad
        )
        holds = given or GivenFilter("json", explanation.story.filter)  # its own
        warnings = [*warnings_before(chosen, holds), *asked.warnings(chosen), *run.warnings]
        if save_fixture is not None:
            again = TraceRun(
                [source],
                chosen,
                None if given is None else given.parse.filter,
                reading=reading,
                skip_bad=skip_bad,
                rules=asked.rules(chosen),
            )
            saved = save(again, index, None if given is None else given.parse, source)
            write_fixture(save_fixture, saved, options)
        if options.json:
            _write_json(source, index, explanation, run, given, asked, warnings, limit, offset)
            return ExitStatus.DONE
    from kvtier_cli.render.console import plain
    from kvtier_cli.render.explain_view import explain_lines

    for line in explain_lines(explanation, options.stdout(), rows=rows, wide=wide):
        print(line)
    for warning in warnings:  # which repeat names and words of files
        options.stderr().warn(plain(warning))
    return ExitStatus.DONE


def _explain(
    source: TraceSource,
    request: str,
    block: str | None,
    topology: Topology,
    given: GivenFilter | None,
    asked: GivenRules,
    options: Shared,
    reading: TraceOptions,
    *,
    skip_bad: bool,
) -> tuple[TraceRun, int, Explanation]:
    """The run, over as far as it was needed, the request's number, and what there is to tell of it."""
    from kvtier_cli.render.progress import progress
    from kvtier_cli.replay.explain import explain, filter_skipped, without_filter
    from kvtier_cli.replay.prompt import find_block, read_prompt
    from kvtier_cli.replay.trace_lookup import find_request
    from kvtier_cli.replay.trace_run import TraceRun

    parse = None if given is None else given.parse
    rules = asked.rules(topology)

    def new_run(advance: Callable[[int], object]) -> TraceRun:
        return TraceRun(
            [source],
            topology,
            None if parse is None else parse.filter,
            reading=reading,
            skip_bad=skip_bad,
            on_bytes=advance,
            rules=rules,
        )

    with progress(source.size, f"reading {source.name}", options.progress) as advance:
        index = find_request(source, request, reading, skip_bad=skip_bad, on_bytes=advance)
    with progress(source.size, f"reading {source.name}", options.progress) as advance:
        prompt = read_prompt(new_run(advance), index)
    at = None if block is None else find_block(prompt, block, f"request {request}", source.name)
    with progress(source.size, source.name, options.progress) as advance:
        run = new_run(advance)
        explanation = explain(run, index, prompt, parse, block=at)
    if (at is None or options.json) and filter_skipped(explanation.story):  # the text of a life does not say it
        with progress(source.size, f"{source.name}, without the filter", options.progress) as advance:
            without = without_filter(new_run(advance), index)
        explanation = replace(explanation, story=replace(explanation.story, without_filter=without))
    return run, index, explanation


def _write_json(
    source: TraceSource,
    index: int,
    explanation: Explanation,
    run: TraceRun,
    given: GivenFilter | None,
    asked: GivenRules,
    warnings: list[str],
    limit: int | None,
    offset: int,
) -> None:
    from kvtier_cli.render.explain_json import explanation_as_json
    from kvtier_cli.render.filter_json import filter_as_json, tiers_as_json
    from kvtier_cli.render.json_out import write

    story = explanation.story
    write(
        "explain",
        {
            "trace": source.name,
            "request": {"id": story.label, "index": index},
            "topology": run.topology.name,
            "block_tokens": story.block_tokens,
            "filter": filter_as_json(story.filter),
            "applies_to_all": given is not None,
            **rules_as_json(asked, run.topology),
            "tiers": tiers_as_json(story.filter, run.topology),
            **explanation_as_json(explanation, limit=limit, offset=offset),
            "warnings": warnings,
        },
    )
