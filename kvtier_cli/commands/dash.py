"""`kvtier dash`: the dashboard, in the terminal or served to a browser."""

from __future__ import annotations

import sys
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
    given_filter,
    given_topology,
    read_options,
)
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.errors import EnvironmentFault, ExitStatus, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvtier_cli.traces.options import TraceOptions
    from tui.session.opening import Asked

EXAMPLES = (
    "kvtier dash",
    "kvtier dash trace.jsonl --tiers storage:local",
    "kvtier dash bug.yaml",
    "kvtier dash trace.jsonl --web --port 8000",
)
WITHOUT = ("json", "quiet", "verbose", "no_progress")


def command(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A trace (- is stdin), a .kvlog, a scripted fixture or a workspace. Without it your workspace, or the "
            "demo.",
            show_default=False,
        ),
    ] = None,
    tiers: Annotated[
        str | None,
        typer.Option("--tiers", metavar="FILTER", help=f"Applies to every request. {FILTER_HELP}", show_default=False),
    ] = None,
    topology: TopologyOption = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace", metavar="DIR", envvar="KVTIER_WORKSPACE", help="The workspace to show.", show_default=False
        ),
    ] = None,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    theme: Annotated[
        str | None,
        typer.Option(
            "--theme",
            metavar="NAME",
            help="dark, light, colour-blind or terminal; else that of your config.toml, else dark.",
            show_default=False,
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Serve it to a browser instead of the terminal.")] = False,
    host: Annotated[str, typer.Option("--host", help="Where --web listens; others can then use it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port of --web.")] = 8000,
) -> int:
    """Watch a replay: play it, step, seek, change the filter, and see for each block what was served and why not.

    Opens on the shipped demo without a file and a workspace. ? shows all keys. Nothing is written but what you export.
    """
    options = shared(ctx)
    if file == "-" and tiers == "-":
        raise InputError("the trace and --tiers both come from stdin", hint="Give the filter as text or @FILE.")
    _check_theme(theme)
    reading = read_options(trace_format, block_tokens, time_unit, fields=fields)
    if web:
        if file == "-":
            raise InputError("--web cannot read a trace from stdin", hint="Give it a file.")
        options_given = {"--tiers": tiers, "--topology": topology, "--workspace": workspace, "--theme": theme}
        options_given |= {"--format": trace_format, "--time-unit": time_unit, "--fields": fields}
        options_given["--block-tokens"] = None if block_tokens is None else str(block_tokens)
        return _serve(file, options_given, host, port, skip_bad=skip_bad, ascii_only=options.ascii)
    _require_terminal(file)
    asked = _asked(ctx, file, tiers, topology, workspace, reading, skip_bad=skip_bad)
    return _show(asked, options, theme)


def _check_theme(theme: str | None) -> None:
    from kvtier_cli.wording import did_you_mean
    from tui.names import THEMES

    if theme is not None and theme not in THEMES:
        raise InputError(f'there is no theme "{theme}"', hint=did_you_mean(theme, THEMES))


def _require_terminal(file: str | None) -> None:
    import os

    if os.environ.get("TEXTUAL_DRIVER"):  # a browser's
        return
    streams = [("stdout", sys.stdout), ("stderr", sys.stderr)]  # the screen is drawn on stderr
    if file != "-":
        streams.insert(0, ("stdin", sys.stdin))
    missing = [name for name, stream in streams if stream is None or not stream.isatty()]
    if not missing and os.environ.get("TERM") != "dumb":
        return
    what = f"{missing[0]} is none" if missing else "TERM says that this one is dumb"
    instead = "kvtier replay FILE, kvtier lookup --trace FILE --request ID, kvtier explain FILE --request ID"
    raise EnvironmentFault(f"the dashboard needs a terminal, and {what}", hint=f"Without one: {instead}.")


def _asked(
    ctx: typer.Context,
    file: str | None,
    tiers: str | None,
    topology: str | None,
    workspace: str | None,
    reading: TraceOptions,
    *,
    skip_bad: bool,
) -> Asked:
    from tui.session.opening import Asked

    source = ctx.get_parameter_source("topology")
    typed = source is not None and source.name == "COMMANDLINE"
    chosen = given_topology(topology) if topology is not None else None
    parse, text = None, ""
    if tiers is not None:
        from kvtier_cli.tiering.topology import BUILT_IN

        parse = given_filter(tiers, chosen or BUILT_IN).parse
        text = tiers if not tiers.startswith(("@", "-")) else parse.filter.short()
    place: Path | None = None
    if file is None:
        from kvtier_cli.workspace.found import find_workspace, is_workspace

        place = find_workspace(workspace)
        if workspace is None and not is_workspace(place):
            place = None
        if place is not None and typed:
            raise InputError("--topology does not apply to a workspace, which has its own", hint="Give a trace.")
    elif workspace is not None and ctx.get_parameter_source("workspace").name == "COMMANDLINE":  # type: ignore[union-attr]
        raise InputError("a file and --workspace", hint="Give one of them.")
    if chosen is not None and not typed and place is not None:
        chosen = None
    return Asked(file, parse, text, chosen, place, skip_bad, reading)


def _show(asked: Asked, options: Shared, theme: str | None) -> int:
    import os

    from tui.run import run_dashboard

    if options.no_color:
        os.environ["NO_COLOR"] = "1"  # the one word for it that Textual knows

    out = options.stdout()
    return run_dashboard(asked, out, theme=theme)


def _serve(
    file: str | None, given: Mapping[str, str | None], host: str, port: int, *, skip_bad: bool, ascii_only: bool
) -> int:
    try:
        import textual_serve  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise EnvironmentFault(
            "--web needs the package textual-serve, which is not installed",
            hint="Install it with pip install 'kvtier[web]'.",
        ) from None
    from tui.web import serve

    arguments = [f"{option}={value}" for option, value in given.items() if value is not None]
    arguments += ["--skip-bad"] * skip_bad + ["--ascii"] * ascii_only
    serve(arguments if file is None else [*arguments, "--", file], host, port)
    return ExitStatus.DONE
