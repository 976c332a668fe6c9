"""The options that every command takes, defined once. Commands do not declare them; they ask `shared(ctx)`.

`lazy.py` adds them to each command. The options of single commands live in the commands' own modules.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Annotated

import typer

from kvtier_cli.render.console import Output, output_for

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress; warnings stay.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="Say more; -vv says most.", show_default=False)
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; NO_COLOR does the same.")]
Ascii = Annotated[bool, typer.Option("--ascii", help="ASCII symbols only; KVTIER_ASCII=1 does the same.")]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="No progress bar.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; so does KVTIER_DEBUG=1.")]


@dataclass(frozen=True, slots=True)
class Shared:
    """The values of the shared options, those before and those after the command's name taken together."""

    json: bool = False
    quiet: bool = False
    verbose: int = 0
    no_color: bool = False
    ascii: bool = False
    no_progress: bool = False
    debug: bool = False

    def stdout(self) -> Output:
        """How results are written; `print()` them."""
        return output_for(
            sys.stdout, no_color=self.no_color, ascii_only=self.ascii, quiet=self.quiet, verbose=self.verbose
        )

    def stderr(self) -> Output:
        """How remarks are written: use its `note` and `warn`."""
        return output_for(
            sys.stderr, no_color=self.no_color, ascii_only=self.ascii, quiet=self.quiet, verbose=self.verbose
        )

    @property
    def progress(self) -> bool:
        """Whether a progress bar is wanted, if the streams are a terminal."""
        return not self.no_progress and not self.quiet


def declare(
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    no_color: NoColor = False,
    ascii: Ascii = False,
    no_progress: NoProgress = False,
    debug: Debug = False,
) -> Shared:
    """The shared options as a signature, from which typer makes its parameters."""
    return Shared(json, quiet, verbose, no_color, ascii, no_progress, debug)


def shared(ctx: typer.Context) -> Shared:
    """The shared options of the command that runs with `ctx`."""
    return ctx.obj if isinstance(ctx.obj, Shared) else Shared()


def merge(outer: Shared, inner: Shared) -> Shared:
    """Both together: a flag given anywhere holds, `-v` adds up."""
    values = {}
    for field in fields(Shared):
        one, other = getattr(outer, field.name), getattr(inner, field.name)
        values[field.name] = one + other if field.name == "verbose" else one or other
    return Shared(**values)
