"""Secondary tiers on disk for one run, outside any workspace: `kvtier replay --store`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.replay.trace_run import KeptTiers
from kvtier_cli.tiering.secondary import SecondaryTier
from kvtier_cli.tiering.stores import MemoryStore
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.workspace.layout import store_name


@contextmanager
def tiers_in(folder: Path, topology: Topology) -> Iterator[KeptTiers]:
    """The tiers of `topology`, empty, each with a store in `folder` unless its backend is memory. The stores stay.

    Raises InputError where there is something in `folder` already: a replay begins with empty tiers.
    """
    from kvtier_cli.tiering.stores.disk import DiskStore

    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} is not empty", hint="A replay begins with empty tiers: name a new folder.")
    except OSError as error:
        raise EnvironmentFault(f"{folder} cannot be read: {(error.strerror or str(error)).lower()}") from error
    stores: list[DiskStore] = []
    try:
        tiers = []
        for spec in topology.tiers:
            if spec.backend == "memory":
                tiers.append(SecondaryTier(spec, MemoryStore()))
            else:
                stores.append(DiskStore(folder / store_name(spec.name)))
                tiers.append(SecondaryTier(spec, stores[-1]))
        yield KeptTiers(tiers)
    finally:
        for store in stores:
            store.close()
