"""`kvtier topology`: show the tiers in force, check a topology, make one of vLLM's configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.inputs import TopologyOption
from kvtier_cli.commands.lazy import examples_text
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.commands.size_options import BlockSize, BytesPerToken, KvCacheDtype, Metrics, ModelConfig, given_sizes
from kvtier_cli.errors import ExitStatus, InputError
from kvtier_cli.tiering.topology import BUILT_IN, Topology
from kvtier_cli.tiering.topology_checks import topology_warnings

if TYPE_CHECKING:
    from kvtier_cli.tiering.vllm.imported import VllmTopology

EXAMPLES = (
    "kvtier topology show",
    "kvtier topology show --toml > kvtier.toml",
    "kvtier topology check kvtier.toml --strict",
    "kvtier topology import serve.sh --model-config config.json -o kvtier.toml",
    "kvtier topology import - --bytes-per-token 128KiB < vllm.json",
)
WITHOUT = ("no_progress",)

command = typer.Typer(help="The tiers in force: show them, check them, import vLLM's.")

_GivenTopology = Annotated[
    str,
    typer.Argument(
        metavar="T",
        help="A TOML, JSON or YAML file, JSON text, or vLLM's own configuration as a file or text; - is stdin.",
        show_default=False,
    ),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if there is a warning.")]


@command.command(epilog=examples_text(EXAMPLES[:2]))
def show(
    ctx: typer.Context,
    topology: TopologyOption = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print it as a topology file to start from.")] = False,
    bytes_per_token: BytesPerToken = None,
    model_config: ModelConfig = None,
    metrics: Metrics = None,
    block_size: BlockSize = None,
    kv_cache_dtype: KvCacheDtype = None,
) -> int:
    """The tiers in lookup order, and their settings."""
    options = shared(ctx)
    if toml and options.json:
        raise InputError("--toml and --json are two forms of one answer, give one of them")
    found = _given(topology, _sizes(bytes_per_token, model_config, metrics, block_size, kv_cache_dtype))
    if options.json:
        from kvtier_cli.render.json_out import write
        from kvtier_cli.tiering.topology_write import topology_as_json

        body = {"name": found.name, "topology": topology_as_json(found), "warnings": topology_warnings(found)}
        if not isinstance(found, Topology):
            from kvtier_cli.render.imported_view import imported_document

            body |= imported_document(found)
        write("topology", body)
    elif toml:
        sys.stdout.write(_as_toml(found))
    else:
        _print(found, options)
    if not options.json:
        _warn(options, found)
    return ExitStatus.DONE


@command.command(epilog=examples_text(EXAMPLES[2:3]))
def check(
    ctx: typer.Context,
    topology: _GivenTopology,
    strict: _Strict = False,
    bytes_per_token: BytesPerToken = None,
    model_config: ModelConfig = None,
    metrics: Metrics = None,
    block_size: BlockSize = None,
    kv_cache_dtype: KvCacheDtype = None,
) -> int:
    """Whether a topology can be read, and what is odd about it.

    What vLLM would refuse of its own configuration is an error; what it would swallow silently, a warning.
    """
    options = shared(ctx)
    found = _given(topology, _sizes(bytes_per_token, model_config, metrics, block_size, kv_cache_dtype), stdin=True)
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


@command.command("import", epilog=examples_text(EXAMPLES[3:]))
def import_(
    ctx: typer.Context,
    config: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TEXT|-",
            help="A --kv-transfer-config, a kv_connector_extra_config, a vllm serve command or its --config file.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the topology file there.", show_default=False),
    ] = None,
    strict: _Strict = False,
    bytes_per_token: BytesPerToken = None,
    model_config: ModelConfig = None,
    metrics: Metrics = None,
    block_size: BlockSize = None,
    kv_cache_dtype: KvCacheDtype = None,
) -> int:
    """Make a topology file of vLLM's own configuration, and show how its CPU tier's blocks were counted.

    Tiers are named as vLLM's metrics label them. Nothing in the configuration is executed.
    """
    options = shared(ctx)
    if out == "-" and options.json:
        raise InputError("--out - and --json both write to stdout", hint="Give --out a file.")
    found = _given(config, _sizes(bytes_per_token, model_config, metrics, block_size, kv_cache_dtype), stdin=True)
    if isinstance(found, Topology):
        raise InputError("is a topology of kvtier's already: there is nothing to import", file=found.name)
    toml = _as_toml(found)
    warnings = topology_warnings(found.topology())
    if out not in (None, "-"):
        _write(toml, str(out), config)
    if options.json:
        from kvtier_cli.render.imported_view import imported_document
        from kvtier_cli.render.json_out import write

        write("topology-import", {**imported_document(found), "warnings": warnings, "out": out})
    elif out in (None, "-"):
        sys.stdout.write(toml)
    else:
        _print(found, options)
    if not options.json:
        _warn(options, found)
        if out not in (None, "-"):
            options.stderr().note(f"written to {out}")
    return ExitStatus.NO if strict and warnings else ExitStatus.DONE


def _sizes(
    bytes_per_token: str | None,
    model_config: str | None,
    metrics: str | None,
    block_size: str | None,
    kv_cache_dtype: str | None,
) -> dict[str, str]:
    """The options that were given, by the fields of `Sizes`."""
    given = {
        "bytes_per_token": bytes_per_token,
        "model_config": model_config,
        "metrics": metrics,
        "block_size": block_size,
        "kv_cache_dtype": kv_cache_dtype,
    }
    return {key: value for key, value in given.items() if value is not None}


def _given(topology: str | None, given: dict[str, str], *, stdin: bool = False) -> Topology | VllmTopology:
    from kvtier_cli.tiering.topology_file import load_any_topology, read_any_topology

    sizes = given_sizes(given)
    found: Topology | VllmTopology
    if topology is None:
        found = BUILT_IN
    elif topology == "-" and stdin:
        found = read_any_topology(_stdin(), "stdin", sizes)
    else:
        found = load_any_topology(topology, sizes)
    if given and isinstance(found, Topology):
        name = f"--{next(iter(given)).replace('_', '-')}"
        raise InputError(f"{name} is for vLLM's own configuration, a topology of kvtier's states its own sizes")
    return found


def _stdin() -> str:
    from kvtier_cli.tiering.text_file import decode_text
    from kvtier_cli.tiering.topology_file import LIMIT

    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- reads the topology from stdin, which is a terminal", hint="Pipe it in, or give a file.")
    return decode_text(sys.stdin.buffer.read(LIMIT + 1), "stdin", limit=LIMIT)


def _as_toml(found: Topology | VllmTopology) -> str:
    if isinstance(found, Topology):
        from kvtier_cli.tiering.topology_write import topology_as_toml

        return topology_as_toml(found)
    from kvtier_cli.tiering.vllm.imported import imported_as_toml

    return imported_as_toml(found)


def _write(toml: str, out: str, config: str) -> None:
    from kvtier_cli.commands.outputs import output_file

    source = config.removeprefix("@")
    if os.path.isfile(source) and os.path.exists(out) and os.path.samefile(source, out):  # noqa: PTH110, PTH113, PTH121
        raise InputError("is the configuration itself, which --out would overwrite", file=out)
    with output_file(out) as file:
        file.write(toml.encode())


def _print(found: Topology | VllmTopology, options: Shared) -> None:
    from kvtier_cli.render.topology_view import topology_lines

    for line in topology_lines(found, options.stdout()):
        print(line)
    if not isinstance(found, Topology):
        from kvtier_cli.render.imported_view import imported_lines

        print()
        for line in imported_lines(found, options.stdout()):
            print(line)


def _warn(options: Shared, topology: Topology | VllmTopology) -> None:
    for warning in topology_warnings(topology):
        options.stderr().warn(warning)
