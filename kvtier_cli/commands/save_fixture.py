"""`--save-fixture`, for the commands that tell the story of one request of a trace."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.inputs import filter_file, refuse_to_overwrite
from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from kvtier_cli.commands.options import Shared
    from kvtier_cli.replay.slice import Slice
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.filters import FilterParse
    from kvtier_cli.traces.source import TraceSource

SaveFixtureOption = Annotated[
    str | None,
    typer.Option(
        "--save-fixture",
        metavar="OUT",
        help="Save the request as a scripted fixture, with what it takes of the state before it to end as it did.",
        show_default=False,
    ),
]


def check_target(
    path: str | None, *, request: str | None, trace: str | None, topology: str | None, tiers: str | None
) -> None:
    """Raises InputError where there is nothing to save, or where it would get into the answer, or in the place of what
    is read."""
    if path is None:
        return
    if request is None:
        raise InputError("--save-fixture saves a request of a trace", hint="Give --trace FILE --request ID with it.")
    if path == "-":
        raise InputError("--save-fixture cannot write to stdout, where the answer goes", hint="Give a file's name.")
    refuse_to_overwrite(
        {"trace": [trace], "topology": [topology], "filter": [filter_file(tiers)]}, path, "--save-fixture"
    )


def save(run: TraceRun, index: int, parse: FilterParse | None, source: TraceSource) -> Slice:
    """Replay what is before request `index` and that request, under `parse` or else its own filter, and save it."""
    from kvtier_cli.replay.slice import save_request

    note = None if parse is None else "Its filter is not the trace's: it was given with --tiers."
    return save_request(run, index, parse, trace=PurePath(source.name).name, note=note)


def write_fixture(path: str, saved: Slice, options: Shared) -> None:
    """Write the file, and say on stderr what is in it."""
    import shlex

    from kvtier_cli.commands.outputs import output_file
    from kvtier_cli.render.console import plain

    with output_file(path) as file:
        file.write(saved.text.encode("utf-8"))
    options.stderr().note(
        plain(
            f"{path}: the request with {saved.blocks_kept:,} of the {saved.blocks_before:,} blocks that the tiers had; "
            f"replay it with: kvtier replay {shlex.quote(path)}"
        )
    )
