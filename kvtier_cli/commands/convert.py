"""`kvtier convert`: a trace in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.inputs import BlockTokensOption, FieldsOption, TimeUnitOption, read_options
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from kvtier_cli.traces.convert import Conversion

EXAMPLES = (
    "kvtier convert trace.jsonl trace.kvtier.jsonl.gz",
    "kvtier convert --from bailian qwen.jsonl --to mooncake out.jsonl.zst",
    "kvtier convert trace.jsonl --to libcachesim-csv --lossy -",
)


def command(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="IN", help="The trace; - is stdin.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The file; .gz and .zst are packed, - is stdout.")],
    read: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="NAME", help="The format of IN; without it the content tells.", show_default=False
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option("--to", metavar="NAME", help="kvtier, mooncake, bailian, kvcache-simulator or libcachesim-csv."),
    ] = "kvtier",
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Write what the format can hold, even where essentials are lost.")
    ] = False,
) -> None:
    """Write a trace in another format, and tell what is lost on the way."""
    options = shared(ctx)
    if out == "-" and options.json:
        raise InputError("the trace and --json both go to stdout", hint="Name a file for the trace.")
    from kvtier_cli.commands.inputs import refuse_fixture
    from kvtier_cli.commands.outputs import output_file
    from kvtier_cli.render.progress import progress
    from kvtier_cli.traces.convert import Conversion
    from kvtier_cli.traces.pack import packed
    from kvtier_cli.traces.source import TraceSource
    from kvtier_cli.traces.writers import find_writer

    form = find_writer(to, "--to")
    reading = read_options("kvtier" if read == "own" else read, block_tokens, time_unit, fields=fields, option="--from")
    with TraceSource(source) as trace:
        if trace.path and Path(out).is_file() and trace.path.samefile(out):
            raise InputError("is the trace itself, which would be overwritten", file=out)
        if read is None:
            refuse_fixture(trace)
        with progress(2 * trace.size, trace.name, options.progress and out != "-") as advance:
            conversion = Conversion(trace, form, reading, lossy=lossy, skip_bad=skip_bad, on_bytes=advance)
            with output_file(out) as file, packed(file, out) as stream:
                conversion.write(stream)
    _tell(conversion, trace.name, out, options)


def _tell(conversion: Conversion, name: str, out: str, options: Shared) -> None:
    """What was written, and what is lost."""
    lost = conversion.lost
    if options.json:
        from kvtier_cli.render.json_out import write

        body = {
            "in": name,
            "out": out,
            "from": conversion.read_format,
            "to": conversion.to.name,
            "block_tokens": conversion.block_tokens,
            "requests": conversion.requests - conversion.left_out,
            "blocks": conversion.blocks,
            "tags": conversion.tags,
            "lost": [{"field": field, "requests": requests} for field, requests in lost.items()],
            "lost_essentials": conversion.lost_essentials,
            "left_out": conversion.left_out,
            "sorted_from": conversion.sorted_from,
            "warnings": conversion.warnings,
        }
        write("convert", body)
        return
    from kvtier_cli.render.console import plain
    from kvtier_cli.wording import count

    stderr = options.stderr()
    text = (
        f"{count(conversion.requests - conversion.left_out, 'request')}, "
        f"{conversion.read_format} to {conversion.to.name}"
    )
    if not (lost or conversion.lost_essentials or conversion.left_out):
        text += ", nothing is lost"
    if out == "-":
        stderr.note(text)
    else:
        print(f"wrote {plain(out)}: {text}")
    for essential in conversion.lost_essentials:
        stderr.warn(plain(f"lost: {essential}"))
    for field, requests in lost.items():
        stderr.warn(plain(f"lost: {field} of {count(requests, 'request')}"))
    if conversion.left_out:
        stderr.warn(f"left out: {count(conversion.left_out, 'request')} that {conversion.to.name} cannot say")
    if conversion.sorted_from is not None:
        stderr.warn(f"out of order from line {conversion.sorted_from:,} on; the requests were sorted by arrival")
    for warning in conversion.warnings:
        stderr.warn(plain(f"{name}: {warning}"))
    if conversion.tags:
        stderr.note(plain(f"kept as tags: {', '.join(conversion.tags)}"))
