"""`kvtier init`: an empty workspace."""

from __future__ import annotations

from pathlib import Path

import typer

from kvtier_cli.commands.inputs import TopologyOption, given_topology
from kvtier_cli.commands.options import shared
from kvtier_cli.commands.workspace_options import WorkspaceOption
from kvtier_cli.errors import ExitStatus

EXAMPLES = (
    "kvtier init",
    "kvtier init --topology kvtier.toml --workspace /mnt/fast/kv",
)
WITHOUT = ("no_progress",)


def command(ctx: typer.Context, topology: TopologyOption = None, workspace: WorkspaceOption = None) -> int:
    """Make an empty workspace: .kvtier in this folder, or DIR. Its kvtier.toml is yours to edit."""
    options = shared(ctx)
    from kvtier_cli.tiering.topology_checks import topology_warnings
    from kvtier_cli.workspace.found import NAME, make_workspace
    from kvtier_cli.workspace.layout import TOPOLOGY

    chosen = given_topology(topology)
    path = Path(workspace or NAME)
    make_workspace(path, chosen)
    warnings = topology_warnings(chosen)
    if options.json:
        from kvtier_cli.render.json_out import write

        tiers = [tier.name for tier in chosen.tiers]
        write("init", {"workspace": str(path), "topology": chosen.name, "tiers": tiers, "warnings": warnings})
        return ExitStatus.DONE
    from kvtier_cli.render.console import plain

    print(f"made {plain(str(path))} with the tiers of {plain(chosen.name)}")
    for warning in warnings:
        options.stderr().warn(plain(warning))
    options.stderr().note(f"its tiers are in {plain(str(path / TOPOLOGY))}; fill them with kvtier load FILE")
    return ExitStatus.DONE
