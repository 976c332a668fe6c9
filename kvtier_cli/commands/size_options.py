"""What tells the bytes of a block where a topology is vLLM's own: options, and the variables that stand for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.errors import InputError

if TYPE_CHECKING:
    from kvtier_cli.tiering.vllm.capacity import Sizes

BytesPerToken = Annotated[
    str | None,
    typer.Option(
        "--bytes-per-token",
        metavar="SIZE",
        help="KV bytes of a token over all workers, such as 128KiB, for vLLM's own configuration.",
        show_default=False,
    ),
]
ModelConfig = Annotated[
    str | None,
    typer.Option("--model-config", metavar="FILE", help="Or the model's config.json to tell them from."),
]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", metavar="FILE", help="Or what the server answers under /metrics, saved."),
]
BlockSize = Annotated[
    str | None,
    typer.Option("--block-size", metavar="N", help="Tokens of a GPU block, if not vLLM's default of 16."),
]
KvCacheDtype = Annotated[
    str | None,
    typer.Option("--kv-cache-dtype", metavar="TYPE", help="vLLM's option, such as fp8, for --model-config."),
]

VARIABLES: Mapping[str, str] = {
    "bytes_per_token": "KVTIER_BYTES_PER_TOKEN",
    "model_config": "KVTIER_MODEL_CONFIG",
    "metrics": "KVTIER_METRICS",
    "block_size": "KVTIER_BLOCK_SIZE",
    "kv_cache_dtype": "KVTIER_KV_CACHE_DTYPE",
}
_ONE_OF = ("bytes_per_token", "model_config", "metrics")


def given_sizes(options: Mapping[str, str | None] | None = None) -> Sizes:
    """The sizes that `options` (the fields of `Sizes`) give, else the variables. Raises InputError.

    An option of the three that tell a block's bytes puts all three variables aside.
    """
    from kvtier_cli.tiering.vllm.capacity import Sizes

    given = {key: value for key, value in (options or {}).items() if value is not None}
    names = {key: f"--{key.replace('_', '-')}" for key in given}
    for key, variable in VARIABLES.items():
        value = os.environ.get(variable)
        if value and key not in given and not (key in _ONE_OF and any(one in names for one in _ONE_OF)):
            given[key] = value
    chosen = [key for key in _ONE_OF if key in given]
    if len(chosen) > 1:
        said = " and ".join(names.get(key, VARIABLES[key]) for key in chosen)
        raise InputError(f"{said} tell the same, give one of them")
    return Sizes(
        bytes_per_token=_number(given, "bytes_per_token", names, size=True),
        model_config=given.get("model_config"),
        metrics=given.get("metrics"),
        block_size=_number(given, "block_size", names),
        kv_cache_dtype=given.get("kv_cache_dtype"),
    )


def _number(given: Mapping[str, str], key: str, names: Mapping[str, str], *, size: bool = False) -> int | None:
    from kvtier_cli.units import parse_count, parse_size

    if key not in given:
        return None
    name = names.get(key, VARIABLES[key])
    try:
        number = parse_size(given[key]) if size else parse_count(given[key])
    except InputError as error:
        raise InputError(f"{name}: {error.message}", hint=error.hint) from error
    if not number:
        raise InputError(f"{name}: expected a number from 1, found 0")
    return number
