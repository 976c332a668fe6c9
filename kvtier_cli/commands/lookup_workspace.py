"""The half of `kvtier lookup` that looks into the workspace."""

from __future__ import annotations

from collections.abc import Sequence

from kvtier_cli.commands.inputs import GivenFilter, given_filter, warnings_before
from kvtier_cli.commands.lookup import LookedUp
from kvtier_cli.commands.workspace_options import opened
from kvtier_cli.replay.trace_lookup import BlockMatch
from kvtier_cli.tiering.filters import lint_against, parse_tier_filter

_FORGOTTEN = "what earlier loads evicted is not remembered: a block that no tier has may have been stored once"


def look_up_in_workspace(
    workspace: str | None, texts: Sequence[str], load_filter: str | None, *, commit: bool, lock_timeout: str
) -> LookedUp:
    """The story of the blocks that `texts` mean, in the tiers of the workspace, under the FILTER `load_filter`.

    With `commit` the workspace keeps what the lookup changed; it is opened for that by one at a time.
    """
    from kvtier_cli.workspace.holdings import faults_in_force
    from kvtier_cli.workspace.lookup import look_up

    with opened(workspace, "kvtier lookup", write=commit, lock_timeout=lock_timeout) as space:
        topology = space.topology
        if load_filter is None:
            parse = lint_against(parse_tier_filter(), topology.tiers)
        else:
            parse = given_filter(load_filter, topology).parse
        found = look_up(space, texts, parse)
        ambiguous = {
            text: [BlockMatch(found.blocks.name(block.key), None, None, block.tiers) for block in blocks]
            for text, blocks in found.resolved.ambiguous.items()
        }
        warnings = [*warnings_before(topology, GivenFilter("json", parse)), *faults_in_force(topology)]
        if not space.remembers_losses:
            warnings.append(_FORGOTTEN)
        return LookedUp(
            None,
            str(space.path),
            topology,
            None,
            space.state.block_tokens,
            parse,
            found.story,
            ambiguous,
            found.resolved.unknown,
            warnings,
        )
