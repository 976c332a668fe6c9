"""A request's passes, stores and evictions in words: rows of tables and sentences. Decides nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from kvtier_cli.replay.placements import Cause, How
from kvtier_cli.replay.reasons import Show, joined
from kvtier_cli.replay.story_model import EvictedBlock, Look, RequestStory
from kvtier_cli.tiering.model import LookupResult, Verdict
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.wording import count

_ANSWERS: Final = {
    LookupResult.HIT: "hit",
    LookupResult.HIT_PENDING: "pending",
    LookupResult.RETRY: "retry",
    LookupResult.MISS: "miss",
}
_CAUSES: Final = {Cause.PROMOTION: "promotions", Cause.STORE: "stores", Cause.CASCADE: "cascades"}


class PassRow(NamedTuple):
    """The blocks `first` to `last` of a pass, which all got the same answer, and what the tiers said. Passes count
    from 1."""

    number: int
    step: int
    first: int
    last: int
    answer: str
    said: str


class EvictedRow(NamedTuple):
    """So many blocks put out of a tier by what the request did, how many of them unread, how and by whom they had been
    put there."""

    tier: str
    cause: str
    blocks: int
    unread: int
    put: str


def pass_rows(story: RequestStory, show: Show = str) -> Iterator[PassRow]:
    """The rows of the table of passes: runs of blocks with equal answers are one row."""
    for number, one in enumerate(story.pass_looks, 1):
        at = 0
        for look, run in groupby(one.looks):
            length = sum(1 for _ in run)
            yield PassRow(number, one.step, at, at + length - 1, _ANSWERS[look.result], _said(story, look, show))
            at += length


def _said(story: RequestStory, look: Look, show: Show) -> str:
    if not look.reached_tiers:
        if look.result is LookupResult.HIT:
            return f"{PRIMARY_NAME} has it"
        if look.result is LookupResult.HIT_PENDING:
            return f"on its way into {PRIMARY_NAME}"
        return "promotions are held" if look.verdicts else "there is no other tier"
    words = []
    for tier, verdict in zip(story.tiers[1:], look.verdicts, strict=True):
        if verdict is not Verdict.NOT_REACHED:
            words.append(f"{show(tier.name)} {verdict.value}")
    if look.promotion is not None:
        words[-1] += ", promotion started"
    if look.denied is not None:
        words[-1] += ", but no slot"
    return ", ".join(words)


def promotion_sentence(story: RequestStory, show: Show = str) -> str:
    """How many promotions the request started, from where; empty where it started none."""
    started = Counter(look.promotion for one in story.pass_looks for look in one.looks if look.promotion is not None)
    if not started:
        return ""
    parts = [f"{started[tier.name]:,} from {show(tier.name)}" for tier in story.tiers if started[tier.name]]
    if len(parts) == 1:
        return f"It started {count(started.total(), 'promotion')} from {parts[0].partition(' from ')[2]}."
    return f"It started {started.total():,} promotions: {', '.join(parts)}."


def store_sentence(story: RequestStory) -> str:
    """What the request stored of what it was not served."""
    stored = [batch for batch in story.stores if not batch.refused]
    refused = [batch for batch in story.stores if batch.refused]
    if not story.stores:
        return "It stored nothing."
    blocks = sum(len(batch.blocks) for batch in stored)
    steps = sorted({batch.step for batch in stored})
    where = f" in step {steps[0]:,}" if len(steps) == 1 else f" in steps {steps[0]:,} to {steps[-1]:,}" if steps else ""
    text = f"It stored {count(blocks, 'block')}{where}" if stored else "It stored nothing"
    if stored and len(story.stores) > 1:
        text += f", in {count(len(story.stores), 'batch', 'batches')}"
    if refused:
        lost = sum(len(batch.blocks) for batch in refused)
        whose = "its store" if len(story.stores) == 1 else f"{len(refused):,} of {len(story.stores):,} batches"
        text += f"; {whose} of {count(lost, 'block')} {'was' if len(refused) == 1 else 'were'} refused"
    return f"{text}."


def evicted_rows(story: RequestStory, show: Show = str, *, most: int = 3) -> list[EvictedRow]:
    """The rows of the table of what the request evicted, by tier, cause and how it got there; `most` requests are
    named in one."""
    names, causes, ways = [tier.name for tier in story.tiers], list(Cause), [*How, None]
    groups: dict[tuple[int, int, int], list[EvictedBlock]] = {}
    for block in story.evicted:
        group = names.index(block.tier), causes.index(block.cause), ways.index(block.how)
        groups.setdefault(group, []).append(block)
    return [
        EvictedRow(
            show(names[tier]),
            _CAUSES[causes[cause]],
            len(blocks),
            sum(block.unread for block in blocks),
            _put(blocks, show, most),
        )
        for (tier, cause, _), blocks in sorted(groups.items(), key=lambda item: item[0])
    ]


def _put(blocks: Sequence[EvictedBlock], show: Show, most: int) -> str:
    how = blocks[0].how
    if how is None:
        return "was there before"
    whose = Counter("itself" if block.own else show(block.put_by or "") for block in blocks).most_common()
    if len(whose) == 1:
        return f"{how.value} by {whose[0][0]}"
    words = [f"{who} ({number:,})" for who, number in whose]
    return f"{how.value} by " + joined(
        [*words[:most], f"{len(words) - most:,} more"] if len(words) > most + 1 else words
    )
