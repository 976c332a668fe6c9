"""Which options make no sense for a decision log: all that a replay would need, named when they are given."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

import typer

from kvtier_cli.commands.options import Shared
from kvtier_cli.errors import InputError


def refuse_replay_options(ctx: typer.Context, file: str, taken: Collection[str]) -> None:
    """Raise InputError for an option on the command line that is neither shared by all commands nor among those that
    are `taken` of a log, by their parameters' names. What stands in a variable is passed over."""
    known = {*taken, *(field.name for field in fields(Shared))}
    for parameter in ctx.command.params:
        if parameter.name is None or parameter.name in known:
            continue
        source = ctx.get_parameter_source(parameter.name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} needs a replay, and this is the log of one that is over",
                file=file,
                hint="Leave it out, or give the trace.",
            )
