"""Small workspaces and traces for the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import BlockSpec, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.workspace import open_workspace
from kvtier_cli.workspace.found import make_workspace

TOKENS = 512


def topology(
    primary: int = 4,
    nvme: int | None = 8,
    s3: int | None = None,
    *,
    policy: str = "lru",
    identity: str = "chain",
    bytes_per_token: int | None = None,
) -> Topology:
    """A CPU tier and two storage tiers, a local and a remote one."""
    return Topology(
        block=BlockSpec(bytes_per_token=bytes_per_token),
        primary=PrimarySpec(primary, policy),
        tiers=(
            TierSpec("nvme", Medium.STORAGE, Locality.LOCAL, capacity=nvme),
            TierSpec("s3", Medium.STORAGE, Locality.REMOTE, capacity=s3),
        ),
        replay=ReplaySpec(identity=identity),
    )


def trace(path: Path, requests: Sequence[Sequence[int]], tokens: int = TOKENS) -> Path:
    """A Mooncake trace with these ids, a request a second."""
    lines = []
    for second, ids in enumerate(requests):
        row = {"timestamp": 1000 * second, "input_length": tokens * len(ids), "output_length": 1, "hash_ids": list(ids)}
        if tokens != TOKENS:
            row["block_size"] = tokens
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines))
    return path


def loaded(space: Path, file: Path) -> dict[str, Any]:
    """Load a trace into a workspace; its figures."""
    with TraceSource(str(file)) as source, open_workspace(space, write=True) as opened:
        return opened.run([source]).run()


def filled(folder: Path, requests: Sequence[Sequence[int]], made_for: Topology | None = None) -> Path:
    """A workspace in `folder` with a trace of these requests loaded into it."""
    space = folder / "space"
    make_workspace(space, made_for or topology())
    loaded(space, trace(folder / "trace.jsonl", requests))
    return space


def files_of(folder: Path) -> dict[str, bytes]:
    """All files in a folder with their bytes, but for who has it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "holders"
    }
