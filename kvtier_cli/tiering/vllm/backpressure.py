"""The `backpressure` of secondary tiers: merged and checked as vLLM does; its effect is not modelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvtier_cli.tiering.vllm.reading import Path, Reading, near, told
from kvtier_cli.wording import kind_of, shown

DETECTOR: Final = "EMABackpressureDetector"
POLICIES: Final = ("ThrottledDropPolicy", "DropStorePolicy")
_HIGH_LOW: Final = {False: (0.010, 0.002), True: (0.050, 0.010)}
_FIELDS: Final = (
    "high_water_s",
    "low_water_s",
    "alpha",
    "warmup_completions",
    "decay_half_life_s",
    "cooldown_s",
    "failure_threshold",
)


def check_backpressure(extra: Mapping[str, object], tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    """Checks what vLLM makes of the default in `extra` and the tier's own: merged field by field, the tier's first.

    Raises InputError for what vLLM refuses.
    """
    merged: dict[str, object] = {}
    own = (*path, "backpressure")
    for source, at in ((extra.get("backpressure"), ("backpressure",)), (tier.get("backpressure"), own)):
        if not source:
            continue
        if not isinstance(source, dict):
            reading.refuse(at, f"expected an object, found {told(source)}")
        merged.update(source)
    if not merged and "backpressure" not in tier:
        return
    at = own if "backpressure" in tier else path
    name = merged.pop("backpressure_cls", None)
    if name is None:
        reading.refuse(
            at, "backpressure config must include 'backpressure_cls'", f'such as "backpressure_cls": "{DETECTOR}"'
        )
    policy = merged.pop("policy_cls", None)
    for word, known in ((policy or POLICIES[0], POLICIES), (name, (DETECTOR,))):
        if not isinstance(word, str):
            reading.refuse(at, f"expected a class's name, found {kind_of(word)}")
        if "." not in word and word not in known:
            reading.refuse(
                at,
                f"module 'vllm.v1.kv_offload.tiering.backpressure' has no usable class {shown(word)}",
                near(word, known),
            )
    if name == DETECTOR:
        _check_detector(merged, tier, at, reading)
    if tier.get("type") == "p2p":
        reading.refuse(
            at,
            "Backpressure is not supported for the P2P secondary tier.",
            None
            if "backpressure" in tier
            else "The backpressure beside secondary_tiers holds for each tier; give it to the others instead.",
        )
    reading.note("backpressure is not modelled: under pressure vLLM drops stores to the tier")


def _check_detector(fields: Mapping[str, object], tier: Mapping[str, object], path: Path, reading: Reading) -> None:
    for key in fields:
        if key not in _FIELDS:
            reading.unexpected_keyword((*path, key), DETECTOR, _FIELDS)
    locality = tier.get("locality")
    remote = tier.get("type") == "obj" or (isinstance(locality, str) and locality.upper() == "REMOTE")
    high, low = _HIGH_LOW[remote]
    high_water = _number(fields.get("high_water_s", high), (*path, "high_water_s"), reading)
    low_water = _number(fields.get("low_water_s", low), (*path, "low_water_s"), reading)
    alpha = _number(fields.get("alpha", 0.15), (*path, "alpha"), reading)
    if not 0 < alpha <= 1:
        reading.refuse((*path, "alpha"), f"alpha must be in (0, 1], got {alpha}")
    if low_water > high_water:
        reading.refuse((*path, "low_water_s"), f"low_water_s ({low_water}) must be <= high_water_s ({high_water})")
    threshold = fields.get("failure_threshold")
    if threshold is not None and _number(threshold, (*path, "failure_threshold"), reading) < 1:
        reading.refuse((*path, "failure_threshold"), f"failure_threshold must be >= 1, got {threshold}")


def _number(value: object, path: Path, reading: Reading) -> float:
    if not isinstance(value, int | float):
        reading.refuse(path, f"expected a number, found {told(value)}")
    return value
