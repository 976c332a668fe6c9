"""The words of tiering: media, localities, lookup results, verdicts, kinds of jobs. Holds data, decides nothing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import NamedTuple

BlockKey = Hashable
"""A block's identity, opaque to the manager. Fixtures and stores use `str`, the replay of a trace small ints."""

GROUP_MARK = "@"
"""Separates a block's name from its KV cache group: `b7@1` is block b7 of group 1; group 0 carries no mark."""


class Medium(Enum):
    """What a tier is made of; the values are the names on vLLM's wire."""

    CPU = "CPU"
    STORAGE = "STORAGE"


class Locality(Enum):
    """Where a tier is, seen from the server; the values are the names on vLLM's wire."""

    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


class LookupResult(Enum):
    """What the manager (or one tier) answers for one block."""

    HIT = "HIT"
    HIT_PENDING = "HIT_PENDING"
    RETRY = "RETRY"
    MISS = "MISS"


class Verdict(Enum):
    """What became of one secondary tier in one lookup; the values are the words of fixtures and logs."""

    SKIPPED = "skipped"
    MISS = "miss"
    RETRY = "retry"
    HIT = "hit"
    NOT_REACHED = "not_reached"


class JobKind(Enum):
    """Which way a job moves blocks: a promotion from a secondary tier to the primary, a cascade the other way."""

    PROMOTION = "promotion"
    CASCADE = "cascade"


class OffloadPolicy(Enum):
    """How much of a request its tiers want: blocks as they are stored, or the request whole."""

    CHUNK_LEVEL = "chunk_level"
    REQUEST_LEVEL = "request_level"


class LoadSource(Enum):
    """Where a loaded block came from, as vLLM labels it: by the medium of the tier that promoted it."""

    HOST = "host"
    DISK = "disk"
    EXTERNAL_UNSPECIFIED = "external_unspecified"


def load_source(medium: Medium | None) -> LoadSource:
    """The label of blocks promoted from a tier of `medium` (None: not declared)."""
    if medium is Medium.CPU:
        return LoadSource.HOST
    return LoadSource.DISK if medium is Medium.STORAGE else LoadSource.EXTERNAL_UNSPECIFIED


def group_of(key: BlockKey) -> int:
    """The KV cache group of a block: the number behind the last `@` of a name, else 0."""
    if type(key) is str and GROUP_MARK in key:
        group = key.rpartition(GROUP_MARK)[2]
        if group.isdecimal():
            return int(group)
    return 0


class OffloadingEvent(NamedTuple):
    """Blocks that became resident in a medium, or left it (`removed`). A tier that declares no locality has None."""

    medium: Medium
    locality: Locality | None
    removed: bool
    keys: Sequence[BlockKey]
