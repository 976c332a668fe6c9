"""`kvtier synth`: realistic traces of any size from a seed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from kvtier_cli.traces.synth import SynthSpec

EXAMPLES = (
    "kvtier synth --requests 10k -o trace.jsonl",
    "kvtier synth --kind agent --seed 7 --references 10M -o big.jsonl.gz",
    "kvtier synth --tenants 20 --block-tokens 16 | kvtier replay -",
)

FORMATS = ("mooncake", "kvtier", "own")

REQUESTS = 10_000
"""How many are made where nobody says."""

_EVERY = 256
"""Requests between two words to the progress bar."""


def command(
    ctx: typer.Context,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="chat, agent, rag, or mixed of the three.")
    ] = "mixed",
    requests: Annotated[
        str | None,
        typer.Option("--requests", metavar="N", help="So many requests (10k if nothing is said).", show_default=False),
    ] = None,
    references: Annotated[
        str | None,
        typer.Option(
            "--references",
            metavar="N",
            help="Or as many requests as have N blocks together, repeated ones counted each time.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another number, another trace.")] = 1,
    block_tokens: Annotated[int, typer.Option("--block-tokens", metavar="N", help="Tokens a block.")] = 512,
    tenants: Annotated[
        int | None,
        typer.Option(
            "--tenants",
            metavar="N",
            help="So many customers, each with prompts and documents of its own; the field tenant names them.",
            show_default=False,
        ),
    ] = None,
    between: Annotated[
        str, typer.Option("--between", metavar="TIME", help="From one new session to the next, on average.")
    ] = "1s",
    arrivals: Annotated[
        str, typer.Option("--arrivals", metavar="HOW", help="New sessions come in bursts, or poisson: as by chance.")
    ] = "bursts",
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="The file; .gz and .zst are packed, - is stdout.")
    ] = "-",
    written: Annotated[
        str, typer.Option("--format", metavar="NAME", help="mooncake, or kvtier for kvtier's own.")
    ] = "mooncake",
) -> None:
    """Make a realistic trace of any size: sessions that share prompts and documents, and grow turn by turn.

    The same options make the same trace on every machine.
    """
    options = shared(ctx)
    if requests is not None and references is not None:
        raise InputError("--requests and --references both say how much", hint="Give one of the two.")
    if out == "-" and options.json:
        raise InputError("the trace and --json both go to stdout", hint="Name a file for the trace with --out.")
    if written not in FORMATS:
        from kvtier_cli.wording import did_you_mean, shown

        raise InputError(f"--format: no traces are made as {shown(written)}", hint=did_you_mean(written, FORMATS))
    from kvtier_cli.traces.synth import SynthSpec
    from kvtier_cli.units import parse_time

    spec = SynthSpec(kind, seed, block_tokens, tenants, round(parse_time(between) * 1000), arrivals)
    blocks = None if references is None else _many("--references", references)
    limit = None if blocks is not None else REQUESTS if requests is None else _many("--requests", requests)
    _make(spec, limit, blocks, written, out, options)


def _many(option: str, text: str) -> int:
    """The number of an option such as `10k`, 1 at least."""
    from kvtier_cli.units import parse_count

    number = parse_count(text)
    if not number:
        raise InputError(f"{option} 0 would be no trace; expected 1 or more")
    return number


def _make(spec: SynthSpec, limit: int | None, references: int | None, written: str, out: str, options: Shared) -> None:
    """Writes the trace, then says what it is: on stdout where the trace is not."""
    import gc

    from kvtier_cli.commands.outputs import output_file
    from kvtier_cli.render.progress import progress
    from kvtier_cli.traces.pack import packed
    from kvtier_cli.traces.synth import requests
    from kvtier_cli.traces.writers import find_writer

    gc.disable()  # nothing that is made here refers to itself
    writer_class = find_writer(written, "--format").writer_class()
    made = blocks = distinct = told = 0
    last: int | float = 0
    with ExitStack() as stack:
        stream = stack.enter_context(packed(stack.enter_context(output_file(out)), out))
        writer = writer_class(stream, spec.block_tokens, tag_names=() if spec.tenants is None else ("tenant",))
        unit, total = ("blocks", references) if limit is None else ("requests", limit)
        advance = stack.enter_context(progress(total, "synth", options.progress and out != "-", unit=unit))
        for request in requests(spec, limit=limit, references=references):
            writer.write(request)
            made += 1
            blocks += len(request.hash_ids)
            newest = request.hash_ids[-1]
            distinct = max(distinct, newest + 1)  # type: ignore[operator]
            last = request.timestamp or 0
            if made % _EVERY == 0:
                done = blocks if limit is None else made
                advance(done - told)
                told = done
    if options.json:
        from kvtier_cli.render.json_out import write

        figures = {"requests": made, "blocks": blocks, "distinct_blocks": distinct, "last_timestamp_ms": last}
        write(
            "synth", {"out": out, "format": "kvtier" if written == "own" else written, "spec": spec, "figures": figures}
        )
        return
    from kvtier_cli.render.console import plain
    from kvtier_cli.wording import count

    text = (
        f"{count(made, 'request')} ({spec.kind}, seed {spec.seed}), {count(blocks, 'block')}, "
        f"{100 * distinct / blocks:.1f} % distinct"
    )
    if out == "-":
        options.stderr().note(text)
    else:
        print(f"wrote {plain(out)}: {text}")
