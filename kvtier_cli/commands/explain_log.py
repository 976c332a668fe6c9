"""The half of `kvtier explain` that reads a decision log in the place of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from kvtier_cli.commands.log_options import refuse_replay_options
from kvtier_cli.commands.options import Shared
from kvtier_cli.errors import ExitStatus

if TYPE_CHECKING:
    from kvtier_cli.replay.decision_log import DecisionLog
    from kvtier_cli.replay.story_model import RequestStory
    from kvtier_cli.tiering.topology import Topology

TAKEN = ("trace", "request", "block", "rows", "wide", "limit", "offset")


def explain_log(
    ctx: typer.Context,
    options: Shared,
    path: str,
    request: str,
    block: str | None,
    *,
    rows: bool,
    wide: bool,
    limit: int | None,
    offset: int,
) -> int:
    """Print what the log at `path` knows of a request, or of all references to one of its blocks."""
    from kvtier_cli.render.logged_view import logged_as_json, logged_lines, replay_command
    from kvtier_cli.replay.decision_log import open_log
    from kvtier_cli.replay.logged_life import logged_life
    from kvtier_cli.replay.logged_story import logged_prompt, logged_story, logged_topology
    from kvtier_cli.replay.prompt import find_block

    refuse_replay_options(ctx, path, TAKEN)
    log = open_log(path)
    topology = logged_topology(log)
    logged = log.request(log.find_request(request))
    story = logged_story(log, topology, logged)
    life = None
    if block is not None:
        at = find_block(logged_prompt(log, logged), block, f"request {request}", path)
        life = logged_life(log, logged.number, at)
    if options.json:
        from kvtier_cli.render.json_out import write

        about = _about(log, topology, story, logged.number)
        told = logged_as_json(story, life, limit=limit, offset=offset)
        write("explain", {**about, **told, "warnings": log.header.warnings})
        return ExitStatus.DONE
    from kvtier_cli.render.console import plain

    replay = replay_command(log.header, request, block)
    for line in logged_lines(story, life, logged.step, replay, options.stdout(), rows=rows, wide=wide):
        print(line)
    for warning in log.header.warnings:  # which repeat names and words of files
        options.stderr().warn(plain(warning))
    return ExitStatus.DONE


def _about(log: DecisionLog, topology: Topology, story: RequestStory, number: int) -> dict[str, Any]:
    from kvtier_cli.render.filter_json import tiers_as_json

    header = log.header
    own = {"effective": story.filter.filter.as_json(), "fails_open": None, "warnings": None, "lint": None}
    return {
        "trace": header.files[0] if len(header.files) == 1 else None,
        "log": log.path,
        "files": header.files,
        "request": {"id": story.label, "index": number},
        "topology": topology.name,
        "block_tokens": story.block_tokens,
        "filter": own if header.filter is None else header.filter,
        "applies_to_all": header.filter is not None,
        "tiers_for": None,
        "requests_log": None,
        "tiers": tiers_as_json(story.filter, topology),
    }
