"""Eviction policies of the primary, by the names that topologies use. A new one is a module and a line here."""

from __future__ import annotations

from kvtier_cli.tiering.policies.arc import ArcPolicy
from kvtier_cli.tiering.policies.base import EvictionPolicy, RequestRecency
from kvtier_cli.tiering.policies.lru import LruPolicy

_POLICIES: dict[str, type[LruPolicy] | type[ArcPolicy]] = {"lru": LruPolicy, "arc": ArcPolicy}


def make_policy(name: str, capacity: int) -> EvictionPolicy:
    """A fresh policy for a primary of `capacity` blocks. `name` is one of `topology.POLICIES`."""
    return _POLICIES[name](capacity)


__all__ = ["ArcPolicy", "EvictionPolicy", "LruPolicy", "RequestRecency", "make_policy"]
