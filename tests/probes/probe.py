"""A command that ends in each way a command can end."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from kvtier_cli.commands.options import shared
from kvtier_cli.errors import ExitStatus, InputError

EXAMPLES = ("kvtier probe one", "kvtier probe 'two  blanks'")


def command(
    ctx: typer.Context, what: str, number: Annotated[int, typer.Option("--number", "-n")] = 0
) -> ExitStatus | None:
    """Does what it is told."""
    if what == "show":
        print(shared(ctx), number)
    elif what == "no":
        return ExitStatus.NO
    elif what == "result-then-remarks":
        print("result")
        shared(ctx).stderr().note("a note")
        shared(ctx).stderr().warn("a warning")
    elif what == "wait":
        print("waiting", flush=True)
        time.sleep(60)
    elif what == "flood":
        sys.stdout.writelines("a line of some length, again and again\n" for _ in range(100_000))
    elif what == "odd-text":
        print("ключ \udc80 …")
    elif what == "wrong-input":
        raise InputError("wrong")
    elif what == "fault":
        raise KeyError("b1")
    return None
