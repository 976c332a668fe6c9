"""The `kv_connector_extra_config` of vLLM's OffloadingConnector: its own keys. Its secondary tiers: `tiers.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_cli.tiering.topology import POLICIES, TierSpec
from kvtier_cli.tiering.vllm.reading import Path, Reading, near, python_int, told
from kvtier_cli.tiering.vllm.tiers import read_tiers
from kvtier_cli.wording import one_of

SINGLE: Final = "CPUOffloadingSpec"
TIERING: Final = "TieringOffloadingSpec"

_BOTH: Final = (
    "spec_name",
    "spec_module_path",
    "cpu_bytes_to_use",
    "block_size",
    "blocks_per_chunk",
    "eviction_policy",
    "cache_policy_module_path",
    "store_threshold",
    "offload_prompt_only",
    "self_describing_kv_events",
    "canonical_layout",
    "sync_load_budget_bytes",
)
_OF_SINGLE: Final = ("max_tracker_size",)
_OF_TIERING: Final = ("secondary_tiers", "tier_poll_interval_s", "backpressure")
KEYS: Final = frozenset({*_BOTH, *_OF_SINGLE, *_OF_TIERING})

_NO_PART: Final = ("self_describing_kv_events", "tier_poll_interval_s", "max_tracker_size")
_NOT_MODELLED: Final = {
    "canonical_layout": "the layout of a block's bytes is not modelled",
    "sync_load_budget_bytes": "loads within the budget are waited for at once, which is not modelled",
}


@dataclass(frozen=True, slots=True)
class Extra:
    """`cpu_bytes`: after vLLM's int(). One of `chunk_tokens` (its block_size) and `blocks_per_chunk` at most is set."""

    path: Path
    cpu_bytes: int
    chunk_tokens: int | None
    blocks_per_chunk: int | None
    policy: str
    tiering: bool
    tiers: tuple[TierSpec, ...]


def read_extra(extra: Mapping[str, object], path: Path, reading: Reading) -> Extra:
    """The settings in `extra`. Raises InputError for what vLLM refuses and for what cannot be modelled."""
    tiering = _spec(extra, path, reading) == TIERING
    _check_keys(extra, path, reading, tiering=tiering)
    chunk_tokens, blocks_per_chunk = _chunk(extra, path, reading)
    cpu_bytes = _cpu_bytes(extra, path, reading)
    _store_threshold(extra, path, reading, tiering=tiering)
    return Extra(
        path,
        cpu_bytes,
        chunk_tokens,
        blocks_per_chunk,
        _policy(extra, path, reading),
        tiering,
        read_tiers(extra, path, reading) if tiering else (),
    )


def _spec(extra: Mapping[str, object], path: Path, reading: Reading) -> str:
    name = extra.get("spec_name", SINGLE)
    if name in (SINGLE, TIERING):
        if "spec_module_path" in extra:
            reading.ignored((*path, "spec_module_path"), f"{name} is vLLM's own")
        return str(name)
    if extra.get("spec_module_path") is None:
        reading.refuse((*path, "spec_name"), f"Unsupported spec type: {told(name)}", near(name, (TIERING, SINGLE)))
    return reading.not_modelled((*path, "spec_name"), f"{told(name)} is a spec of one's own")


def _check_keys(extra: Mapping[str, object], path: Path, reading: Reading, *, tiering: bool) -> None:
    others = _OF_SINGLE if tiering else _OF_TIERING
    for key in extra:
        at = (*path, key)
        if key not in KEYS:
            reading.unknown(at, KEYS)
        elif key == "secondary_tiers" and not tiering:
            default = "" if "spec_name" in extra else ", which holds without spec_name"
            reading.ignored(at, f'{SINGLE}{default}, has no secondary tiers; set "spec_name": "{TIERING}"')
        elif key in others:
            reading.ignored(at, f"{TIERING if tiering else SINGLE} does not read it")
        elif key in _NOT_MODELLED and extra[key]:
            reading.note(f"{key}: {_NOT_MODELLED[key]}")
    if extra.get("offload_prompt_only") is False:
        reading.note("offload_prompt_only false: blocks of answers are stored too, which a trace does not tell")
    reading.without_part(path, [key for key in extra if key in _NO_PART and key not in others])


def _chunk(extra: Mapping[str, object], path: Path, reading: Reading) -> tuple[int | None, int | None]:
    tokens, blocks = extra.get("block_size"), extra.get("blocks_per_chunk")
    if tokens is not None and blocks is not None:
        reading.refuse((*path, "blocks_per_chunk"), "Specify only one of 'block_size' or 'blocks_per_chunk'")
    for key, value in (("block_size", tokens), ("blocks_per_chunk", blocks)):
        number = python_int(value)
        if value is not None and number is None:
            reading.refuse((*path, key), f"expected a whole number, found {told(value)}")
        if number is not None and number < 1:
            reading.refuse((*path, key), f"'{key}' must be greater than 0.")
    return python_int(tokens), python_int(blocks)


def _cpu_bytes(extra: Mapping[str, object], path: Path, reading: Reading) -> int:
    value = extra.get("cpu_bytes_to_use")
    at = (*path, "cpu_bytes_to_use")
    if not value:
        reading.refuse(at, "cpu_bytes_to_use must be specified in kv_connector_extra_config")
    number = python_int(value)
    if number is None:
        reading.refuse(
            at,
            f"expected a number of bytes, found {told(value)}",
            "vLLM takes no units here: 8GiB is 8589934592." if isinstance(value, str) else None,
        )
    if number < 0:
        reading.fail(at, f"expected a number of bytes from 1, found {number}")
    return number


def _store_threshold(extra: Mapping[str, object], path: Path, reading: Reading, *, tiering: bool) -> None:
    value = extra.get("store_threshold", 0)
    number, at = python_int(value), (*path, "store_threshold")
    if number is None:
        reading.refuse(at, f"expected a whole number, found {told(value)}")
    if number >= 2 and tiering:
        reading.refuse(at, f"store_threshold is not supported for {TIERING}", "Leave it out; 0 and 1 mean none.")
    if number >= 2:
        reading.not_modelled(at, f"store_threshold {number} keeps blocks back until they were offered that often")


def _policy(extra: Mapping[str, object], path: Path, reading: Reading) -> str:
    name = extra.get("eviction_policy", "lru")
    at = (*path, "eviction_policy")
    if name in POLICIES:
        if extra.get("cache_policy_module_path") is not None:
            reading.ignored((*path, "cache_policy_module_path"), f"{name} is vLLM's own")
        return str(name)
    if extra.get("cache_policy_module_path") is None:
        reading.refuse(at, f"Unknown cache policy: {told(name)}. Supported: {one_of(POLICIES)}", near(name, POLICIES))
    return reading.not_modelled(
        at, f"{told(name)} is an eviction policy of one's own", f"modelled are {one_of(POLICIES)}"
    )
