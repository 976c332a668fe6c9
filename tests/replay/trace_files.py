"""Traces that specifications write for themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvtier_cli.traces.source import TraceSource


def asks(*ids: int | str, **more: Any) -> dict[str, Any]:
    """A request for these blocks of 512 tokens."""
    return {"input_length": 512 * len(ids), "hash_ids": list(ids), **more}


def write_trace(folder: Path, *requests: dict[str, Any], name: str = "t.jsonl") -> TraceSource:
    """A file with these requests, opened."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(request)}\n" for request in requests))
    return TraceSource(path)
