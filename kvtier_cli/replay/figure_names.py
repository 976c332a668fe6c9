"""The figures of a replay by dotted names, as `--json` has them, and by the shorter ones that people write.

Knows which names a topology gives, and of what a figure may be a share. Judges nothing: that is `figure_expr.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from kvtier_cli.errors import InputError
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.wording import nearest, shown

Path = tuple[str, ...]

ALIASES: Mapping[str, Path] = {
    "served": ("blocks_loaded",),
    "stored": ("blocks_stored",),
    "promoted": ("promotions_started",),
    "lost": ("lost_to_filter",),
}
"""Short names of single figures. Besides, an outcome goes by its own name (`filtered`), and so does a figure by tier
(`promoted.s3`), by reason (`absent.cold`) and a rate without its `.value`."""

_MAPS = ("_by_tier", "_by_reason", "_by_source")
_OF_BLOCKS = frozenset(
    {"blocks_loaded", "blocks_stored", "promotions_started", "lost_to_filter", "loaded_by_source", "promoted_by_tier"}
    | {"outcomes", "served_by_tier", "filtered_by_tier", "denied_by_tier", "absent_by_reason", "unreached_held_by_tier"}
    | {"unreached_capped", "unstored_capped"}
)
_OF_REQUESTS = frozenset({"gave_up", "requests_served_whole", "requests_capped"})


class Kind(Enum):
    """What a figure counts, and of what it may be a share."""

    BLOCKS = "blocks"
    """References to blocks: a share is one of all blocks."""
    REQUESTS = "requests"
    """Requests: a share is one of all requests."""
    RATE = "rate"
    """A share already, from 0 to 1."""
    BYTES = "bytes"
    COUNT = "count"
    """Something of which there is no share: steps, lookups, batches of stores."""


class Figure(NamedTuple):
    """A figure that there is: its place in the figures, and what it counts."""

    path: Path
    kind: Kind

    @property
    def name(self) -> str:
        """Its whole dotted name."""
        return ".".join(self.path)

    @property
    def whole(self) -> str | None:
        """The name of the figure of which this one is a share, None where there is none."""
        return {Kind.BLOCKS: "blocks", Kind.REQUESTS: "requests"}.get(self.kind)


def kind_of(path: Path) -> Kind:
    """What the figure at `path` counts."""
    if path[0] in _OF_BLOCKS:
        return Kind.BLOCKS
    if path[0] in _OF_REQUESTS:
        return Kind.REQUESTS
    return {"rates": Kind.RATE, "bytes": Kind.BYTES}.get(path[0], Kind.COUNT)


def leaves(figures: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every figure that is a number, or None where one was not to be had, with its path; formulas are left out."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            for path, leaf in leaves(value):
                yield (name, *path), leaf
        elif not isinstance(value, str):
            yield (name,), value


def value_at(figures: Mapping[str, Any], path: Path) -> int | float | None:
    """The figure at `path`. A tier that a map does not have is 0 there; None where the figure is not known."""
    value: Any = figures
    for step in path:
        if value is None:
            return None
        value = value.get(step, 0) if isinstance(value, Mapping) else 0
    return None if isinstance(value, Mapping) else value


class FigureNames:
    """The names that figures have under a topology, all of which are known before a trace is read."""

    def __init__(self, topology: Topology) -> None:
        figures = TraceRun([], topology).figures()  # of no request: every name, no number
        self.knows_bytes = figures["bytes"] is not None
        paths = [path for path, _ in leaves(figures) if path != ("bytes",)]
        self._paths: dict[str, Path] = {".".join(path): path for path in paths}
        for name, path in ALIASES.items():
            self._paths.setdefault(name, path)
        for path in paths:
            for name in _short_names(path):
                self._paths.setdefault(name, path)

    def find(self, name: str) -> Figure:
        """The figure that `name` means. Raises InputError, with the nearest name, for one that there is not."""
        path = self._paths.get(name)
        if path is None:
            if not self.knows_bytes and name.partition(".")[0] == "bytes":
                raise InputError(
                    "bytes are not known without the size of a block", hint="Give block.bytes_per_token in a topology."
                )
            near = nearest(name, self._paths) or self._nearest_tail(name)
            raise InputError(
                f"there is no figure {shown(name)}",
                hint=f'Did you mean "{near}"?' if near else "kvtier replay --json shows the names of all figures.",
            )
        return Figure(path, kind_of(path))

    def _nearest_tail(self, name: str) -> str | None:
        """Of a map that there is, the entry that is most like the one asked for."""
        head, _, tail = name.rpartition(".")
        entries = {known.removeprefix(f"{head}."): known for known in self._paths if known.startswith(f"{head}.")}
        near = nearest(tail, entries) or next(iter(entries), None) if head else None
        return entries[near] if near else None


def _short_names(path: Path) -> Iterator[str]:
    head, *rest = path
    if head == "outcomes":
        yield rest[0]
    elif head == "rates":
        yield f"rates.{rest[0]}"
    for ending in _MAPS:
        if head.endswith(ending):
            yield ".".join((head.removesuffix(ending), *rest))
