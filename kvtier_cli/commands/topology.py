"""`kvtier topology`: show the tiers in force, check a topology file."""

from __future__ import annotations

from typing import Annotated

import typer

from kvtier_cli.commands.inputs import TopologyOption, given_topology
from kvtier_cli.commands.lazy import examples_text
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.errors import ExitStatus, InputError
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_checks import topology_warnings

EXAMPLES = (
    "kvtier topology show",
    "kvtier topology show --toml > kvtier.toml",
    "kvtier topology check kvtier.toml --strict",
)
WITHOUT = ("no_progress",)

command = typer.Typer(help="The tiers in force: show them, check a topology file.")


@command.command(epilog=examples_text(EXAMPLES[:2]))
def show(
    ctx: typer.Context,
    topology: TopologyOption = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print it as a topology file to start from.")] = False,
) -> int:
    """The tiers in lookup order, and their settings."""
    options = shared(ctx)
    if toml and options.json:
        raise InputError("--toml and --json are two forms of one answer, give one of them")
    found = given_topology(topology)
    if options.json:
        from kvtier_cli.render.json_out import write
        from kvtier_cli.tiering.topology_write import topology_as_json

        body = {"name": found.name, "topology": topology_as_json(found), "warnings": topology_warnings(found)}
        write("topology", body)
    elif toml:
        from kvtier_cli.tiering.topology_write import topology_as_toml

        print(topology_as_toml(found), end="")
    else:
        from kvtier_cli.render.topology_view import topology_lines

        for line in topology_lines(found, options.stdout()):
            print(line)
    if not options.json:
        _warn(options, found)
    return ExitStatus.DONE


@command.command(epilog=examples_text(EXAMPLES[2:]))
def check(
    ctx: typer.Context,
    topology: Annotated[
        str, typer.Argument(metavar="T", help="A TOML, JSON or YAML file, or JSON text.", show_default=False)
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there is a warning.")] = False,
) -> int:
    """Whether a topology can be read, and what is odd about it."""
    options = shared(ctx)
    found = given_topology(topology)
    warnings = topology_warnings(found)
    if options.json:
        from kvtier_cli.render.json_out import write

        body = {"name": found.name, "ok": not warnings, "tiers": len(found.tiers), "warnings": warnings}
        write("topology-check", body)
    else:
        from kvtier_cli.render.console import plain

        count = len(found.tiers)
        word = options.stdout().style("warn" if warnings else "ok", "warning" if warnings else "good")
        print(f"{word}  {plain(found.name)}  the primary and {count:,} secondary tier{'' if count == 1 else 's'}")
        _warn(options, found)
    return ExitStatus.NO if strict and warnings else ExitStatus.DONE


def _warn(options: Shared, topology: Topology) -> None:
    for warning in topology_warnings(topology):
        options.stderr().warn(warning)
