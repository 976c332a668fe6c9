"""`kvtier lookup`: which of a prompt's blocks are served, from where, and why the first one that is not is not."""

from __future__ import annotations

from dataclasses import dataclass
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
from kvtier_cli.commands.save_fixture import SaveFixtureOption, check_target, save, write_fixture
from kvtier_cli.commands.workspace_options import LOCK_TIMEOUT, LockTimeoutOption, WorkspaceOption
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvtier_cli.replay.slice import Slice
    from kvtier_cli.replay.story_model import RequestStory
    from kvtier_cli.replay.trace_lookup import BlockMatch
    from kvtier_cli.tiering.filters import FilterParse
    from kvtier_cli.tiering.topology import Topology
    from kvtier_cli.traces.options import TraceOptions

EXAMPLES = (
    "kvtier lookup --trace fixtures/chat.jsonl --request 284 --tiers local \\\n      --topology fixtures/demo.toml",
    "kvtier lookup --trace fixtures/agent.jsonl --request t30.21 --tiers deny",
    "kvtier lookup --trace fixtures/chat.jsonl 14 15 16 --tiers storage:remote",
    "kvtier lookup 14 15 16 --tiers storage:local --commit",
)


def command(
    ctx: typer.Context,
    blocks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BLOCK...]",
            help="Ids of blocks, looked up in order: in the workspace, or after the whole of --trace. What starts "
            "with - follows --.",
            show_default=False,
        ),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option(
            "--tiers",
            metavar="FILTER",
            help=f"The filter of this lookup; without it the request's own, or all. {FILTER_HELP}",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="The history: a trace (- is stdin). Without it the tiers are those of the workspace.",
            show_default=False,
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            metavar="ID",
            help="A request of the trace, after the history before it: its id, or its number from 0 (1204, r1204).",
            show_default=False,
        ),
    ] = None,
    topology: TopologyOption = None,
    workspace: WorkspaceOption = None,
    commit: Annotated[
        bool,
        typer.Option("--commit", help="Let the workspace keep what the lookup changes, as a server would."),
    ] = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    rows: Annotated[bool, typer.Option("--rows", help="A row a block, however many there are.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Names and ids whole.")] = False,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    save_fixture: SaveFixtureOption = None,
) -> int:
    """Look a prompt's blocks up: which tiers were skipped, asked, hit or denied for each, and why.

    In the workspace, which it leaves as it is unless told to --commit; or after the history of a trace, whose requests
    run under their own filters. The answer says what the first block that was not served came to, and what the tiers
    behind it hold.
    """
    options = shared(ctx)
    of_trace = None if trace is None else request
    check_target(save_fixture, request=of_trace, trace=trace, topology=topology, tiers=tiers)
    reading = read_options(trace_format, block_tokens, time_unit, fields=fields)
    if trace is None:
        if request is not None:
            raise InputError("--request is one of a trace", hint="Give --trace FILE with it.")
        if _is_typed(ctx, "topology"):
            raise InputError("--topology does not apply to a workspace, which has its own", hint="Give --trace FILE.")
        given = {"--format": trace_format, "--block-tokens": block_tokens, "--time-unit": time_unit, "--fields": fields}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} says how a trace is read", hint="Give --trace FILE with it.")
    elif commit or _is_typed(ctx, "workspace"):
        raise InputError("--trace looks into no workspace", hint="Leave out --workspace and --commit, or --trace.")
    if request is not None and blocks:
        raise InputError("--request looks the request's own blocks up", hint="Give either --request or blocks.")
    if request is None and not blocks:
        raise InputError("nothing to look up", hint="Give the ids of blocks, or --trace FILE --request ID.")
    if trace is None:
        from kvtier_cli.commands.lookup_workspace import look_up_in_workspace

        found = look_up_in_workspace(workspace, blocks or (), tiers, commit=commit, lock_timeout=lock_timeout)
        _show(found, options, rows=rows, wide=wide)
        return ExitStatus.DONE
    if trace == "-" and tiers == "-":
        raise InputError("--trace - and --tiers - both read stdin", hint="Give the filter as text or @FILE.")
    chosen = given_topology(topology)
    parse = None if tiers is None else given_filter(tiers, chosen).parse
    found = look_up(
        trace,
        request,
        blocks or (),
        chosen,
        parse,
        options,
        reading=reading,
        skip_bad=skip_bad,
        saves=save_fixture is not None,
    )
    if save_fixture is not None and found.saved is not None:
        write_fixture(save_fixture, found.saved, options)
    _show(found, options, rows=rows, wide=wide)
    return ExitStatus.DONE


def _is_typed(ctx: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line, and not only in a variable of the environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What a lookup came to: a story, or the blocks that an ambiguous label stands for. It was made after the history
    of `trace`, or in `workspace`. `request` counts from 0; `unknown` are labels that no block there has; `saved` is the
    request as a fixture."""

    trace: str | None
    workspace: str | None
    topology: Topology
    request: int | None
    block_tokens: int | None
    parse: FilterParse
    story: RequestStory | None
    ambiguous: Mapping[str, Sequence[BlockMatch]]
    unknown: Sequence[str]
    warnings: Sequence[str]
    saved: Slice | None = None


def look_up(
    trace: str,
    request: str | None,
    blocks: Sequence[str],
    topology: Topology,
    parse: FilterParse | None,
    options: Shared,
    *,
    reading: TraceOptions | None = None,
    skip_bad: bool = False,
    saves: bool = False,
) -> LookedUp:
    """The story of `request` under `parse` after the history before it in `trace`, or of `blocks` after all of it.

    Without `parse` the request's own filter holds, and for blocks none. With `saves` the request is saved as a fixture,
    too. Raises InputError for what is not there.
    """
    from kvtier_cli.render.progress import progress
    from kvtier_cli.replay.trace_lookup import blocks_story, find_request, request_story, resolve_blocks
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.filters import lint_against, parse_tier_filter
    from kvtier_cli.traces.options import AS_IT_SAYS
    from kvtier_cli.traces.source import TraceSource

    reading = reading or AS_IT_SAYS
    with TraceSource(trace) as source:
        if reading.format is None:
            refuse_fixture(source)
        index = None
        if request is not None:
            with progress(source.size, f"reading {source.name}", options.progress) as advance:
                index = find_request(source, request, reading, skip_bad=skip_bad, on_bytes=advance)
        with progress(source.size, source.name, options.progress) as advance:
            run = TraceRun([source], topology, reading=reading, skip_bad=skip_bad, on_bytes=advance)
            ambiguous: Mapping[str, Sequence[BlockMatch]] = {}
            unknown: Sequence[str] = ()
            story: RequestStory | None
            saved: Slice | None = None
            if index is not None and saves:
                saved = save(run, index, parse, source)
                story = saved.story
                effective = story.filter
            elif index is not None:
                story = request_story(run, index, parse)
                effective = story.filter
            else:
                run.run()
                effective = parse or lint_against(parse_tier_filter(), topology.tiers)
                keys, unknown, ambiguous = resolve_blocks(run, blocks)
                story = None if ambiguous else blocks_story(run, keys, effective)
    return LookedUp(
        source.name,
        None,
        topology,
        index,
        run.loop.block_tokens,
        effective,
        story,
        ambiguous,
        unknown,
        [*warnings_before(topology, GivenFilter("json", effective)), *run.warnings],
        saved,
    )


def _show(found: LookedUp, options: Shared, *, rows: bool, wide: bool) -> None:
    if options.json:
        _write_json(found)
    else:
        _print_text(found, options, rows=rows, wide=wide)


def _print_text(found: LookedUp, options: Shared, *, rows: bool, wide: bool) -> None:
    from kvtier_cli.render.console import plain

    out, remarks = options.stdout(), options.stderr()
    for warning in found.warnings:  # which repeat names and words of files
        remarks.warn(plain(warning))
    if found.story is None:
        from kvtier_cli.render.matches_view import matches_lines

        lines = matches_lines(found.ambiguous, _place(found), out, wide=wide)
    else:
        from kvtier_cli.render.story_view import story_lines

        lines = story_lines(found.story, out, rows=rows, wide=wide)
    for line in lines:
        print(line)
    for label in found.unknown:
        from kvtier_cli.wording import shown

        holder = "no tier of" if found.trace is None else "no request of"
        remarks.note(plain(f"{holder} {_place(found)} has a block {shown(label)}"))


def _place(found: LookedUp) -> str:
    """What was looked into, by name."""
    return found.trace or found.workspace or ""


def _write_json(found: LookedUp) -> None:
    from kvtier_cli.render.filter_json import filter_as_json, tiers_as_json
    from kvtier_cli.render.json_out import write
    from kvtier_cli.render.story_json import story_as_json

    story = {"blocks": [], "summary": None} if found.story is None else story_as_json(found.story)
    label = None if found.story is None else found.story.label
    body = {
        "trace": found.trace,
        "workspace": found.workspace,
        "request": None if found.request is None else {"id": label, "index": found.request},
        "topology": found.topology.name,
        "block_tokens": found.block_tokens,
        "filter": filter_as_json(found.parse),
        "tiers": tiers_as_json(found.parse, found.topology),
        **story,
        "ambiguous": {label: [match._asdict() for match in matches] for label, matches in found.ambiguous.items()},
        "unknown": list(found.unknown),
        "warnings": list(found.warnings),
    }
    write("lookup", body)
