"""Decision logs written by a run in this process, for the specifications of their formats and their reader."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvtier_cli.replay.decision_log import DecisionLog, open_log
from kvtier_cli.replay.decision_output import DecisionOutput
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.traces.source import TraceSource


def log_bytes(
    trace: Path, topology: Topology, format_: str = ".kvlog", about: Mapping[str, Any] | None = None
) -> bytes:
    """The decision log of one replay of `trace`, as `kvtier replay --log` writes it but for what it says of itself."""
    file = io.BytesIO()
    with TraceSource(trace) as source:
        run = TraceRun([source], topology)
        output = DecisionOutput(run, file, format_)
        figures = run.run()
        said = {"scope": "s", "files": [trace.name], "topology": {}, "filter": None, "warnings": []}
        output.finish({**said, "figures": figures, **(about or {})})
    return file.getvalue()


def kept_log(trace: Path, topology: Topology, path: Path, about: Mapping[str, Any] | None = None) -> DecisionLog:
    """The same, written to `path` and opened."""
    path.write_bytes(log_bytes(trace, topology, about=about))
    return open_log(str(path))


def write_trace(path: Path, *prompts: Sequence[int | str], **more: Any) -> Path:
    """A trace of requests with these blocks; `more` goes into each of them."""
    lines = [json.dumps({"input_length": 512 * len(ids), "hash_ids": list(ids), **more}) for ids in prompts]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def as_rows(log: DecisionLog) -> list[dict[str, Any]]:
    """A log's rows as its JSON lines have them."""
    rows = []
    for request in map(log.request, range(log.requests)):
        for block in request.blocks:
            absent = block.outcome.value == "absent"
            evicted = absent and request.reason is not None and request.reason.value == "evicted"
            rows.append(
                {
                    "request": request.number,
                    "request_id": request.label,
                    "index": block.index,
                    "block": block.name,
                    "outcome": block.outcome.value,
                    "tier": block.tier,
                    "reason": request.reason.value if absent and request.reason is not None else None,
                    "passes": request.passes,
                    **{
                        f"verdict_{tier}": verdict.value
                        for tier, verdict in zip(log.tiers[1:], block.verdicts, strict=True)
                    },
                    "holders": list(block.holders),
                    "evicted_by": request.by if evicted else None,
                    "step": request.step,
                }
            )
    return rows
