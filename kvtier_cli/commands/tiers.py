"""`kvtier tiers`: what each tier of the workspace holds; `kvtier tiers set`: faults on demand, places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kvtier_cli.commands.lazy import examples_text
from kvtier_cli.commands.options import Shared, shared
from kvtier_cli.commands.workspace_options import LOCK_TIMEOUT, LockTimeoutOption, WorkspaceOption, opened
from kvtier_cli.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from kvtier_cli.workspace import Workspace

EXAMPLES = (
    "kvtier tiers",
    "kvtier tiers set s3 --offline",
    "kvtier tiers set nvme --online --fail-rate 0.1 --seed 7",
    "kvtier tiers set s3 --path /mnt/remote/kv",
)
WITHOUT = ("no_progress",)

command = typer.Typer(
    help="What each tier of the workspace holds, how full it is, what it was asked.", invoke_without_command=True
)


@command.callback(epilog=examples_text(EXAMPLES))
def show(ctx: typer.Context, workspace: WorkspaceOption = None, lock_timeout: LockTimeoutOption = LOCK_TIMEOUT) -> int:
    """What each tier of the workspace holds, how full it is, what it was asked."""
    if ctx.invoked_subcommand is not None:
        return ExitStatus.DONE
    options = shared(ctx)
    with opened(workspace, "kvtier tiers", write=False, lock_timeout=lock_timeout) as space:
        _show(space, options)
    return ExitStatus.DONE


@command.command("set", epilog=examples_text(EXAMPLES[1:]))
def set_faults(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A secondary tier.", show_default=False)],
    offline: Annotated[
        bool | None,
        typer.Option("--offline/--online", help="Lookups miss and transfers fail, or not.", show_default=False),
    ] = None,
    fail_rate: Annotated[
        float | None,
        typer.Option(
            "--fail-rate", metavar="SHARE", help="This share of transferred blocks fails.", show_default=False
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Which of them.", show_default=False)] = None,
    place: Annotated[
        str | None,
        typer.Option(
            "--path", metavar="DIR", help="Where its store lies, before it has one: a mount, say.", show_default=False
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
) -> int:
    """Make a tier fail, or stop that; say where its store lies. It holds until it is set otherwise."""
    options = shared(ctx)
    given = ctx.parent.params if ctx.parent is not None else {}
    if offline is None and fail_rate is None and seed is None and place is None:
        raise InputError("nothing to set", hint="Give --offline, --online, --fail-rate SHARE, --seed N or --path DIR.")
    if fail_rate is not None and not 0 <= fail_rate <= 1:
        raise InputError(f"--fail-rate {fail_rate} is no share, expected 0 to 1")
    from kvtier_cli.workspace.state import Faults

    where = workspace or given.get("workspace")
    waits = lock_timeout if lock_timeout != LOCK_TIMEOUT else given.get("lock_timeout", LOCK_TIMEOUT)
    with opened(where, "kvtier tiers set", write=True, lock_timeout=waits) as space:
        known = [tier.name for tier in space.topology.tiers]
        if name not in known:
            from kvtier_cli.wording import did_you_mean, shown

            raise InputError(f"the workspace has no secondary tier {shown(name)}", hint=did_you_mean(name, known))
        if place is not None:
            from pathlib import Path

            from kvtier_cli.workspace.places import place_store

            place_store(space, name, Path(place))
        space.set_faults(name, Faults(offline, fail_rate, seed))
        space.save()
        path = space.path
    with opened(path, "kvtier tiers", write=False, lock_timeout=waits) as space:
        _show(space, options)
    return ExitStatus.DONE


def _show(space: Workspace, options: Shared) -> None:
    from kvtier_cli.workspace.holdings import tier_holdings

    found = tier_holdings(space)
    if options.json:
        from kvtier_cli.render.json_out import write
        from kvtier_cli.render.tiers_view import tiers_as_json

        write("tiers", tiers_as_json(space, found))
        return
    from kvtier_cli.render.tiers_view import tiers_lines

    for line in tiers_lines(space, found, options.stdout()):
        print(line)
