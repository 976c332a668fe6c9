"""Where stepping through a fixture is to stop, as users write it, and whether an op is such a place. Shows nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kvtier_cli.errors import InputError
from kvtier_cli.replay.fixture import Fixture
from kvtier_cli.replay.fixture_run import OpResult
from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.tiering.model import BlockKey, LookupResult, Verdict
from kvtier_cli.tiering.observer import Observer
from kvtier_cli.wording import did_you_mean, escape, nearest, shown

DENIED: Final = "denied"
EVICTED: Final = "evicted"
MISMATCH: Final = "mismatch"
FORMS: Final = "denied, evicted:BLOCK or mismatch"


class BreakOn(NamedTuple):
    """One kind of thing to stop at; `block` only of an eviction."""

    kind: str
    block: str | None = None

    def __str__(self) -> str:
        return self.kind if self.block is None else f"{self.kind}:{self.block}"


def parse_break(text: str) -> BreakOn:
    """Reads what a user wrote. Raises InputError, naming the nearest word for one that is not known."""
    kind, colon, block = text.strip().partition(":")
    if kind not in (DENIED, EVICTED, MISMATCH):
        raise InputError(f"cannot break on {shown(kind)}", hint=_hint(kind))
    if kind == EVICTED:
        if not block:
            raise InputError("evicted needs a block to wait for", hint="For example evicted:b1.")
        return BreakOn(kind, block)
    if colon:
        raise InputError(f"{kind} takes no {shown(block)}", hint=f"Break on {FORMS}.")
    return BreakOn(kind)


def _hint(kind: str) -> str:
    known = (DENIED, EVICTED, MISMATCH)
    return did_you_mean(kind, known) if nearest(kind, known) else f"Break on {FORMS}."


def blocks_named(fixture: Fixture) -> set[str] | None:
    """All blocks that the ops of a fixture name; None where a trace that it replays may have any."""
    if any(op.name == "replay" for op in fixture.ops):
        return None
    return {
        block for op in fixture.ops for block in _blocks({key: op.fields[key] for key in op.fields if key != "expect"})
    }


def _blocks(value: object, *, listed: bool = False) -> Iterator[str]:
    """The texts in a value that can be names of blocks: those in lists, and under the keys that hold blocks."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "blocks" and isinstance(inner, dict):  # of a preset's state
                yield from map(str, inner)
            elif key != "kv_load_tiers":
                yield from _blocks(inner, listed=key == "block")
    elif isinstance(value, list):
        for item in value:
            yield from _blocks(item, listed=True)
    elif listed and isinstance(value, str):
        yield value


class BreakWatcher(Observer):
    """Hears what an op made the manager deny and evict, whatever kind of op; `breaks` may grow between two ops."""

    def __init__(self, breaks: Iterable[BreakOn] = ()) -> None:
        self.breaks = list(breaks)
        self._denied: list[tuple[Hashable, BlockKey, str]] = []
        self._evicted: dict[BlockKey, tuple[Hashable, str]] = {}

    def on_lookup(
        self,
        req_id: Hashable,
        key: BlockKey,
        result: LookupResult,
        verdicts: Sequence[Verdict],
        *,
        promotion: str | None,
        denied: str | None,
        evicted: Sequence[BlockKey],
    ) -> None:
        if denied is not None:
            self._denied.append((req_id, key, denied))

    def on_evicted(self, req_id: Hashable, tier: str, keys: Sequence[BlockKey]) -> None:
        for key in keys:
            self._evicted.setdefault(key, (req_id, tier))

    def met(self, result: OpResult, runner: OpRunner) -> dict[BreakOn, str]:
        """The breaks that the op which has just run meets, each with what happened; forgets what it heard."""
        reasons = {stop: self._reason(stop, result, runner) for stop in self.breaks}
        found = {stop: reason for stop, reason in reasons.items() if reason is not None}
        self._denied.clear()
        self._evicted.clear()
        return found

    def _reason(self, stop: BreakOn, result: OpResult, runner: OpRunner) -> str | None:
        if stop.kind == MISMATCH:
            count = len(result.mismatches)
            return f"{count:,} expectation{' is' if count == 1 else 's are'} not met" if count else None
        if stop.kind == DENIED:
            if not self._denied:
                return None
            req_id, key, tier = self._denied[0]
            more = f", and {len(self._denied) - 1:,} more" if len(self._denied) > 1 else ""
            return escape(f"{tier} has {key} for {runner.request_name(req_id)}, and the primary had no slot{more}")
        if stop.block not in self._evicted:
            return None
        req_id, tier = self._evicted[stop.block]
        return escape(f"{stop.block} was evicted from {tier} for {runner.request_name(req_id)}")
