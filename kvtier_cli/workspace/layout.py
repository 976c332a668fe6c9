"""What lies where in a workspace's folder. Reads and writes nothing."""

from __future__ import annotations

import hashlib
import re
from typing import Final

TOPOLOGY: Final = "kvtier.toml"
STATE: Final = "state.json"
LOCK: Final = "lock"
HOLDERS: Final = "holders"
TIERS: Final = "tiers"
PARTS: Final = frozenset({TOPOLOGY, STATE, LOCK, HOLDERS, TIERS})

ASIDE: Final = "~damaged"
"""The end of a store's name once a repair has put it aside; no tier's folder ends so."""

_SAFE: Final = re.compile(r"[A-Za-z0-9_-]")
_LONGEST: Final = 100


def store_name(tier: str) -> str:
    """The name of a tier's folder: the tier's own where that is plain ASCII, else with `%` escapes, and for very long
    ones a digest in the place of the end. Different tiers have different names."""
    name = "".join(
        char if _SAFE.match(char) else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in tier
    )
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(tier.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:_LONGEST]}%-{digest[:32]}"
