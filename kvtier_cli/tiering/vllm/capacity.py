"""How many blocks vLLM's CPU tier holds: its arithmetic, step by step, from what is known of a block's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvtier_cli.tiering.topology import BlockSpec
from kvtier_cli.tiering.vllm.metrics import ConfigInfo, read_config_info
from kvtier_cli.tiering.vllm.model_config import kv_bytes
from kvtier_cli.tiering.vllm.offloading import Extra
from kvtier_cli.tiering.vllm.reading import Reading
from kvtier_cli.tiering.vllm.serve import GPU_BLOCK_TOKENS, ServeOptions
from kvtier_cli.units import LARGEST

PAGE: Final = 4096
"""Bytes to which vLLM rounds a block up: the pages of most machines."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known beside the configuration; one of the first three at most.

    `bytes_per_token`: KV bytes over all workers. `model_config`, `metrics`: files. `block_size` (the GPU's, in tokens)
    and `kv_cache_dtype` are vLLM's options, where its command line is not at hand.
    """

    bytes_per_token: int | None = None
    model_config: str | None = None
    metrics: str | None = None
    block_size: int | None = None
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the arithmetic: `what` it gives, and `how`."""

    what: str
    how: str


@dataclass(frozen=True, slots=True)
class Counted:
    """`capacity` in blocks (vLLM's chunks), None where the bytes of a token are not known."""

    block: BlockSpec
    capacity: int | None
    steps: tuple[Step, ...]


def count_blocks(extra: Extra, options: ServeOptions, sizes: Sizes, reading: Reading) -> Counted:
    """The CPU tier's blocks. Raises InputError for what vLLM refuses, and for files that cannot be read."""
    if sizes.metrics is not None:
        from kvtier_cli.tiering.text_file import read_text_file

        info = read_config_info(read_text_file(sizes.metrics, "metrics"), sizes.metrics)
        return _from_metrics(info, extra, options, sizes.metrics, reading)
    tokens, said = _tokens(extra, options, reading)
    steps = [Step("tokens a block", said)]
    copies = True
    if sizes.bytes_per_token is not None:
        each, how = sizes.bytes_per_token, f"{sizes.bytes_per_token:,} as given"
    elif sizes.model_config is not None:
        found = kv_bytes(_json_file(sizes.model_config), sizes.model_config, options)
        each, how, copies = found.each, f"{found.how} ({sizes.model_config})", not found.single_copy
    else:
        return Counted(BlockSpec(tokens), None, tuple(steps))
    if not copies:
        reading.note("MLA with tensor parallelism: one copy for all workers, as vLLM keeps it on one machine")
    steps.append(Step("KV bytes a token", how))
    exact = each * tokens
    row = -(-exact // PAGE) * PAGE
    padding = "" if row == exact else f", in whole pages of {PAGE:,}: {row:,}"
    steps.append(Step("bytes a block", f"{each:,} x {tokens:,} = {exact:,}{padding}"))
    if padding:
        reading.note(f"each block has {row - exact:,} bytes of padding, which byte figures leave out")
    if max(each, row) > LARGEST:
        reading.fail((), f"a block of {row:,} bytes is too large")
    return Counted(BlockSpec(tokens, each), _blocks(extra, row, steps, reading), tuple(steps))


def _blocks(extra: Extra, row: int, steps: list[Step], reading: Reading) -> int:
    blocks = extra.cpu_bytes // row
    steps.append(Step("blocks", f"{extra.cpu_bytes:,} // {row:,} = {blocks:,}"))
    at = (*extra.path, "cpu_bytes_to_use")
    if blocks > LARGEST:
        reading.fail(at, f"{extra.cpu_bytes:,} bytes are too large")
    if not blocks and extra.tiering:
        reading.refuse(
            at, f"{extra.cpu_bytes:,} bytes are less than one block of {row:,}, and an empty CPU tier cannot be mapped"
        )
    return blocks


def _tokens(extra: Extra, options: ServeOptions, reading: Reading) -> tuple[int, str]:
    """The tokens of a chunk, which is a block here, and how they come about."""
    assumed = options.block_size is None
    gpu = options.block_size or GPU_BLOCK_TOKENS
    origin = "vLLM's default" if assumed else "--block-size"
    parallel = options.decode_context_parallel
    if parallel > 1:
        gpu, origin = gpu * parallel, f"{origin} x {parallel} by decode context parallelism"
    if extra.chunk_tokens is not None:
        if extra.chunk_tokens % gpu:
            more = -(-extra.chunk_tokens // gpu) * gpu
            reading.refuse(
                (*extra.path, "block_size"),
                f"'block_size'={extra.chunk_tokens} must be a multiple of the GPU KV cache block size ({gpu} tokens)",
                f"Use {more} instead"
                + (f"; {gpu} is vLLM's default, give --block-size if yours differs." if assumed else "."),
            )
        return extra.chunk_tokens, f"{extra.chunk_tokens:,} (block_size, in GPU blocks of {gpu})"
    count = extra.blocks_per_chunk or 1
    if assumed:
        reading.note(
            f"GPU blocks of {GPU_BLOCK_TOKENS} tokens are vLLM's default; some attention backends have others "
            "(--block-size says it)"
        )
    if count * gpu > LARGEST:
        reading.fail((*extra.path, "blocks_per_chunk"), f"{count:,} blocks a chunk are too large")
    if count == 1:
        return gpu, f"{gpu} ({origin})"
    return count * gpu, f"{gpu} ({origin}) x {count:,} blocks_per_chunk = {count * gpu:,}"


def _from_metrics(info: ConfigInfo, extra: Extra, options: ServeOptions, name: str, reading: Reading) -> Counted:
    configured = extra.blocks_per_chunk or 1
    if extra.chunk_tokens is None and configured != info.blocks_per_chunk:
        reading.warn(
            (), f"{name} is of another configuration: {info.blocks_per_chunk} blocks a chunk, not {configured}"
        )
    expected = tuple(tier.name for tier in extra.tiers)
    if extra.tiering and info.tiers is not None and info.tiers != expected:
        reading.warn((), f"{name} is of another configuration: its tiers are {', '.join(info.tiers) or 'none'}")
    steps = []
    if options.block_size is None and info.chunks and info.tokens and info.tokens % info.chunks == 0:
        tokens = info.tokens // info.chunks
        steps.append(Step("tokens a block", f"{info.tokens:,} tokens / {info.chunks:,} chunks = {tokens:,} ({name})"))
    else:
        tokens, said = _tokens(extra, options, reading)
        steps.append(Step("tokens a block", said))
    each = None
    if info.chunks:
        row = info.size // info.chunks
        steps.append(Step("bytes a block", f"{info.size:,} / {info.chunks:,} chunks = {row:,} ({name})"))
        if row and extra.cpu_bytes // row != info.chunks:
            reading.warn(
                (*extra.path, "cpu_bytes_to_use"),
                f"{extra.cpu_bytes:,} bytes give {extra.cpu_bytes // row:,} blocks, {name} says {info.chunks:,}",
            )
        if row and row % tokens == 0:
            each = row // tokens
            steps.append(Step("KV bytes a token", f"{row:,} / {tokens:,} = {each:,}, padding included"))
        else:
            reading.note(f"{row:,} bytes a block are no whole number a token, so there are no byte figures")
    steps.append(Step("blocks", f"{info.chunks:,}, as the server counts its chunks ({name})"))
    return Counted(BlockSpec(tokens, each), info.chunks, tuple(steps))


def _json_file(path: str) -> object:
    from kvtier_cli.tiering.json_text import decode_json
    from kvtier_cli.tiering.text_file import read_text_file

    return decode_json(read_text_file(path, "a model's configuration"), path)
