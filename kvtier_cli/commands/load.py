"""`kvtier load`: traces replayed into the workspace, whose tiers are real stores."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kvtier_cli.commands.inputs import (
    FILTER_HELP,
    BlockTokensOption,
    FieldsOption,
    FormatOption,
    GivenFilter,
    TimeUnitOption,
    given_filter,
    read_options,
)
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.commands.workspace_options import LOCK_TIMEOUT, LockTimeoutOption, WorkspaceOption, opened
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.traces.options import TraceOptions
    from kvtier_cli.traces.source import TraceSource
    from kvtier_cli.workspace import Workspace

EXAMPLES = (
    "kvtier load trace.jsonl",
    "kvtier load monday.jsonl tuesday.jsonl --payload 4KiB",
    "kvtier load trace.jsonl --tiers storage:local --json",
)

_SAVE_EVERY: Final = 10.0
"""Seconds between two snapshots of the CPU tier: what a process that is killed loses of it."""


def command(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Traces, one after another; - is stdin.")],
    tiers: Annotated[
        str | None,
        typer.Option("--tiers", metavar="FILTER", help=f"Applies to every request. {FILTER_HELP}", show_default=False),
    ] = None,
    payload: Annotated[
        str, typer.Option("--payload", metavar="SIZE", help="Bytes a block, or real: what the block's size comes to.")
    ] = "64",
    workspace: WorkspaceOption = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Tell the seconds it took.")] = False,
) -> int:
    """Replay traces into the workspace: blocks end up in its stores, and stay.

    The figures are those of kvtier replay on tiers that hold what the workspace holds. What is committed stays, however
    the load ends.
    """
    options = shared(ctx)
    payload_bytes = _payload_bytes(payload)
    if tiers == "-" and "-" in files:
        raise InputError("the trace and --tiers both come from stdin", hint="Give the filter as text or @FILE.")
    reading = read_options(trace_format, block_tokens, time_unit, fields=fields)
    with ExitStack() as stack:
        sources = [stack.enter_context(_trace(file, told=reading.format is not None)) for file in files]
        space = stack.enter_context(
            opened(_found_or_made(workspace, options), "kvtier load", write=True, lock_timeout=lock_timeout)
        )
        given = None if tiers is None else given_filter(tiers, space.topology)
        before = _warnings(space, given)
        run, figures, times = _load(
            space, sources, given, options, reading, skip_bad=skip_bad, timed=timing, payload_bytes=payload_bytes
        )
    _show(space, [source.name for source in sources], run, given, figures, before, times, options)
    return ExitStatus.DONE


def _payload_bytes(text: str) -> int | None:
    """The length of a payload in bytes, None for the real one."""
    if text == "real":
        return None
    from kvtier_cli.units import parse_size

    try:
        return parse_size(text)
    except InputError as error:
        raise InputError(f"--payload: {error.message}, or real", hint=error.hint) from error


def _trace(file: str, *, told: bool) -> TraceSource:
    """A trace, opened. `told`: that it is one is known, however it looks."""
    from kvtier_cli.traces.detect import HEAD_BYTES, looks_like_fixture
    from kvtier_cli.traces.source import TraceSource

    source = TraceSource(file)
    if not told and file != "-" and looks_like_fixture(source.head(HEAD_BYTES), file):
        source.close()
        raise InputError("is a scripted fixture, not a trace", file=file, hint="Run it with kvtier replay.")
    return source


def _found_or_made(given: str | None, options: Shared) -> Path:
    """The workspace to load into; the user's own one is made when it is first needed."""
    from kvtier_cli.workspace.found import find_workspace, is_workspace, make_workspace, users_workspace

    path = find_workspace(given)
    if given is None and not is_workspace(path) and path == users_workspace():
        from kvtier_cli.render.console import plain
        from kvtier_cli.tiering.topology import BUILT_IN

        make_workspace(path, BUILT_IN)
        options.stderr().note(f"made a workspace of your own, {plain(str(path))}, with the built-in topology")
    return path


def _warnings(space: Workspace, given: GivenFilter | None) -> list[str]:
    from kvtier_cli.commands.inputs import warnings_before
    from kvtier_cli.workspace.holdings import faults_in_force

    found = [*warnings_before(space.topology, given), *faults_in_force(space.topology)]
    if not space.remembers_losses:
        found.append(
            "what earlier loads evicted is not remembered: an absent block counts as cold, if it was evicted too"
        )
    return found


def _load(
    space: Workspace,
    sources: list[TraceSource],
    given: GivenFilter | None,
    options: Shared,
    reading: TraceOptions,
    *,
    skip_bad: bool,
    timed: bool,
    payload_bytes: int | None,
) -> tuple[TraceRun, dict[str, Any], dict[str, float] | None]:
    """One run, its figures and, if `timed`, the seconds it took."""
    import gc
    from time import monotonic, perf_counter

    from kvtier_cli.render.progress import progress

    gc.set_threshold(200_000, 20, 100)  # as for a replay
    total = sum(source.size for source in sources)
    label = sources[0].name if len(sources) == 1 else f"{len(sources)} traces"
    started = perf_counter()
    with progress(total, label, options.progress) as advance:
        run = space.run(
            sources,
            None if given is None else given.parse.filter,
            reading=reading,
            skip_bad=skip_bad,
            on_bytes=advance,
            timed=timed,
            payload_bytes=payload_bytes,
        )
        saved = monotonic()
        for _ in run.steps():
            if monotonic() - saved > _SAVE_EVERY:
                space.save()
                saved = monotonic()
        figures = run.figures()
    total_seconds = perf_counter() - started
    times = {"read": run.read_seconds, "load": total_seconds - run.read_seconds, "total": total_seconds}
    return run, figures, times if timed else None


def _show(
    space: Workspace,
    names: list[str],
    run: TraceRun,
    given: GivenFilter | None,
    figures: dict[str, Any],
    before: list[str],
    times: dict[str, float] | None,
    options: Shared,
) -> None:
    if options.json:
        from kvtier_cli.commands.replay_traces import run_document
        from kvtier_cli.render.json_out import write
        from kvtier_cli.tiering.topology_write import topology_as_json

        shape = {"name": space.topology.name, **topology_as_json(space.topology)}
        document = run_document(names, run, given, figures, [*before, *run.warnings], times)
        write("load", {"workspace": str(space.path), "topology": shape, **document})
        return
    from kvtier_cli.commands.replay_traces import tell
    from kvtier_cli.render.replay_view import replay_lines

    tell(before, options)
    parse = None if given is None else given.parse
    for line in replay_lines(
        names, figures, space.topology, parse, run.loop.block_tokens, options.stdout(), times, formats=run.formats
    ):
        print(line)
    tell(run.warnings, options)
