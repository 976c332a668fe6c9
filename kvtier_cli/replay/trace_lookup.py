"""Stories after a trace's history: of one of its requests, or of blocks that somebody names. Renders nothing.

The requests of the history run as a `TraceRun` runs them, under their own filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvtier_cli.replay.identity import ROOT, BlockTable, Label
from kvtier_cli.replay.outcomes import holders
from kvtier_cli.replay.request_names import IDS_COMPARED, request_number
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.replay.trace_teller import TraceTeller
from kvtier_cli.tiering.block_names import CHAIN_MARK
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.traces.detect import read_trace
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.order import in_arrival_order
from kvtier_cli.traces.source import TraceSource

_ORDINAL = re.compile(rf"(?P<label>.+){CHAIN_MARK}(?P<ordinal>[1-9][0-9]{{0,8}})", re.DOTALL)


class BlockMatch(NamedTuple):
    """One of several blocks with the same label: `name` tells it from the others. `at`: its place in its prompts, from
    0 (None: not known); `behind`: the name of the block before it (None: it begins them, or that is not known);
    `holders`: the tiers that have it now."""

    name: str
    at: int | None
    behind: str | None
    holders: tuple[str, ...]


def find_request(
    source: TraceSource,
    text: str,
    reading: TraceOptions = AS_IT_SAYS,
    *,
    skip_bad: bool = False,
    on_bytes: Callable[[int], object] | None = None,
) -> int:
    """The number, from 0 in order of arrival, of the request that `text` means: its own id in the trace, else the
    number itself, `1204` or `r1204`. Reads the trace once; `on_bytes` hears of progress. Raises InputError for one that
    there is not."""
    total = 0
    found: list[Request] = []
    known: list[str] = []
    requests, _ = in_arrival_order(read_trace(source, reading, skip_bad=skip_bad, on_bytes=on_bytes))
    for request in requests:
        total += 1
        if request.request_id is not None:
            if request.request_id == text:
                found.append(request)
            elif len(known) < IDS_COMPARED:
                known.append(request.request_id)
    return request_number(text, total, [request.index for request in found], known, source.name)


def request_story(run: TraceRun, index: int, parse: FilterParse | None = None) -> RequestStory:
    """Replay what is before request `index` in `run`, then that request, under `parse` or else its own filter. What is
    left of the trace is then only read, for `run.warnings`."""
    teller = TraceTeller(run)
    teller.replay(index)
    story = teller.tell(parse)
    teller.skip_rest()
    run.warn_of_filters()
    return story


def resolve_blocks(
    run: TraceRun, texts: Sequence[str]
) -> tuple[list[BlockKey], list[str], dict[str, list[BlockMatch]]]:
    """The blocks that `texts` mean, after `run` is over.

    `5102` is the block with that id, `5102~2` the second of several with that id. Where an id stands for several, the
    one that follows the block before it in `texts` is meant. Returns the blocks, those texts that no block of the trace
    has (they are blocks never stored), and for the texts that remain ambiguous all matches.
    """
    table = run.loop.table
    keys: list[BlockKey] = []
    unknown: list[str] = []
    ambiguous: dict[str, list[BlockMatch]] = {}
    for text in texts:
        found = _named(table, text)
        if len(found) > 1 and keys:
            found = [key for key in found if table.parents[key] == keys[-1]] or found
        if not found:
            unknown.append(text)
            keys.append(text)  # the trace's own blocks are ints
        else:
            keys.append(found[0])
            if len(found) > 1:
                ambiguous[text] = [_match(run, key, text, number) for number, key in enumerate(found, 1)]
    return keys, unknown, ambiguous


def _named(table: BlockTable, text: str) -> list[int]:
    found = table.named(_label(text))
    ordinal = _ORDINAL.fullmatch(text)
    if found or ordinal is None:
        return found
    found = table.named(_label(ordinal["label"]))
    return found[int(ordinal["ordinal"]) - 1 :][:1]


def _label(text: str) -> Label:
    """A block's id as the reader of traces keeps it: what spells an int in the one usual way is that int."""
    try:
        number = int(text)
    except ValueError:  # no number, or one of more digits than Python reads
        return text
    return number if str(number) == text else text


def _match(run: TraceRun, key: int, text: str, number: int) -> BlockMatch:
    table = run.loop.table
    at, parent = 0, table.parents[key]
    while parent != ROOT:
        at, parent = at + 1, table.parents[parent]
    before = table.parents[key]
    behind = None if before == ROOT else table.name(before)
    return BlockMatch(f"{text}{CHAIN_MARK}{number}", at, behind, holders(run.manager, key))


def blocks_story(run: TraceRun, keys: Sequence[BlockKey], parse: FilterParse) -> RequestStory:
    """Look `keys` up in order, as one more request after everything that `run` has replayed."""
    return tell_story(run.loop, keys, parse, run.history, block_tokens=run.loop.block_tokens)
