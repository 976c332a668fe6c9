"""`kvtier explain` of a decision log: the story as `explain_view` tells it, less what a log does not know."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.explain_view import life_table
from kvtier_cli.render.json_out import SCOPE
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.render.story_json import plain_values, story_as_json
from kvtier_cli.render.story_view import shows, story_lines
from kvtier_cli.replay.kvlog_file import LogHeader
from kvtier_cli.replay.logged_life import LoggedLife, Reference, life_sentences, reference_rows
from kvtier_cli.replay.reasons import row_reason, words_of
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.tiering.topology_file import INLINE
from kvtier_cli.wording import count


def logged_lines(
    story: RequestStory,
    life: LoggedLife | None,
    step: int,
    replay: str,
    out: Output,
    *,
    rows: bool = False,
    wide: bool = False,
) -> Iterator[str]:
    """The text, line by line: of the request whose last pass ended after `step` steps, or of its block's `life`.
    `replay`: the command that tells the rest."""
    show = shows(out, wide=wide)
    if life is None:
        yield from story_lines(story, out, rows=rows, wide=wide, scope=False)
        asked = f"Its prefix was looked up in {count(story.passes, 'pass', 'passes')}; the last ended in step {step:,}."
        missing = "A log does not say what each pass asked, nor what was stored and evicted; a replay does:"
    else:
        block = story.blocks[life.index]
        whose, why = show(story.label or ""), row_reason(story, block, show)
        named = f"Block {life.index:,} ({show(life.block)}) of {whose} is {words_of(block.outcome)}: {plain(why)}."
        yield from wrapped(named, out, style="bold")
        yield from wrapped(plain(life_sentences(life, show)), out)
        yield ""
        yield from life_table(reference_rows(life, show), out, rows=rows)
        asked = ""
        missing = "A log does not say when it was stored, cascaded and evicted; a replay does:"
    yield ""
    yield from wrapped(" ".join(filter(None, [asked, missing, plain(replay)])), out, indent=1)
    yield ""
    yield from wrapped(SCOPE, out, indent=1, style="muted")


def replay_command(header: LogHeader, request: str, block: str | None) -> str:
    """The command that explains the request by a replay. What the log cannot name is a word in capitals."""
    named = len(header.files) == 1 and header.files[0] != "stdin"
    words = ["kvtier", "explain", header.files[0] if named else "TRACE", "--request", request]
    if block is not None:
        words += ["--block", block]
    if header.filter is not None:
        words += ["--tiers", header.filters[0].short if header.filters else "FILTER"]
    topology = header.topology.get("name")
    if topology != BUILT_IN.name:
        words += ["--topology", "TOPOLOGY" if topology == INLINE or not isinstance(topology, str) else topology]
    return shlex.join(words)


def logged_as_json(
    story: RequestStory, life: LoggedLife | None, *, limit: int | None = None, offset: int = 0
) -> dict[str, Any]:
    """The parts of the document that `explanation_as_json` has, None where a log does not know, and `references`: those
    to the block of `life`, `limit` of them from `offset` on."""
    return {
        "passes": None,
        **story_as_json(story),
        "stores": None,
        "evicted": None,
        "without_filter": None,
        "life": None,
        "references": None if life is None else _references(life, limit, offset),
    }


def _references(life: LoggedLife, limit: int | None, offset: int) -> dict[str, Any]:
    end = None if limit is None else offset + limit
    return {
        "index": life.index,
        "block": life.block,
        "total": len(life.references),
        "offset": offset,
        "requests": [_reference(each) for each in life.references[offset:end]],
    }


def _reference(reference: Reference) -> dict[str, Any]:
    fields = plain_values(reference._asdict())
    return {"request": fields.pop("request"), "id": fields.pop("name"), "index": fields.pop("at"), **fields}
