"""A request of a decision log as a story, told without a replay and as far as a log knows it. Renders nothing.

What a log has no room for is None in the story: answers and counts of single lookups, who took the slots, why a load
failed. Its passes, stores and evictions are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_log import DecisionLog, LoggedBlock, LoggedRequest
from kvtier_cli.replay.kvlog_file import AGAIN
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.prompt import Prompt
from kvtier_cli.replay.story import story_tiers
from kvtier_cli.replay.story_model import Cell, RequestStory, StopStory, StoryBlock
from kvtier_cli.tiering.filters import FilterParse, parse_tier_filter
from kvtier_cli.tiering.model import Verdict
from kvtier_cli.tiering.topology import PRIMARY_NAME, Topology
from kvtier_cli.tiering.topology_shape import topology_from_builtins

_SERVED: Final = (Outcome.PRIMARY, Outcome.PROMOTED)
_ASKED_AT_LEAST_THE_PRIMARY: Final = (Outcome.HELD, Outcome.ABSENT)
_CELLS: Final = {
    Verdict.HIT: Cell.PROMOTED,
    Verdict.MISS: Cell.MISS,
    Verdict.RETRY: Cell.RETRY,
    Verdict.SKIPPED: Cell.SKIPPED,
    Verdict.NOT_REACHED: Cell.BLANK,
}


def logged_topology(log: DecisionLog) -> Topology:
    """The tiers that the replay had. Raises InputError where what the log says of them cannot be."""
    said = dict(log.header.topology)
    name = said.pop("name", None)
    topology = topology_from_builtins(said, name if isinstance(name, str) else log.path, file=log.path)
    if [PRIMARY_NAME, *(tier.name for tier in topology.tiers)] != list(log.tiers):
        raise damaged(log, "its topology has other tiers than its rows")
    return topology


def logged_story(log: DecisionLog, topology: Topology, request: LoggedRequest) -> RequestStory:
    """What became of a request of `log`, whose `logged_topology` is `topology`."""
    parse = _filter(log, request)
    tiers = story_tiers(topology.tiers, parse)
    stop = _stop(log, request)
    lost = 0
    if stop is not None and stop.outcome is Outcome.FILTERED:
        offline = {tier.name for tier in topology.tiers if tier.offline}
        skipped = {tier.name for tier in tiers if not tier.admitted} - offline
        lost = _leading(not skipped.isdisjoint(block.holders) for block in request.blocks[stop.at :])
    return RequestStory(
        log.request_name(request.number),
        parse,
        tiers,
        tuple(_block(block, log.tiers[1:]) for block in request.blocks),
        stop,
        request.passes,
        request.gave_up,
        lost,
        log.header.block_tokens,
        topology.primary.capacity,
    )


def logged_prompt(log: DecisionLog, request: LoggedRequest) -> Prompt:
    """A request's blocks by their keys, labels and names."""
    return Prompt(
        tuple(block.key for block in request.blocks),
        tuple(log.names.label(block.key) for block in request.blocks),
        tuple(block.name for block in request.blocks),
    )


def damaged(log: DecisionLog, what: str) -> InputError:
    """The error for something in a log that cannot be."""
    return InputError(f"is damaged: {what}", file=log.path, hint=AGAIN)


def _filter(log: DecisionLog, request: LoggedRequest) -> FilterParse:
    """The request's filter. The one that all requests had is there with every entry, an own one with each once."""
    matchers: Any = request.filter.matchers if log.header.filter is None else log.header.filter.get("effective")
    if matchers == "ALL":
        return parse_tier_filter()
    parse = parse_tier_filter(matchers)
    if not isinstance(matchers, list) or parse.warnings:
        raise damaged(log, "it has a filter that cannot be")
    return parse


def _stop(log: DecisionLog, request: LoggedRequest) -> StopStory | None:
    at = request.served
    if at == len(request.blocks):
        return None
    block = request.blocks[at]
    held_behind = 0
    if block.outcome is Outcome.FILTERED:
        held_behind = _leading(block.tier in behind.holders for behind in request.blocks[at + 1 :])
    return StopStory(
        at,
        block.outcome,
        None if block.outcome is Outcome.UNREACHED else block.tier,
        request.reason,
        None if request.by is None else log.request_name(request.by),
        request.by == request.number,
        request.evicted_from,
        held_behind,
        slots=None if block.outcome is Outcome.DENIED else (),
        waiting_for=None if block.outcome is Outcome.GAVE_UP else (),
        tries=None,
    )


def _leading(marks: Iterator[bool]) -> int:
    """How many of `marks` are true before the first that is not."""
    count = 0
    for mark in marks:
        if not mark:
            break
        count += 1
    return count


def _block(block: LoggedBlock, secondary: Sequence[str]) -> StoryBlock:
    return StoryBlock(
        block.index,
        block.name,
        block.outcome,
        block.tier,
        None,
        block.verdicts,
        tuple(_cells(block, secondary)),
        block.holders,
        None,
        None,
    )


def _cells(block: LoggedBlock, secondary: Sequence[str]) -> Iterator[Cell]:
    if block.outcome is Outcome.PRIMARY:
        yield Cell.READY
        yield from (_tier_cell(block, *said) for said in zip(secondary, block.verdicts, strict=True))
    elif block.outcome in _ASKED_AT_LEAST_THE_PRIMARY or any(
        verdict is not Verdict.NOT_REACHED for verdict in block.verdicts
    ):
        yield Cell.MISS  # no lookup that finds a block in the primary, or on its way there, gets as far as the tiers
        yield from (_tier_cell(block, *said) for said in zip(secondary, block.verdicts, strict=True))
    else:
        yield from (Cell.HOLDS if name in block.holders else Cell.BLANK for name in (PRIMARY_NAME, *secondary))


def _tier_cell(block: LoggedBlock, name: str, verdict: Verdict) -> Cell:
    if block.outcome is Outcome.FAILED and name == block.tier and verdict in (Verdict.HIT, Verdict.MISS):
        return Cell.LOAD_FAILED
    if block.outcome is Outcome.DENIED and verdict is Verdict.HIT:
        return Cell.NO_SLOT
    if verdict is Verdict.SKIPPED and name in block.holders:
        return Cell.SKIPPED_HOLDS
    return _CELLS[verdict]
