"""Decision logs of one trace side by side: their figures, and the requests that ended in another way. No replay.

What it finds is what `compare.py` finds by replaying the variants. Renders nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kvtier_cli.errors import InputError
from kvtier_cli.replay.compare import AgainstFirst, Difference, Differences, Moved, Span
from kvtier_cli.replay.decision_columns import NONE, OUTCOMES, Array
from kvtier_cli.replay.decision_log import DecisionLog
from kvtier_cli.replay.figure_names import leaves
from kvtier_cli.replay.kvlog_file import AGAIN
from kvtier_cli.replay.logged_story import damaged, logged_topology
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.model import Locality
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.wording import shown

_SAME = "Logs are compared of one trace, its blocks counted alike, replayed with other filters or tiers."
_PRIMARY, _PROMOTED, _UNREACHED = (
    OUTCOMES.index(each) for each in (Outcome.PRIMARY, Outcome.PROMOTED, Outcome.UNREACHED)
)


class LoggedComparison:
    """All `logs` against the first. `keep`: how many of the requests that differ are remembered.

    Raises InputError for logs that are not of one trace, and for one that says what cannot be.
    """

    def __init__(self, logs: Sequence[DecisionLog], *, keep: int) -> None:
        self.logs = logs
        self.topologies = [logged_topology(log) for log in logs]
        self.figures = [_figures(log, topology) for log, topology in zip(self.logs, self.topologies, strict=True)]
        for log in logs[1:]:
            _check_same_trace(logs[0], log)
        self.differences = _differences(logs, keep)

    @property
    def block_tokens(self) -> int:
        """Tokens a block."""
        return self.logs[0].header.block_tokens

    def moved(self) -> list[Mapping[str, Moved] | None]:
        """For each log the blocks that its tiers moved, by tier; None where the size of a block was not known."""
        found: list[Mapping[str, Moved] | None] = []
        for topology, figures in zip(self.topologies, self.figures, strict=True):
            size = (topology.block.bytes_per_token or 0) * self.block_tokens
            moved = figures["bytes"]
            known = size and moved is not None
            found.append(
                {tier: Moved(each["read"] // size, each["written"] // size) for tier, each in moved.items()}
                if known
                else None
            )
        return found

    def remote_reads(self) -> list[int | None]:
        """For each log the blocks that arrived from tiers that are declared remote; None where that is not known."""
        return [
            None
            if moved is None
            else sum(moved[tier.name].read for tier in topology.tiers if tier.locality is Locality.REMOTE)
            for topology, moved in zip(self.topologies, self.moved(), strict=True)
        ]


def _figures(log: DecisionLog, topology: Topology) -> Mapping[str, Any]:
    """The log's figures, which have every name that a replay of ours has, and a number for it."""
    figures = log.figures
    for path, _ in leaves(TraceRun([], topology).figures()):
        value: Any = figures
        for step in path:
            if not isinstance(value, Mapping) or step not in value:
                raise InputError(
                    f"has no figure {'.'.join(path)}: it is of kvtier {log.header.kvtier}", file=log.path, hint=AGAIN
                )
            value = value[step]
        if not isinstance(value, int | float | None) or (value is None and path[0] not in ("bytes", "rates")):
            raise damaged(log, f"its figure {'.'.join(path)} is no number")
    return figures


def _check_same_trace(first: DecisionLog, other: DecisionLog) -> None:
    def differs(what: str) -> InputError:
        return InputError(f"cannot be compared with {first.path}: {what}", file=other.path, hint=_SAME)

    tokens = first.header.block_tokens, other.header.block_tokens
    if tokens[0] != tokens[1]:
        raise differs(f"its blocks have {tokens[1]:,} tokens, there they have {tokens[0]:,}")
    if first.requests != other.requests:
        raise differs(f"it has {other.requests:,} requests, there are {first.requests:,}")
    starts = first.of_requests("start"), other.of_requests("start")
    if not _equal(starts[:1], starts[1:]):
        number = int(np.flatnonzero(starts[0] != starts[1])[0]) - 1
        lengths = [int(start[number + 1] - start[number]) for start in starts]
        raise differs(f"its request r{number} has {lengths[1]:,} blocks, there it has {lengths[0]:,}")
    if not _equal(first.id_columns(), other.id_columns()):
        for number in range(first.requests):
            ids = [log.request_label(number) for log in (first, other)]
            if ids[0] != ids[1]:
                raise differs(f"its request r{number} has the id {shown(ids[1])}, there {shown(ids[0])}")
    row = _first_other_block(first, other)
    if row is not None:
        number = int(np.searchsorted(starts[0], row, side="right")) - 1
        names = [log.names.label(int(log.of_rows("key")[row])) for log in (first, other)]
        at = row - int(starts[0][number])
        raise differs(f"block {at:,} of its request r{number} is {shown(names[1])}, there {shown(names[0])}")


def _equal(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return len(some) == len(others) and all(map(np.array_equal, some, others))


def _first_other_block(first: DecisionLog, other: DecisionLog) -> int | None:
    """The first row whose block has another label in the two logs."""
    keys = [log.of_rows("key") for log in (first, other)]
    if _equal(keys[:1], keys[1:]) and _equal(first.names.columns(), other.names.columns()):
        return None
    # Blocks are numbered otherwise where they are known otherwise, by their ids alone or by what is before them too.
    numbers: dict[str, int] = {}
    labels = [
        np.array([numbers.setdefault(label, len(numbers)) for label in log.names.labels()], np.int64)
        for log in (first, other)
    ]
    rows = np.flatnonzero(labels[0][keys[0]] != labels[1][keys[1]])
    return int(rows[0]) if len(rows) else None


def _differences(logs: Sequence[DecisionLog], keep: int) -> Differences:
    start = logs[0].of_requests("start")
    names = list(dict.fromkeys(name for log in logs for name in log.tiers))
    ends = [_ends(log, names) for log in logs]
    served = [_per_request((outcome == _PRIMARY) | (outcome == _PROMOTED), start) for outcome, _ in ends]
    apart = [(outcome != ends[0][0]) | (tier != ends[0][1]) for outcome, tier in ends]
    blocks = _per_request(np.logical_or.reduce(apart), start)
    numbers = np.flatnonzero(blocks)
    changes = np.stack([each[numbers] - served[0][numbers] for each in served])
    found = Differences(
        keep,
        len(numbers),
        int(blocks.sum()),
        [
            AgainstFirst(
                int(np.count_nonzero(_per_request(marks, start))),
                int(np.count_nonzero(change < 0)),
                int(np.count_nonzero(change > 0)),
            )
            for marks, change in zip(apart, changes, strict=True)
        ],
    )
    for place in np.lexsort((numbers, -blocks[numbers], -np.abs(changes).max(axis=0)))[:keep].tolist():
        number = int(numbers[place])
        rows = slice(int(start[number]), int(start[number + 1]))
        found.remember(
            Difference(
                number,
                logs[0].request_label(number),
                tuple(int(each[number]) for each in served),
                tuple(_spans(outcome[rows], tier[rows], names) for outcome, tier in ends),
                int(blocks[number]),
                logs[0].of_rows("key")[rows].tolist(),
                logs[0].names,
            )
        )
    return found


def _ends(log: DecisionLog, names: Sequence[str]) -> tuple[Array, Array]:
    """How each block ended: its outcome, and its tier as a place in `names`. What holds an unreached block is no part
    of that."""
    outcome = log.of_rows("outcome")
    places = np.array([*(names.index(name) for name in log.tiers), NONE], np.int16)  # at -1, the last, none
    tier = places[log.of_rows("tier")]
    tier[outcome == _UNREACHED] = NONE
    return outcome, tier


def _per_request(marks: Array, start: Array) -> Array:
    """How many of the marks of each request are set."""
    return np.diff(np.concatenate([np.zeros(1, np.int64), np.cumsum(marks, dtype=np.int64)])[start])


def _spans(outcome: Array, tier: Array, names: Sequence[str]) -> tuple[Span, ...]:
    """How the blocks of one request ended, from first to last."""
    stops = np.flatnonzero((outcome[1:] != outcome[:-1]) | (tier[1:] != tier[:-1])) + 1
    return tuple(
        Span(stop, OUTCOMES[outcome[stop - 1]], None if tier[stop - 1] == NONE else names[tier[stop - 1]])
        for stop in [*stops.tolist(), len(outcome)]
    )
