"""`kvtier explain` for `--json`: every pass, every eviction, a life or a page of it. `explain_view.py` is the text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kvtier_cli.render.story_json import plain_values, story_as_json
from kvtier_cli.replay.explain import Explanation, LifeStory
from kvtier_cli.replay.story_model import Look, RequestStory
from kvtier_cli.tiering.model import LookupResult
from kvtier_cli.tiering.topology import PRIMARY_NAME


def explanation_as_json(explanation: Explanation, *, limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """`passes`, `blocks`, `summary`, `stores`, `evicted`, `without_filter` and `life` of the document. `limit` and
    `offset` make a page of the life's events."""
    story, life = explanation.story, explanation.life
    without = story.without_filter
    return {
        "passes": [
            {"step": one.step, "lookups": [_look(story, index, look) for index, look in enumerate(one.looks)]}
            for one in story.pass_looks
        ],
        **story_as_json(story),
        "stores": [{"step": one.step, "blocks": list(one.blocks), "refused": one.refused} for one in story.stores],
        "evicted": [plain_values(asdict(block)) for block in story.evicted],
        "without_filter": None if without is None else {"served": without.served, "by_tier": dict(without.by_tier)},
        "life": None if life is None else _life(life, limit, offset),
    }


def _look(story: RequestStory, index: int, look: Look) -> dict[str, Any]:
    primary = "miss"
    if not look.reached_tiers and look.result is LookupResult.HIT:
        primary = "hit"
    elif not look.reached_tiers and look.result is LookupResult.HIT_PENDING:
        primary = "pending"
    secondary = zip((tier.name for tier in story.tiers[1:]), (verdict.value for verdict in look.verdicts), strict=True)
    return {
        "index": index,
        "block": story.blocks[index].name,
        "result": look.result.value,
        "verdicts": {PRIMARY_NAME: primary, **dict(secondary)},
        "promotion": look.promotion,
        "denied": look.denied,
    }


def _life(life: LifeStory, limit: int | None, offset: int) -> dict[str, Any]:
    end = None if limit is None else offset + limit
    return {
        "index": life.index,
        "block": life.block,
        "whole": life.whole,
        "events": [plain_values(asdict(entry)) for entry in life.entries[offset:end]],
        "total": len(life.entries),
        "offset": offset,
        "loads": life.loads,
        "holders": list(life.holders),
    }
