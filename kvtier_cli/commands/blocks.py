"""`kvtier blocks`: the blocks of the workspace, filtered, sorted, a page at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from kvtier_cli.commands.options import shared
from kvtier_cli.commands.workspace_options import LOCK_TIMEOUT, LockTimeoutOption, WorkspaceOption, opened
from kvtier_cli.errors import ExitStatus, InputError

EXAMPLES = (
    "kvtier blocks",
    "kvtier blocks --tier nvme --sort oldest --limit 10",
    "kvtier blocks --block 5102 --json",
)
WITHOUT = ("no_progress",)


def command(
    ctx: typer.Context,
    tier: Annotated[
        str | None, typer.Option("--tier", metavar="T", help="Only what this tier has.", show_default=False)
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block", metavar="LABEL", help="Only blocks with this label (5102, 5102~3fa9).", show_default=False
        ),
    ] = None,
    sort: Annotated[
        str, typer.Option("--sort", metavar="ORDER", help="block (by label), recent or oldest (by last use).")
    ] = "block",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Blocks a page.")] = 50,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Blocks to pass over.")] = 0,
    wide: Annotated[bool, typer.Option("--wide", help="Labels and digests whole.")] = False,
    workspace: WorkspaceOption = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
) -> int:
    """The blocks of the workspace, and which tiers have them."""
    options = shared(ctx)
    from kvtier_cli.workspace.stored_blocks import SORTS, StoredBlocks

    if sort not in SORTS:
        from kvtier_cli.wording import did_you_mean, shown

        raise InputError(f"--sort {shown(sort)} is no order", hint=did_you_mean(sort, SORTS))
    with opened(workspace, "kvtier blocks", write=False, lock_timeout=lock_timeout) as space:
        blocks = StoredBlocks(space)
        found = blocks.listed(tier=tier, block=block, sort=sort)
        page = found[offset : offset + limit]
        if options.json:
            from kvtier_cli.render.blocks_view import blocks_as_json
            from kvtier_cli.render.json_out import write

            write("blocks", blocks_as_json(space, blocks, page, len(found), offset))
        else:
            from kvtier_cli.render.blocks_view import blocks_lines

            for line in blocks_lines(space, blocks, page, len(found), offset, options.stdout(), wide=wide):
                print(line)
    return ExitStatus.DONE
