"""A lookup in an open workspace, told as a story. Whether it stays depends on how the workspace was opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.workspace.opened import Workspace
from kvtier_cli.workspace.stored_blocks import Resolved, StoredBlocks


class WorkspaceLookup(NamedTuple):
    """`story` is None where `resolved` says that a text is ambiguous: nothing was looked up then."""

    story: RequestStory | None
    resolved: Resolved
    blocks: StoredBlocks


def look_up(space: Workspace, texts: Sequence[str], parse: FilterParse) -> WorkspaceLookup:
    """Look up the blocks that `texts` mean, in order, as one request under the filter `parse`.

    The request is looked up, waits for its promotions, loads and finishes, and stores nothing. In a workspace that is
    opened to be read this changes nothing; in one opened to write, what was promoted is in the CPU tier from then on.
    """
    blocks = StoredBlocks(space)
    resolved = blocks.resolve(texts)
    if resolved.ambiguous:
        return WorkspaceLookup(None, resolved, blocks)
    run = space.run()
    run.loop.stores = False
    story = tell_story(
        run.loop,
        resolved.keys,
        parse,
        run.history,
        block_tokens=space.state.block_tokens,
        block_name=blocks.name,
    )
    return WorkspaceLookup(story, resolved, blocks)
