"""`kvtier filter`: what vLLM makes of a filter, and which tiers it admits."""

from __future__ import annotations

from typing import Annotated

import typer

from kvtier_cli.commands.inputs import FILTER_HELP, TopologyOption, given_filter, given_tiers
from kvtier_cli.commands.options import shared
from kvtier_cli.errors import ExitStatus

EXAMPLES = (
    """kvtier filter '[{"medium":"storage","locality":"local"}]'""",
    "kvtier filter storage:local --topology kvtier.toml",
    "kvtier filter @request.json --strict",
)


def command(
    ctx: typer.Context,
    load_filter: Annotated[str, typer.Argument(metavar="FILTER", help=FILTER_HELP, show_default=False)],
    topology: TopologyOption = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 1 on a fault: a warning of vLLM's, failing open, an unknown key, a matcher no tier meets.",
        ),
    ] = False,
) -> int:
    """What vLLM makes of a kv_load_tiers filter, and which tiers it admits.

    A request without a filter is `all`, or a body that has no kv_load_tiers. Everything is admitted then, silently.
    """
    options = shared(ctx)
    tiers = given_tiers(topology)
    given = given_filter(load_filter, tiers)
    if options.json:
        from kvtier_cli.render.filter_json import filter_document
        from kvtier_cli.render.json_out import write

        body = filter_document(given.parse, tiers, given.form)
        write("filter", {**body, "topology_warnings": list(tiers.warnings)})
    else:
        from kvtier_cli.render.filter_view import filter_lines, strict_line

        for line in filter_lines(given.parse, tiers, given.form, options.stdout()):
            print(line)
        if strict:
            print(strict_line(given.parse))
        for warning in tiers.warnings:
            options.stderr().warn(warning)
    return ExitStatus.NO if strict and given.parse.faults() else ExitStatus.DONE
