"""What the reader tests share: a trace made of lines, and a request's line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kvtier_cli.traces.source import TraceSource

MakeTrace = Callable[..., TraceSource]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeTrace:
    """Writes its arguments as the lines of `t.jsonl` (or `name`) and opens it; `end` is what follows the last."""
    monkeypatch.chdir(tmp_path)

    def make(*lines: bytes | dict[str, object], name: str = "t.jsonl", end: bytes = b"\n") -> TraceSource:
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        (tmp_path / name).write_bytes(b"\n".join(texts) + end)
        return TraceSource(name)

    return make
