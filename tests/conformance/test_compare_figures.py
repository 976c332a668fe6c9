"""A comparison shows what lies between two runs recorded from vLLM's manager."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.test_replay_figures import recorded, unequal
from tests.conftest import RunsKvtier


def test_the_recorded_runs_default_and_local_only_side_by_side(
    kvtier: RunsKvtier, recordings: Path, tmp_path: Path
) -> None:
    trace = recordings.parent / "data" / "mooncake" / "conversation_trace.jsonl"
    if not trace.is_file():
        pytest.skip(f"the public trace {trace.name} is not beside the recordings")
    runs = [recorded("conversation_trace")["runs"][name] for name in ("default", "local-only")]
    args = ["--tiers", "all", "--tiers", json.dumps(runs[1]["kv_load_tiers"])]
    for number, run in enumerate(runs):
        (tmp_path / f"{number}.json").write_text(json.dumps(run["topology"]))
        args += ["--topology", str(tmp_path / f"{number}.json")]
    found = json.loads(kvtier("compare", str(trace), *args, "--json").stdout)
    for variant, run in zip(found["variants"], runs, strict=True):
        assert list(unequal(run["figures"], variant["figures"])) == []
    (delta,) = found["totals"]["deltas"]
    assert delta["figures"]["blocks_loaded"] == -5306
    assert delta["figures"]["promoted_by_tier"] == {"nvme": 1068, "s3": -6374}
    assert delta["figures"]["blocks_stored"] == 5306
    assert [variant["remote_reads"] for variant in found["variants"]] == [6374, 0]
    assert (delta["requests_served_fewer"], delta["requests_served_more"]) == (197, 0)
