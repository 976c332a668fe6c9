"""The half of `kvtier replay` that runs traces and tells what came of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvtier_cli.commands.inputs import GivenFilter, warnings_before
from kvtier_cli.commands.options import Shared
from kvtier_cli.commands.request_options import NO_GIVEN_RULES, GivenRules, Groups, groups_of, rules_as_json

if TYPE_CHECKING:
    from kvtier_cli.render.junit import Suite
    from kvtier_cli.replay.checks import Checks
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import Topology
    from kvtier_cli.traces.options import TraceOptions
    from kvtier_cli.traces.source import TraceSource


def replay_traces(
    traces: list[TraceSource],
    topology: Topology,
    given: GivenFilter | None,
    asked: GivenRules,
    options: Shared,
    reading: TraceOptions,
    *,
    top: int,
    join: bool,
    skip_bad: bool,
    events: str | None,
    log: str | None,
    store: str | None,
    timing: bool,
    checks: Checks | None,
    suites: list[Suite],
) -> bool:
    """Prints what came of each run. Returns whether its figures passed the checks, if there are any."""
    from kvtier_cli.commands.replay_checks import Verdicts
    from kvtier_cli.tiering.topology_file import topology_as_json

    runs = [traces] if join else [[trace] for trace in traces]
    documents = []
    shape = {"name": topology.name, **topology_as_json(topology)}
    verdicts = Verdicts(checks, suites, shape, [[source.name for source in sources] for sources in runs])
    before = [*warnings_before(topology, given), *asked.warnings(topology)]
    # Where the events or the log have stdout, the summary makes way.
    stream, out = (sys.stderr, options.stderr()) if "-" in (events, log) else (sys.stdout, options.stdout())
    if not options.json:
        tell(before, options)
    for position, sources in enumerate(runs):
        names = [source.name for source in sources]
        logged = None
        if log is not None:
            from kvtier_cli.commands.replay_log import about_run, logging

            for_all = None if asked.by_tag else given  # else the log says of each request which filter held
            logged = partial(logging, out=log, about=about_run(names, topology, for_all, before))
        run, figures, times, groups = _replay(
            sources,
            topology,
            given,
            asked,
            options,
            reading,
            skip_bad=skip_bad,
            events=events,
            logged=logged,
            store=store,
            timed=timing,
        )
        document = run_document(
            names, run, given, figures, [*before, *run.warnings], times, asked=asked, groups=groups.as_json(top)
        )
        document |= verdicts.judge(position, document)
        if options.json:
            documents.append(document)
        else:
            from kvtier_cli.render.replay_view import replay_lines
            from kvtier_cli.tiering.filters import MISSING

            if position:
                print(file=stream)
            parse = None if given is None else given.parse
            own = any(each.raw is not MISSING for _, each in run.own_filters())
            shown = replay_lines(
                names,
                figures,
                topology,
                parse,
                run.loop.block_tokens,
                out,
                times,
                formats=run.formats,
                own_filters=own,
                rules=asked.facts,
                groups=groups.lines(top, out),
            )
            for line in shown:
                print(line, file=stream)
            for line in verdicts.lines(out):
                print(line, file=stream)
            tell(run.warnings, options)
            for note in verdicts.notes:
                options.stderr().note(note)
    if options.json:
        from kvtier_cli.render.json_out import write

        write("replay", {"topology": shape, **(documents[0] if len(documents) == 1 else {"runs": documents})})
    return verdicts.passed


def tell(texts: Iterable[str], options: Shared) -> None:
    """Warn of what `texts` say."""
    from kvtier_cli.render.console import plain

    for text in texts:  # which repeat names and words of files
        options.stderr().warn(plain(text))


def _replay(
    sources: list[TraceSource],
    topology: Topology,
    given: GivenFilter | None,
    asked: GivenRules,
    options: Shared,
    reading: TraceOptions,
    *,
    skip_bad: bool,
    events: str | None,
    logged: Callable[[TraceRun], AbstractContextManager[Callable[[dict[str, Any]], None]]] | None,
    store: str | None,
    timed: bool,
) -> tuple[TraceRun, dict[str, Any], dict[str, float] | None, Groups]:
    """One run, its figures, if `timed` the seconds it took, and the groups that were asked for."""
    import gc
    from time import perf_counter

    from kvtier_cli.render.progress import progress
    from kvtier_cli.replay.trace_run import TraceRun

    # A replay makes millions of objects and no cycles: looking for some again and again takes a twentieth of the time.
    gc.disable()
    total = sum(source.size for source in sources)
    label = sources[0].name if len(sources) == 1 else f"{len(sources)} traces"
    started = perf_counter()
    with ExitStack() as stack:
        kept = None
        if store is not None:
            from kvtier_cli.workspace.kept import tiers_in

            kept = stack.enter_context(tiers_in(Path(store), topology))
        advance = stack.enter_context(progress(total, label, options.progress))
        run = TraceRun(
            sources,
            topology,
            None if given is None else given.parse.filter,
            reading=reading,
            skip_bad=skip_bad,
            on_bytes=advance,
            events=events is not None,
            timed=timed,
            kept=kept,
            rules=asked.rules(topology),
        )
        groups = groups_of(run, asked)
        if events is not None:
            from kvtier_cli.commands.outputs import output_file
            from kvtier_cli.replay.event_log import EventLog

            file = stack.enter_context(output_file(events))
            run.listen(
                EventLog(file, run.manager.take_events, run.loop.text_keys or run.loop.table, run.arrival_seconds)
            )
        finish_log = None if logged is None else stack.enter_context(logged(run))
        figures = run.run()
        if finish_log is not None:
            finish_log(figures)
        if events is not None:
            # The figures are those at the last request's end; a server's next steps publish what was still on its way.
            while run.manager.transfers.jobs:
                run.manager.on_schedule_end()
    total_seconds = perf_counter() - started
    replaying = total_seconds - run.read_seconds
    times = {"read": run.read_seconds, "replay": replaying, "total": total_seconds} if timed else None
    return run, figures, times, groups


def run_document(
    names: list[str],
    run: TraceRun,
    given: GivenFilter | None,
    figures: dict[str, Any],
    warnings: list[str],
    times: dict[str, float] | None,
    *,
    asked: GivenRules = NO_GIVEN_RULES,
    groups: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What `--json` says of one run."""
    from kvtier_cli.render.filter_json import filter_as_json

    document: dict[str, Any] = {
        "files": names,
        "formats": run.formats,
        "block_tokens": run.loop.block_tokens,
        "filter": None if given is None else filter_as_json(given.parse),
        **rules_as_json(asked, run.topology),
        "figures": figures,
        "groups": groups,
        "warnings": warnings,
    }
    if times is not None:
        document["timing"] = times
    return document
