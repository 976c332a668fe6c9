"""The workspace: tiers that outlive the process. A folder with a topology, a store for each tier, a snapshot of the
CPU tier; one writer or many readers."""

from __future__ import annotations

from kvtier_cli.workspace.found import find_workspace
from kvtier_cli.workspace.opened import Workspace, open_workspace

__all__ = ["Workspace", "find_workspace", "open_workspace"]
