"""The options by which commands take filters, topologies and traces, and what they read from them. Prints nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.filters import FilterParse, lint_against, parse_tier_filter
from kvtier_cli.tiering.topology import BUILT_IN, Tiers, Topology

if TYPE_CHECKING:
    from kvtier_cli.tiering.vllm.capacity import Sizes
    from kvtier_cli.tiering.vllm.imported import VllmTopology
    from kvtier_cli.traces.options import TimeUnit, TraceOptions
    from kvtier_cli.traces.source import TraceSource

FILTER_HELP = (
    "JSON as vLLM takes it (kv_load_tiers, kv_transfer_params or a whole request body), or short: "
    "storage:local,cpu, all, deny. @FILE reads a file, - stdin."
)

TopologyOption = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="T",
        envvar="KVTIER_TOPOLOGY",
        help="The tiers: a TOML, JSON or YAML file, JSON text, or vLLM's own: its --kv-transfer-config or the whole "
        "vllm serve command. Without it the built-in topology holds.",
        show_default=False,
    ),
]


FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="The format of the traces; without it their content tells.", show_default=False
    ),
]
BlockTokensOption = Annotated[
    int | None,
    typer.Option(
        "--block-tokens", metavar="N", help="Tokens a block, where a trace does not state them.", show_default=False
    ),
]
TimeUnitOption = Annotated[
    str | None,
    typer.Option(
        "--time-unit",
        metavar="s|ms|us",
        help="Of a trace's times, where its format leaves that open.",
        show_default=False,
    ),
]
FieldsOption = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="NAME=FIELD,...",
        help="What a trace of any other JSON lines calls hash_ids, input_length, timestamp and so on.",
        show_default=False,
    ),
]


def read_options(
    trace_format: str | None,
    block_tokens: int | None,
    time_unit: str | None,
    tags: Sequence[str] = (),
    fields: str | None = None,
    option: str = "--format",
) -> TraceOptions:
    """What `--format`, `--block-tokens`, `--time-unit` and `--fields` say about how traces are read.

    `option` is what the format was given by. Raises InputError.
    """
    from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions, parse_fields

    if trace_format is None and block_tokens is None and time_unit is None and fields is None and not tags:
        return AS_IT_SAYS
    if trace_format is not None or fields is not None:
        from kvtier_cli.traces.formats import TIMED_TRACE, find_format

        trace_format = find_format(trace_format or TIMED_TRACE, option).name
    named = () if fields is None else parse_fields(fields)
    return TraceOptions(trace_format, block_tokens, cast("TimeUnit | None", time_unit), tuple(tags), named)


@dataclass(frozen=True, slots=True)
class GivenFilter:
    """A FILTER argument, read: how it was given ("json", "short form", "request body", …), and how vLLM reads it."""

    form: str
    parse: FilterParse


def given_topology(option: str | None) -> Topology:
    """The topology that `--topology` names, else the built-in one. Raises InputError."""
    if option is None:
        return BUILT_IN
    found = given_tiers(option)
    return found if isinstance(found, Topology) else found.topology()


def given_tiers(option: str | None) -> Topology | VllmTopology:
    """As `given_topology`, for what needs not know how many blocks the CPU tier of vLLM's configuration holds."""
    if option is None:
        return BUILT_IN
    from kvtier_cli.tiering.topology_file import load_any_topology

    return load_any_topology(option, _sizes_from_variables())


def _sizes_from_variables() -> Sizes | None:
    from kvtier_cli.commands.size_options import VARIABLES, given_sizes

    return given_sizes() if any(os.environ.get(name) for name in VARIABLES.values()) else None


def given_filter(argument: str, topology: Tiers) -> GivenFilter:
    """The filter of a FILTER argument, with its lint against the tiers of `topology`. Raises InputError."""
    return linted(read_filter(argument), topology)


def read_filter(argument: str) -> GivenFilter:
    """The filter of a FILTER argument, which no topology was looked at for. Raises InputError."""
    from kvtier_cli.tiering.filter_text import read_filter_argument

    source = read_filter_argument(argument, _stdin)
    parse = parse_tier_filter(source.raw)
    return GivenFilter(source.form, replace(parse, lint=source.lint + parse.lint))


def linted(given: GivenFilter, topology: Tiers) -> GivenFilter:
    """The filter with its lint against the tiers of `topology`."""
    return replace(given, parse=lint_against(given.parse, topology.tiers))


def _stdin() -> bytes:
    from kvtier_cli.tiering.text_file import LIMIT

    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- reads the filter from stdin, which is a terminal", hint="Pipe it in, or use @FILE.")
    return sys.stdin.buffer.read(LIMIT + 1)


def warnings_before(topology: Topology, given: GivenFilter | None) -> list[str]:
    """What may well make the result another one than was meant."""
    from kvtier_cli.tiering.topology_checks import topology_warnings

    found = topology_warnings(topology)
    if given is not None:
        for note in given.parse.faults():
            where = "the filter" if note.index is None else f"entry {note.index} of the filter"
            message = note.message if note.message.startswith(where) else f"{where}: {note.message}"
            found.append(message + (f", {note.hint}" if note.hint else ""))
    return found


def refuse_fixture(source: TraceSource) -> None:
    """Raise InputError where a trace is asked for and a scripted fixture is given."""
    from kvtier_cli.traces.detect import HEAD_BYTES, looks_like_fixture

    if looks_like_fixture(source.head(HEAD_BYTES), source.name):
        import shlex

        run = f"kvtier replay {shlex.quote(source.name)}" if source.path else "kvtier replay FILE"
        raise InputError("is a scripted fixture, not a trace", file=source.name, hint=f"Run it with {run}.")


def refuse_to_overwrite(read: Mapping[str, Sequence[str | None]], out: str, option: str) -> None:
    """Raises InputError where `out`, which `option` names, is one of the files that are read, which are given by what
    they are. What is no file (stdin, JSON text, None) is passed over."""
    for kind, given in read.items() if out != "-" else ():
        for path in given:
            with contextlib.suppress(OSError, ValueError):  # too long for a name, or with a NUL in it: no file
                if path and Path(out).is_file() and Path(path).is_file() and Path(path).samefile(out):
                    raise InputError(f"is the {kind} itself, which {option} would overwrite", file=out)


def filter_file(argument: str | None) -> str | None:
    """The file that a FILTER argument reads, None where it reads none."""
    return argument[1:] if argument is not None and argument.startswith("@") else None
