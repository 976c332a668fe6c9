"""`kvtier compare`: several filters, topologies or policies over one trace, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvtier_cli.commands.compare_logs import are_logs, compare_logs
from kvtier_cli.commands.inputs import (
    FILTER_HELP,
    BlockTokensOption,
    FieldsOption,
    FormatOption,
    TimeUnitOption,
    read_options,
    refuse_fixture,
    warnings_before,
)
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.commands.request_options import (
    GivenRules,
    RequestsOption,
    TagOption,
    TiersForOption,
    given_rules,
    rules_as_json,
)
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from kvtier_cli.commands.compare_variants import GivenVariant
    from kvtier_cli.replay.compare import Comparison
    from kvtier_cli.replay.compare_checks import FailOn
    from kvtier_cli.replay.figure_expr import Judged
    from kvtier_cli.traces.options import TraceOptions
    from kvtier_cli.traces.source import TraceSource

EXAMPLES = (
    "kvtier compare trace.jsonl --tiers all --tiers storage:local",
    "kvtier compare trace.jsonl --policy lru --policy arc --primary 5k",
    "kvtier compare trace.jsonl --tiers own --tiers deny --fail-on 'served < -1%'",
)

_MOST_SHOWN = 1_000_000


def command(
    ctx: typer.Context,
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE|LOG...", help="A trace (- is stdin), or two to six decision logs (.kvlog)."),
    ],
    tiers: Annotated[
        list[str] | None,
        typer.Option(
            "--tiers",
            metavar="FILTER",
            help="Applies to every request; own leaves each its own, as does no --tiers at all. " + FILTER_HELP,
            show_default=False,
        ),
    ] = None,
    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology",
            metavar="T",
            help="The tiers: a TOML, JSON or YAML file, or JSON text. Without it KVTIER_TOPOLOGY, else the built-in "
            "topology holds.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="P", help="The CPU tier's: lru or arc.", show_default=False),
    ] = None,
    primary: Annotated[
        list[str] | None,
        typer.Option("--primary", metavar="N", help="The CPU tier's capacity in blocks.", show_default=False),
    ] = None,
    tiers_for: TiersForOption = None,
    requests: RequestsOption = None,
    tag: TagOption = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="EXPR",
            help="Exit with 1 if it holds: 'served < -1%' (of a variant less A), 'B.promoted.s3 > 1000' (of B alone). "
            "Repeatable.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, max=_MOST_SHOWN, help="Requests shown of those that differ.")
    ] = 5,
    offset: Annotated[
        int, typer.Option("--offset", metavar="N", min=0, max=_MOST_SHOWN, help="How many of these to pass over.")
    ] = 0,
    trace_format: FormatOption = None,
    block_tokens: BlockTokensOption = None,
    time_unit: TimeUnitOption = None,
    fields: FieldsOption = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that are no request.")] = False,
) -> int:
    """Compare two to six variants over one trace, in one pass: their figures, and the requests that end otherwise.

    Repeat --tiers, --topology, --policy or --primary: the variants are called A, B, C. What is given once holds for
    all; two options that are both repeated go together in their order. Decision logs of one trace (kvtier replay
    --log) are compared as they are, without a replay.
    """
    options = shared(ctx)
    if are_logs(traces):
        return compare_logs(ctx, options, traces, fail_on or (), limit=limit, offset=offset)
    from kvtier_cli.commands.compare_variants import given_variants

    (trace,) = traces
    if trace == "-" and tiers and "-" in tiers:
        raise InputError("the trace and --tiers both come from stdin", hint="Give the filter as text or @FILE.")
    stdin = [*(["the trace"] if trace == "-" else []), *(["--tiers"] if tiers and "-" in tiers else [])]
    asked = given_rules(tag, tiers_for, requests, stdin=stdin, skip_bad=skip_bad)
    reading = asked.reading(read_options(trace_format, block_tokens, time_unit, fields=fields))
    given = {"--tiers": tiers, "--topology": topology, "--policy": policy, "--primary": primary}
    variants, common = given_variants({option: values or [] for option, values in given.items()})
    common += asked.facts
    demands = _demands(fail_on or [], variants)
    from kvtier_cli.traces.source import TraceSource

    with TraceSource(trace) as source:
        if reading.format is None:
            refuse_fixture(source)
        before = [
            [*warnings_before(variant.topology, variant.given), *asked.warnings(variant.topology)]
            for variant in variants
        ]
        comparison = _run(source, variants, asked, options, reading, keep=offset + limit, skip_bad=skip_bad)
        figures = [run.figures() for run in comparison.runs]
        judged = [(demand, demand.judge(figures)) for demand in demands]
        warnings = [[*early, *run.warnings] for early, run in zip(before, comparison.runs, strict=True)]
        if options.json:
            _write(source.name, variants, asked, comparison, figures, judged, warnings, offset=offset, limit=limit)
        else:
            from kvtier_cli.render.console import plain
            from kvtier_cli.traces.options import option_words

            told = [trace, *option_words(reading, skip_bad=skip_bad), *asked.arguments]
            _print(source.name, told, variants, common, comparison, figures, judged, options, offset=offset)
            for text in [*comparison.reading.warnings, *told_once(warnings)]:  # which repeat names and words of files
                options.stderr().warn(plain(text))
    failed = any(each.holds for _, found in judged for _, each in found)
    return ExitStatus.NO if failed else ExitStatus.DONE


def _demands(texts: Sequence[str], variants: Sequence[GivenVariant]) -> list[FailOn]:
    if not texts:
        return []
    from kvtier_cli.replay.compare_checks import parse_fail_on
    from kvtier_cli.replay.figure_names import FigureNames

    names = [FigureNames(variant.topology) for variant in variants]
    return [parse_fail_on(text, names) for text in texts]


def _run(
    source: TraceSource,
    variants: Sequence[GivenVariant],
    asked: GivenRules,
    options: Shared,
    reading: TraceOptions,
    *,
    keep: int,
    skip_bad: bool,
) -> Comparison:
    import gc

    from kvtier_cli.render.progress import progress
    from kvtier_cli.replay.compare import Comparison, Variant

    gc.disable()  # as of a replay: millions of objects, no cycles
    with ExitStack() as stack:
        advance = stack.enter_context(progress(source.size, source.name, options.progress))
        comparison = Comparison(
            source,
            [
                Variant(
                    each.topology,
                    None if each.given is None else each.given.parse.filter,
                    asked.rules(each.topology).by_tag,
                )
                for each in variants
            ],
            keep=keep,
            block_tokens=_block_tokens(variants),
            reading=reading,
            skip_bad=skip_bad,
            on_bytes=advance,
            log=asked.log,
        )
        comparison.run()
    return comparison


def _block_tokens(variants: Sequence[GivenVariant]) -> int | None:
    """Tokens a block, by the topologies that say so: a trace has blocks of one size. Raises InputError."""
    said = {variant.topology.block.tokens: variant for variant in variants if variant.topology.block.tokens}
    if len(said) > 1:
        told = " and ".join(f"{tokens:,} ({variant.name})" for tokens, variant in list(said.items())[:2])
        raise InputError(
            f"the topologies say blocks of {told} tokens, and a trace has blocks of one size",
            hint="Say the same block.tokens in all, or leave it out where it is not known.",
        )
    return next(iter(said), None)


def told_once(warnings: Sequence[Sequence[str]]) -> list[str]:
    """Each warning once, with the names of the variants that it is about unless it is about all."""
    from kvtier_cli.replay.compare import LETTERS

    about: dict[str, str] = {}
    for letter, texts in zip(LETTERS, warnings, strict=False):
        for text in dict.fromkeys(texts):
            about[text] = about.get(text, "") + letter
    return [text if len(who) == len(warnings) else f"{', '.join(who)}: {text}" for text, who in about.items()]


def _print(
    name: str,
    read: Sequence[str],
    variants: Sequence[GivenVariant],
    common: Sequence[str],
    comparison: Comparison,
    figures: Sequence[dict[str, Any]],
    judged: list[tuple[FailOn, list[tuple[str, Judged]]]],
    options: Shared,
    *,
    offset: int,
) -> None:
    import shlex

    from kvtier_cli.render.compare_view import Shown, compare_lines

    sizes = {variant.topology.block.bytes_per_token for variant in variants}
    per_token = sizes.pop() if len(sizes) == 1 else None
    command = f"kvtier explain {shlex.join(read)}"
    explains = [None if each.explain is None else f"{command} {each.explain}".rstrip() for each in variants]
    shown = Shown(
        title=name,
        labels=[variant.label for variant in variants],
        common=common,
        figures=figures,
        remote_reads=comparison.remote_reads(),
        block_tokens=comparison.block_tokens,
        block_bytes=per_token * comparison.block_tokens if per_token else None,
        differences=comparison.differences,
        page=comparison.differences.worst()[offset:],
        offset=offset,
        explains=explains,
        judged=judged,
    )
    for line in compare_lines(shown, options.stdout()):
        print(line)


def _write(
    name: str,
    variants: Sequence[GivenVariant],
    asked: GivenRules,
    comparison: Comparison,
    figures: Sequence[dict[str, Any]],
    judged: list[tuple[FailOn, list[tuple[str, Judged]]]],
    warnings: Sequence[list[str]],
    *,
    offset: int,
    limit: int,
) -> None:
    from kvtier_cli.render import compare_json as shape
    from kvtier_cli.render.filter_json import filter_as_json
    from kvtier_cli.render.json_out import write
    from kvtier_cli.tiering.topology_file import topology_as_json

    page = comparison.differences.worst()[offset:]
    settings = [
        {
            "topology": {"name": each.topology.name, **topology_as_json(each.topology)},
            "filter": None if each.given is None else filter_as_json(each.given.parse),
            "warnings": told,
        }
        for each, told in zip(variants, warnings, strict=True)
    ]
    labels = [variant.label for variant in variants]
    document = {
        "files": [name],
        "block_tokens": comparison.block_tokens,
        **rules_as_json(asked, variants[0].topology),
        "variants": shape.variants_as_json(labels, settings, figures, comparison.moved(), comparison.remote_reads()),
        "totals": shape.totals_as_json(figures, comparison.differences),
        "offset": offset,
        "limit": limit,
        "requests": shape.requests_as_json(page),
        "differences": shape.differences_as_json(page),
        "fail_on": shape.fail_on_as_json(judged),
        "warnings": comparison.reading.warnings,
    }
    write("compare", document)
