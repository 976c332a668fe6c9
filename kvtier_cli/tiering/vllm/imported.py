"""vLLM's configuration as a topology: found by its content, read, counted, and written as a `kvtier.toml`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.topology import BlockSpec, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.tiering.vllm.capacity import Sizes, Step, count_blocks
from kvtier_cli.tiering.vllm.command import options_from_command
from kvtier_cli.tiering.vllm.offloading import KEYS, read_extra
from kvtier_cli.tiering.vllm.reading import Locate, Path, Reading, warn_of_repeated_keys
from kvtier_cli.tiering.vllm.serve import CONFIG_KEYS, ServeOptions, options_from_file
from kvtier_cli.tiering.vllm.transfer import find_offloading
from kvtier_cli.wording import escape

NO_SIZES: Final = Sizes()
ASK: Final = (
    "Give `kvtier topology import` --bytes-per-token (such as 128KiB), --model-config (the model's config.json) or "
    "--metrics (what /metrics answers, saved). KVTIER_BYTES_PER_TOKEN and the like hold for every command."
)

_WHOLE_KEYS: Final = frozenset({"kv_connector", "kv_connector_extra_config", "kv_role", "kv_connector_module_path"})


@dataclass(frozen=True, slots=True)
class VllmPrimary:
    """The CPU tier: `capacity` in blocks, None where the bytes of a token are not known."""

    capacity: int | None
    policy: str


@dataclass(frozen=True, slots=True)
class VllmTopology:
    """A topology as vLLM's configuration gives it, and what is to be said about it.

    `arithmetic`: how the CPU tier's blocks come about. `warnings`: what vLLM swallows without a word. `notes`: what
    was assumed, and what is not modelled.
    """

    name: str
    block: BlockSpec
    primary: VllmPrimary
    tiers: tuple[TierSpec, ...]
    arithmetic: tuple[Step, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    replay: ReplaySpec = field(default_factory=ReplaySpec)

    def topology(self) -> Topology:
        """The topology for everything that needs the CPU tier's size. Raises InputError where that is not known."""
        if self.primary.capacity is None:
            raise InputError(
                "how many blocks cpu_bytes_to_use holds cannot be told: the KV bytes of a token are not known",
                file=self.name,
                hint=ASK,
            )
        primary = PrimarySpec(self.primary.capacity, self.primary.policy)
        return Topology(self.block, primary, self.tiers, self.replay, self.name, self.warnings)


def is_vllm(value: object) -> bool:
    """Whether a value from JSON or YAML is vLLM's own configuration, by its keys."""
    return isinstance(value, dict) and not (_WHOLE_KEYS | KEYS).union(CONFIG_KEYS).isdisjoint(value)


def import_value(
    value: object,
    name: str,
    sizes: Sizes = NO_SIZES,
    *,
    file: str | None = None,
    locate: Locate | None = None,
    json_text: str | None = None,
) -> VllmTopology:
    """The topology of a KVTransferConfig, of a bare kv_connector_extra_config, or of a file for `vllm serve --config`.

    `name` is what outputs call it; `file` and `locate` serve the errors. `json_text` is what `value` was read from, if
    it was JSON: a key that stands twice in it is a warning. Raises InputError.
    """
    reading = Reading(file, locate)
    if json_text is not None:
        warn_of_repeated_keys(json_text, reading)
    found = reading.object_at((), value, "vLLM's configuration")
    if not set(CONFIG_KEYS).isdisjoint(found):
        return _import(options_from_file(found, reading), name, sizes, reading)
    if not _WHOLE_KEYS.isdisjoint(found):
        return _import(ServeOptions(transfer=found, locate=locate), name, sizes, reading)
    return _counted(found, (), ServeOptions(), name, sizes, reading)


def import_command(text: str, name: str, sizes: Sizes = NO_SIZES, *, file: str | None = None) -> VllmTopology:
    """The topology of a `vllm serve …` command line. Nothing in it is expanded or executed. Raises InputError."""
    reading = Reading(file)
    return _import(options_from_command(text, reading), name, sizes, reading)


def _import(options: ServeOptions, name: str, sizes: Sizes, reading: Reading) -> VllmTopology:
    reading.locate = options.locate
    found = find_offloading(options, reading)
    if options.data_parallel > 1:
        reading.note(f"--data-parallel-size {options.data_parallel}: this is one of {options.data_parallel} engines")
    return _counted(found.extra, found.path, options, name, sizes, reading)


def _counted(
    extra: object, path: Path, options: ServeOptions, name: str, sizes: Sizes, reading: Reading
) -> VllmTopology:
    read = read_extra(reading.object_at(path, extra, "an object"), path, reading)
    options = replace(
        options,
        block_size=sizes.block_size or options.block_size,
        kv_cache_dtype=sizes.kv_cache_dtype or options.kv_cache_dtype,
    )
    counted = count_blocks(read, options, sizes, reading)
    return VllmTopology(
        name,
        counted.block,
        VllmPrimary(counted.capacity, read.policy),
        read.tiers,
        counted.steps,
        tuple(reading.warnings),
        tuple(reading.notes),
    )


def imported_as_toml(found: VllmTopology) -> str:
    """The topology as a `kvtier.toml` whose comments say where it is from, how it was counted and what was noticed.

    Raises InputError where the CPU tier's size is not known.
    """
    from kvtier_cli.tiering.topology_write import topology_as_toml

    lines = "".join(f"# {escape(line)}\n" for line in _comments(found))
    return f"{lines}{topology_as_toml(found.topology())}"


def _comments(found: VllmTopology) -> Iterator[str]:
    yield f"imported from vLLM's configuration: {found.name}"
    for step in found.arithmetic:
        yield f"{step.what}: {step.how}"
    for warning in found.warnings:
        yield f"warning: {warning}"
    for note in found.notes:
        yield f"note: {note}"
