"""What the manager and its secondary tiers hand to each other: requests, jobs and how these ended.

Structs, made by the thousand in every replay, and apart from `model.py`: who only reads filters need not load msgspec.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kvtier_cli.tiering.model import BlockKey, JobKind

if TYPE_CHECKING:
    from kvtier_cli.tiering.filters import TierFilter


class RequestContext(Struct, frozen=True, gc=False):
    """What a tier is told about a request: its id and the filter on its loads."""

    req_id: Hashable
    load_filter: TierFilter


class TransferJob(Struct, frozen=True, gc=False):
    """One transfer between the primary and one secondary tier. `keys` are in the order they were asked for."""

    job_id: int
    kind: JobKind
    tier: str
    req_id: Hashable
    keys: Sequence[BlockKey]


class JobResult(Struct, frozen=True, gc=False):
    """How a job ended. `failed` names the blocks that did not make it; a job without any has succeeded."""

    job: TransferJob
    failed: frozenset[BlockKey] = frozenset()

    @property
    def success(self) -> bool:
        return not self.failed
