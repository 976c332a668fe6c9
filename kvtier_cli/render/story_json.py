"""A request's story for `--json`: every name whole, every count there. The text is `story_view.py`."""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import Any, Final

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.reasons import deciding_line, headline, row_reason
from kvtier_cli.replay.story_model import Cell, RequestStory, StopStory, StoryBlock
from kvtier_cli.tiering.model import Verdict
from kvtier_cli.tiering.token_caps import LOAD_KEY, OFFLOAD_KEY
from kvtier_cli.tiering.topology import PRIMARY_NAME

_PRIMARY_VERDICTS: Final = {Cell.READY: "hit", Cell.PENDING: "pending", Cell.MISS: "miss"}


def story_as_json(story: RequestStory) -> dict[str, Any]:
    """`blocks` and `summary` of the document; the filter and the tiers are `filter_json.py`'s."""
    return {"blocks": [_block(story, block) for block in story.blocks], "summary": _summary(story)}


def _block(story: RequestStory, block: StoryBlock) -> dict[str, Any]:
    secondary = [tier.name for tier in story.tiers[1:]]
    verdicts = [verdict.value for verdict in block.verdicts or [Verdict.NOT_REACHED] * len(secondary)]
    primary = _PRIMARY_VERDICTS.get(block.cells[0], Verdict.NOT_REACHED.value)
    return {
        "index": block.index,
        "block": block.name,
        "result": None if block.result is None else block.result.value,
        "outcome": block.outcome.value,
        "tier": block.tier,
        "verdicts": {PRIMARY_NAME: primary, **dict(zip(secondary, verdicts, strict=True))},
        "holders": list(block.holders),
        "reason": row_reason(story, block),
        "looks": block.looks,
        "steps": block.steps,
    }


def _summary(story: RequestStory) -> dict[str, Any]:
    counts = story.counts()
    return {
        "text": headline(story),
        "blocks": len(story.blocks),
        "served": story.served,
        "tokens": story.tokens(len(story.blocks)),
        "tokens_served": story.tokens(story.served),
        "outcomes": {outcome.value: number for outcome, number in counts.items()},
        "served_by_tier": {PRIMARY_NAME: counts[Outcome.PRIMARY], **story.promoted_by_tier()},
        "lost_to_filter": story.lost_to_filter,
        "caps": _caps(story),
        "passes": story.passes,
        "gave_up": story.gave_up,
        "stop": None if story.stop is None else _stop(story, story.stop),
    }


def _caps(story: RequestStory) -> dict[str, int | None] | None:
    """The caps in tokens that the request carries; None without any."""
    if story.limits is None:
        return None
    caps = story.limits.caps
    return {LOAD_KEY: caps.max_load, OFFLOAD_KEY: caps.max_offload}


def _stop(story: RequestStory, stop: StopStory) -> dict[str, Any]:
    fields = asdict(stop)
    fields["slots"] = None if stop.slots is None else [use._asdict() for use in stop.slots]
    return {"text": deciding_line(story), **plain_values(fields)}


def plain_values(value: Any) -> Any:
    """Words in the place of enums."""
    if isinstance(value, dict):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return value.value if isinstance(value, Enum) else value
