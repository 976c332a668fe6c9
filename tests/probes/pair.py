"""A command with two subcommands."""

from __future__ import annotations

import typer

from kvtier_cli.commands.options import shared

command = typer.Typer(help="Two of them.")
WITHOUT = ("no_progress",)


@command.command()
def show(ctx: typer.Context) -> None:
    """Shows."""
    print(shared(ctx))


@command.command()
def check(name: str) -> None:
    """Checks."""
    print("checked", name)
