"""The `secondary_tiers` of vLLM: each type's keys, what it declares to filters, and what its constructor refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import TierSpec
from kvtier_cli.tiering.vllm.backpressure import check_backpressure
from kvtier_cli.tiering.vllm.reading import Path, Reading, holds_more, near, told
from kvtier_cli.wording import kind_of, nearest, shorten, shown

_COMMON: Final = ("type", "module_path", "backpressure")
_TAKEN: Final = ("offloading_spec", "primary_kv_view", "tier_type", "backpressure_detector")
_STORE_KEYS: Final = (
    "bucket",
    "endpoint_override",
    "access_key",
    "secret_key",
    "session_token",
    "region",
    "scheme",
    "ca_bundle",
)
_SECRET = re.compile(r"secret|token|passw|credential|(?:access|api|private)_?key", re.IGNORECASE)
_ABOUT: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Type:
    """A type of vLLM's own. `keys`: what its constructor takes; `swallows`: it takes any other key and drops it."""

    cls: str
    medium: Medium | None
    keys: tuple[str, ...]
    required: tuple[str, ...] = ()
    swallows: bool = False


_EVENTS: Final = ("enable_kv_events", "locality")
TYPES: Final[Mapping[str, _Type]] = {
    "example": _Type("ExampleSecondaryTierManager", Medium.CPU, ("custom_param",)),
    "fs": _Type(
        "FileSystemTierManager",
        Medium.STORAGE,
        ("root_dir", "n_read_threads", "n_write_threads", *_EVENTS),
        ("root_dir",),
    ),
    "p2p": _Type(
        "P2PSecondaryTierManager",
        None,
        ("host", "port", "backends", "num_threads", "unbound_store_timeout_s"),
        swallows=True,
    ),
    "obj": _Type(
        "ObjectStoreSecondaryTierManager",
        Medium.STORAGE,
        ("store_config", "prefix", "io_threads", *_EVENTS),
        ("store_config",),
    ),
    "kvcr": _Type(
        "KVCRSecondaryTierManager",
        None,
        (
            "router_capabilities",
            "control_host",
            "control_ports",
            "control_advertise_host",
            "eager_ctrl_connect",
            "opportunistic_query",
            "enable_telemetry",
            "operation_timeout_ms",
            "abandon_timeout_ms",
            "metadata_retry_interval_ms",
            "secondary_g2_slots",
            "kvcr_service_socket_path",
            "compatibility_digest",
            "policy",
            "g3",
            "local_dram_backend",
            "remote_fw_dram_backend",
        ),
    ),
}


def read_tiers(extra: Mapping[str, object], path: Path, reading: Reading) -> tuple[TierSpec, ...]:
    """The secondary tiers in vLLM's order, named as its metrics label them. Raises InputError for what vLLM refuses."""
    tiers = extra.get("secondary_tiers", [])
    at = (*path, "secondary_tiers")
    if not isinstance(tiers, list):
        reading.refuse(at, "secondary_tiers must be a list of tier configurations")
    if not tiers:
        reading.warn(at, "there is no secondary tier: the CPU tier stands alone")
    found: list[TierSpec] = []
    for index, value in enumerate(tiers):
        tier = reading.object_at((*at, index), value, "a secondary tier")
        found.append(_read_tier(index, tier, extra, (*at, index), reading))
    return tuple(found)


def _read_tier(
    index: int, tier: Mapping[str, object], extra: Mapping[str, object], path: Path, reading: Reading
) -> TierSpec:
    name = tier.get("type")
    if not name:
        reading.refuse(path, "Secondary tier configuration must include 'type'", f"known are {', '.join(TYPES)}")
    if not isinstance(name, str):
        reading.refuse((*path, "type"), f"Unknown secondary tier type: {kind_of(name)}")
    _check_text(name, (*path, "type"), reading)
    known = TYPES.get(name)
    if known is None and tier.get("module_path") is None:
        like = nearest(name, TYPES)
        reading.refuse(
            (*path, "type"),
            f"Unknown secondary tier type: {shown(name)}",
            f'did you mean "{like}"?' if like else f"known are {', '.join(TYPES)}; a class needs its module_path too",
        )
    check_backpressure(extra, tier, path, reading)
    for key in _TAKEN:
        if key in tier:
            reading.refuse((*path, key), f"{_class(known, name)}() got multiple values for keyword argument '{key}'")
    label = f"{index + 1}:{name}"
    if known is None:
        reading.note(f"{label}: a class of one's own; its medium and locality stand in its code, here as not declared")
        return TierSpec(label, about=_about(tier, path, reading))
    if "module_path" in tier:
        reading.ignored((*path, "module_path"), f"{name} is a type of vLLM's own")
    _check_keys(name, known, tier, path, reading)
    if name in _CHECKS:
        _CHECKS[name](tier, path, reading)
    locality = _locality(tier, path, reading) if "locality" in known.keys else None
    return TierSpec(label, known.medium, locality, about=_about(tier, path, reading))


def _class(known: _Type | None, name: str) -> str:
    return known.cls if known else shown(name)[1:-1]


def _check_keys(name: str, known: _Type, tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    for key in tier:
        if key in known.keys or key in _COMMON:
            continue
        if not known.swallows:
            reading.unexpected_keyword((*path, key), known.cls, known.keys)
        if key == "locality":
            reading.ignored((*path, key), f"{name} declares no locality and no medium, and passes every filter but []")
        else:
            reading.unknown((*path, key), known.keys)
    for key in known.required:
        if key not in tier:
            reading.refuse(path, f"{known.cls}.__init__() missing 1 required positional argument: '{key}'")


def _locality(tier: Mapping[str, object], path: Path, reading: Reading) -> Locality | None:
    value = tier.get("locality")
    if value is None:
        return None
    if value not in ("LOCAL", "REMOTE"):
        upper = value.strip().upper() if isinstance(value, str) else ""
        reading.refuse(
            (*path, "locality"),
            f"{told(value)} is not a valid Locality",
            f'did you mean "{upper}"? In a tier it stands in upper case.'
            if upper in ("LOCAL", "REMOTE")
            else near(value, ("LOCAL", "REMOTE")),
        )
    return Locality(value)


def _check_fs(tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    if not isinstance(tier["root_dir"], str):
        reading.warn((*path, "root_dir"), f"{kind_of(tier['root_dir'])} is no path: vLLM makes a folder of its text")
    for key in ("n_read_threads", "n_write_threads"):
        if not isinstance(tier.get(key, 16), int):
            reading.refuse((*path, key), f"expected a whole number, found {kind_of(tier[key])}")


def _check_obj(tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    at = (*path, "store_config")
    store = reading.object_at(at, tier["store_config"], "an object with bucket and endpoint_override")
    for key in store:
        if key not in _STORE_KEYS:
            reading.unexpected_keyword((*at, key), "ObjStoreConfig", _STORE_KEYS)
    missing = [key for key in ("bucket", "endpoint_override") if key not in store]
    if missing:
        count = f"{len(missing)} required positional argument{'' if len(missing) == 1 else 's'}"
        names = " and ".join(f"'{key}'" for key in missing)
        reading.refuse(at, f"ObjStoreConfig.__init__() missing {count}: {names}")


def _check_p2p(tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    value = tier.get("unbound_store_timeout_s", 60.0)
    try:
        seconds = float(value) if isinstance(value, int | float | str) else float("nan")
    except (ValueError, OverflowError):
        seconds = float("nan")
    if not seconds > 0:
        reading.refuse(
            (*path, "unbound_store_timeout_s"), f"unbound_store_timeout_s must be a positive number, got {told(value)}"
        )


def _check_kvcr(tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    policy = tier.get("policy")
    if policy is not None and not (isinstance(policy, str) and ("." in policy or policy in _KVCR_POLICIES)):
        reading.refuse((*path, "policy"), f"Unknown KVCR policy: {told(policy)}", near(policy, _KVCR_POLICIES))
    if (tier.get("kvcr_service_socket_path") is None) != (tier.get("compatibility_digest") is None):
        reading.refuse(path, "kvcr_service_socket_path and compatibility_digest must be configured together")
    if not tier.get("router_capabilities"):
        reading.refuse(path, "KVCR secondary tier requires router capabilities")
    ports = tier.get("control_ports")
    if not isinstance(ports, list) or not ports:
        reading.refuse(path, "control_ports must contain a port for each local data-parallel rank")
    if not all(isinstance(port, int) and 1 <= port <= 65535 for port in ports):
        reading.refuse((*path, "control_ports"), "control_ports must be between 1 and 65535")
    slots = tier.get("secondary_g2_slots", 0)
    if not isinstance(slots, int) or slots < 0:
        reading.refuse((*path, "secondary_g2_slots"), "secondary_g2_slots must be non-negative")
    reading.note("kvcr: whether it has all router capabilities that its package asks for cannot be told from here")


_KVCR_POLICIES: Final = ("fifo", "lru", "g3_fifo", "g3_lru")
_CHECKS: Final[Mapping[str, Callable[[Mapping[str, object], Path, Reading], None]]] = {
    "fs": _check_fs,
    "obj": _check_obj,
    "p2p": _check_p2p,
    "kvcr": _check_kvcr,
}


def _about(tier: Mapping[str, object], path: Path, reading: Reading) -> str | None:
    """Every key that became no field of ours, with its value; credentials and what may hold them only as "set"."""
    parts: list[str] = []
    for key, value in tier.items():
        if key in ("type", "locality", "backpressure"):
            continue
        if isinstance(value, dict) and key == "store_config":
            parts += [_said(inner, held) for inner, held in value.items() if held != ""]
        else:
            parts.append(_said(key, value))
    for part in parts:
        _check_text(part, path, reading)
    return shorten("; ".join(parts), _ABOUT) or None


def _said(key: str, value: object) -> str:
    inner = value if isinstance(value, list) else [value]
    if _SECRET.search(str(key)) or any(holds_more(item) for item in inner):
        return f"{key} set"
    return f"{key} {value if isinstance(value, str) else shown(value)}"


def _check_text(text: str, path: Path, reading: Reading) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        reading.fail(path, f"{shown(text)} holds half a surrogate pair")
