"""A whole KVTransferConfig: vLLM's checks of it, and the OffloadingConnector in it, within MultiConnector too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_cli.tiering.vllm.reading import Path, Reading, near, told
from kvtier_cli.tiering.vllm.serve import ServeOptions
from kvtier_cli.wording import one_of, shown

OFFLOADING: Final = "OffloadingConnector"
MULTI: Final = "MultiConnector"
EXTRA: Final = "kv_connector_extra_config"
ROLES: Final = ("kv_producer", "kv_consumer", "kv_both")

_FIELDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "kv_connector": ((str,), "a connector's name"),
    "engine_id": ((str,), "a text"),
    "kv_buffer_device": ((str,), "a device's name"),
    "kv_role": ((str,), one_of(ROLES)),
    "kv_port": ((int, str), "a number"),
    EXTRA: ((dict,), "an object"),
    "kv_connector_module_path": ((str,), "a module's path"),
    "enable_permute_local_kv": ((bool, int, str), "true or false"),
    "kv_load_failure_policy": ((str,), "fail or recompute"),
}
_NULL: Final = ("kv_connector", "engine_id", "kv_role", "kv_connector_module_path")
_READ: Final = ("kv_connector", "kv_role", EXTRA, "kv_connector_module_path")
_CONNECTORS: Final = (
    "DecodeBenchConnector",
    "ExampleConnector",
    "ExampleHiddenStatesConnector",
    "FlexKVConnectorV1",
    "HiSparseConnector",
    "LMCacheConnectorV1",
    "LMCacheMPConnector",
    "MoRIIOConnector",
    "MooncakeConnector",
    "MooncakeStoreConnector",
    MULTI,
    "NixlConnector",
    "NixlPullConnector",
    "NixlPushConnector",
    OFFLOADING,
    "SimpleCPUOffloadConnector",
)
_DEEPEST: Final = 32


@dataclass(frozen=True, slots=True)
class Offloading:
    """The `kv_connector_extra_config` of the connector that offloads, and where it stands."""

    extra: Mapping[str, object]
    path: Path


def find_offloading(options: ServeOptions, reading: Reading) -> Offloading:
    """The OffloadingConnector that `options` set up. Raises InputError if there is none, or vLLM refuses it."""
    if options.transfer is None and options.offloading_gib is None:
        reading.fail((), "sets no --kv-transfer-config and no --kv-offloading-size: vLLM offloads nothing")
    config = dict(reading.object_at((), {} if options.transfer is None else options.transfer, "a KVTransferConfig"))
    shortcut = options.offloading_gib is not None
    _check(config, (), reading, role_comes=shortcut)
    if shortcut:
        config = _with_shortcut(config, options, reading)
    if config.get("kv_connector") is None:
        reading.fail((), "kv_connector is not set: vLLM offloads nothing", f'expected "{OFFLOADING}"')
    found = list(_offloading(config, (), reading, 0))
    if not found:
        reading.fail(("kv_connector",), f"no connector in it is {OFFLOADING}: it has no KV tiers that kvtier knows")
    for other in found[1:]:
        reading.warn(
            other.path[:-1],
            f"another {OFFLOADING}, not read: vLLM stores into each and loads from the first that has blocks",
        )
    return found[0]


def _with_shortcut(config: Mapping[str, object], options: ServeOptions, reading: Reading) -> dict[str, object]:
    """What --kv-offloading-size makes of the config: it sets the connector, its bytes and the role."""
    connector = "SimpleCPUOffloadConnector" if options.simple_offloading else OFFLOADING
    if options.offloading_backend == "lmcache":
        connector = "LMCacheMPConnector"
    given = config.get("kv_connector")
    if given not in (None, connector):
        reading.warn(("kv_connector",), f"--kv-offloading-size replaces {shown(given)} by {connector}")
    extra = config.get(EXTRA)
    extra = dict(extra) if isinstance(extra, dict) else {}
    if connector != "LMCacheMPConnector":
        if "cpu_bytes_to_use" in extra:
            reading.warn((EXTRA, "cpu_bytes_to_use"), "--kv-offloading-size replaces it")
        extra["cpu_bytes_to_use"] = (options.offloading_gib or 0.0) * (1 << 30)
    return {**config, "kv_connector": connector, "kv_role": "kv_both", EXTRA: extra}


def _check(config: Mapping[str, object], path: Path, reading: Reading, *, role_comes: bool = False) -> None:
    """What vLLM checks of each KVTransferConfig, whichever connector it names."""
    for key, value in config.items():
        if key not in _FIELDS:
            reading.refuse((*path, key), "Unexpected keyword argument", near(key, list(_FIELDS)))
        types, expected = _FIELDS[key]
        if value is None and key in _NULL:
            continue
        if not isinstance(value, types):
            reading.refuse((*path, key), f"expected {expected}, found {told(value)}")
    role = config.get("kv_role")
    if role is not None and role not in ROLES:
        reading.refuse((*path, "kv_role"), f"Unsupported kv_role: {shown(role)}", f"supported are {one_of(ROLES)}")
    if config.get("kv_connector") is not None and role is None and not role_comes:
        reading.refuse(path, "Please specify kv_role when kv_connector is set", f"supported are {one_of(ROLES)}")
    policy = config.get("kv_load_failure_policy", "fail")
    if policy not in ("fail", "recompute"):
        reading.refuse((*path, "kv_load_failure_policy"), f"{shown(policy)} is neither fail nor recompute")


def _offloading(config: Mapping[str, object], path: Path, reading: Reading, depth: int) -> Iterator[Offloading]:
    """Each OffloadingConnector in the config, in vLLM's order."""
    name = config.get("kv_connector")
    if config.get("kv_connector_module_path"):
        if not path:
            reading.not_modelled((*path, "kv_connector"), f"{shown(name)} is a connector of one's own")
        reading.warn(path, f"{shown(name)} is a connector of one's own, not modelled")
        return
    if config.get("kv_connector_module_path") == "":
        reading.refuse((*path, "kv_connector_module_path"), "kv_connector_module_path cannot be an empty string.")
    if name not in _CONNECTORS:
        reading.refuse((*path, "kv_connector"), f"Unsupported connector type: {shown(name)}", near(name, _CONNECTORS))
    extra = config.get(EXTRA, {})
    held: Mapping[str, object] = extra if isinstance(extra, dict) else {}
    if name == OFFLOADING:
        reading.without_part(path, [key for key in config if key not in _READ])
        yield Offloading(held, (*path, EXTRA))
    elif name == MULTI:
        reading.without_part(path, [key for key in config if key not in _READ])
        yield from _children(held, (*path, EXTRA), reading, depth)
    elif path:
        reading.warn(path, f"{name} is asked for blocks in its turn and gets every store, which is not modelled")


def _children(extra: Mapping[str, object], path: Path, reading: Reading, depth: int) -> Iterator[Offloading]:
    children = extra.get("connectors")
    if not isinstance(children, list):
        reading.refuse((*path, "connectors"), f"{MULTI} needs a list of connectors")
    if not children or depth > _DEEPEST:
        reading.fail((*path, "connectors"), "nested too deeply" if children else "holds no connector")
    for key in extra:
        if key != "connectors":
            reading.ignored((*path, key), f"of the settings of {MULTI} only connectors is read")
    for index, child in enumerate(children):
        at: Path = (*path, "connectors", index)
        config = reading.object_at(at, child, "a KVTransferConfig")
        _check(config, at, reading)
        if "engine_id" in config:
            reading.refuse(
                (*at, "engine_id"), "KVTransferConfig() got multiple values for keyword argument 'engine_id'"
            )
        if config.get("kv_connector") is None:
            reading.refuse(at, "Connector name is not set in KVTransferConfig")
        yield from _offloading(config, at, reading, depth + 1)
