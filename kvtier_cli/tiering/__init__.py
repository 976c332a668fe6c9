"""The embedded tiering manager, usable as a library: decides as vLLM 0.33 does, needs no GPU and no server.

    from kvtier_cli.tiering import BUILT_IN, TieringManager, parse_tier_filter

    manager = TieringManager(BUILT_IN)
    manager.on_new_request("r1", parse_tier_filter([{"medium": "storage"}]).filter)
    manager.lookup("r1", "b1")          # LookupResult.MISS

The names are found where they are used: importing this package imports none of its modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvtier_cli.tiering.filters import ALL, FilterParse, TierFilter, TierMatcher, parse_tier_filter
    from kvtier_cli.tiering.jobs import JobResult, RequestContext, TransferJob
    from kvtier_cli.tiering.lookup import PrefixAnswer
    from kvtier_cli.tiering.manager import PreparedStore, TieringManager
    from kvtier_cli.tiering.model import (
        BlockKey,
        JobKind,
        LoadSource,
        Locality,
        LookupResult,
        Medium,
        OffloadingEvent,
        OffloadPolicy,
        Verdict,
    )
    from kvtier_cli.tiering.observer import Observer, ObserverGroup
    from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
    from kvtier_cli.tiering.topology import BUILT_IN, BlockSpec, PrimarySpec, ReplaySpec, TierSpec, Topology
    from kvtier_cli.tiering.topology_file import load_topology

_HOME = {
    "filters": ("ALL", "FilterParse", "TierFilter", "TierMatcher", "parse_tier_filter"),
    "jobs": ("JobResult", "RequestContext", "TransferJob"),
    "lookup": ("PrefixAnswer",),
    "manager": ("PreparedStore", "TieringManager"),
    "model": (
        "BlockKey",
        "JobKind",
        "LoadSource",
        "Locality",
        "LookupResult",
        "Medium",
        "OffloadPolicy",
        "OffloadingEvent",
        "Verdict",
    ),
    "observer": ("Observer", "ObserverGroup"),
    "secondary": ("SecondaryTier", "SecondaryTierManager"),
    "topology": ("BUILT_IN", "BlockSpec", "PrimarySpec", "ReplaySpec", "TierSpec", "Topology"),
    "topology_file": ("load_topology",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "ALL",
    "BUILT_IN",
    "BlockKey",
    "BlockSpec",
    "FilterParse",
    "JobKind",
    "JobResult",
    "LoadSource",
    "Locality",
    "LookupResult",
    "Medium",
    "Observer",
    "ObserverGroup",
    "OffloadPolicy",
    "OffloadingEvent",
    "PrefixAnswer",
    "PreparedStore",
    "PrimarySpec",
    "ReplaySpec",
    "RequestContext",
    "SecondaryTier",
    "SecondaryTierManager",
    "TierFilter",
    "TierMatcher",
    "TierSpec",
    "TieringManager",
    "Topology",
    "TransferJob",
    "Verdict",
    "load_topology",
    "parse_tier_filter",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
