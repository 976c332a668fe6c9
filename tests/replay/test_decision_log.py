"""A decision log, read back, says what the replay decided, and finds requests and blocks by what people call them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_columns import OUTCOMES, REASONS
from kvtier_cli.replay.decision_log import DecisionLog
from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.tiering.model import Verdict
from kvtier_cli.tiering.topology import BUILT_IN, PrimarySpec, Topology
from tests.replay.logs import kept_log, write_trace
from tests.tiering.managers import NVME, S3

SMALL = Topology(primary=PrimarySpec(96), tiers=(replace(NVME, capacity=300), replace(S3, load_latency=2)))
LOCAL = [{"medium": "storage", "locality": "local"}]


def assert_sums_are_the_figures(log: DecisionLog) -> None:
    figures = log.figures
    assert (log.requests, log.blocks) == (figures["requests"], figures["blocks"])
    rows = log.rows_in(slice(None))
    counts = np.bincount(rows.outcomes, minlength=len(OUTCOMES)).tolist()
    assert dict(zip((each.value for each in OUTCOMES), counts, strict=True)) == figures["outcomes"]
    promoted = Counter(rows.tiers[rows.outcomes == OUTCOMES.index(Outcome.PROMOTED)].tolist())
    served = figures["served_by_tier"]
    assert [promoted[place] for place in range(1, len(log.tiers))] == [served[tier] for tier in log.tiers[1:]]
    held = Counter(rows.tiers[rows.outcomes == OUTCOMES.index(Outcome.UNREACHED)].tolist())
    unreached = figures["unreached_held_by_tier"]
    assert [held[place] for place in range(1, len(log.tiers))] == [unreached[tier] for tier in log.tiers[1:]]
    reasons = np.bincount(log.of_requests("reason"), minlength=len(REASONS) + 1).tolist()[1:]
    assert dict(zip((each.value for each in REASONS), reasons, strict=True)) == figures["absent_by_reason"]
    assert int(log.of_requests("passes").sum()) - log.requests == figures["wait_steps"]


@pytest.mark.parametrize("topology", [BUILT_IN, SMALL, Topology(primary=PrimarySpec(50))], ids=["built-in", "s", "cpu"])
@pytest.mark.parametrize("name", ["chat.jsonl", "agent.jsonl"])
def test_the_sums_of_a_log_are_the_figures_of_the_replay(name: str, topology: Topology, tmp_path: Path) -> None:
    assert_sums_are_the_figures(kept_log(shipped_fixture(name), topology, tmp_path / "l.kvlog"))


def test_the_sums_of_the_conversation_trace_are_those_on_record(recordings: Path, tmp_path: Path) -> None:
    trace = recordings.parent / "data" / "mooncake" / "conversation_trace.jsonl"
    if not trace.is_file():
        pytest.skip(f"no {trace}")
    log = kept_log(trace, BUILT_IN, tmp_path / "l.kvlog")
    assert_sums_are_the_figures(log)
    assert log.figures["outcomes"]["promoted"] == 44_787


def test_a_request_is_told_with_its_blocks_and_its_filter(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.jsonl", ["a", "b"], ["c", "d"], ["a", "b"], kv_load_tiers=LOCAL)
    one = Topology(primary=PrimarySpec(2), tiers=(S3, replace(NVME, capacity=2)))
    log = kept_log(trace, one, tmp_path / "l.kvlog")
    request = log.request(2)
    assert (request.number, request.label, request.filter.short) == (2, None, "storage:local")
    assert (request.passes, request.gave_up, request.served, request.reason) == (1, False, 0, None)
    first, second = request.blocks
    assert (first.name, first.outcome, first.tier) == ("a", Outcome.FILTERED, "s3")
    assert first.verdicts == (Verdict.SKIPPED, Verdict.MISS)
    assert (second.name, second.outcome, second.tier) == ("b", Outcome.UNREACHED, "s3")
    assert (second.verdicts, second.holders) == ((Verdict.NOT_REACHED,) * 2, ("s3",))


def test_who_evicted_an_absent_block_is_told(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.jsonl", [1], [2], [1])
    request = kept_log(trace, Topology(primary=PrimarySpec(1)), tmp_path / "l.kvlog").request(2)
    assert (request.reason, request.by, request.evicted_from) == (AbsentReason.EVICTED, 1, "cpu")


@pytest.mark.parametrize("ids", [[1, 2, 3], ["a", "b", "c"], [2**64, -(10**40), 2**63]], ids=["int", "str", "large"])
def test_blocks_keep_their_names_whatever_their_ids(ids: list[int | str], tmp_path: Path) -> None:
    one, two, three = ids
    trace = write_trace(tmp_path / "t.jsonl", [one, two], [three, two], [two, two, two])
    log = kept_log(trace, BUILT_IN, tmp_path / "l.kvlog")
    names = [[block.name for block in log.request(number).blocks] for number in range(3)]
    assert names == [
        [f"{one}", f"{two}"],
        [f"{three}", f"{two}~2"],
        [f"{two}~3", f"{two}~4", f"{two}~5"],
    ]
    keys = log.rows(2).keys.tolist()
    assert [log.block_name(key) for key in keys] == names[2]
    assert list(log.find_blocks(f"{two}")) == [1, 3, *keys]
    assert list(log.find_blocks(f"{two}~4")) == [keys[1]]
    assert [list(log.find_blocks(text)) for text in (f"{two}~6", f"{two}~0", f"0{one}", "nothing", "")] == [[]] * 5


def test_a_request_is_found_by_its_own_id_else_by_its_number(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    ids = ["a", "1", None, "twin", "twin"]
    trace.write_text(
        "".join(
            '{"input_length": 512, "hash_ids": [1]' + (f', "request_id": "{own}"' if own else "") + "}\n" for own in ids
        )
    )
    log = kept_log(trace, BUILT_IN, tmp_path / "l.kvlog")
    assert [log.request_label(number) for number in range(5)] == ids
    assert [log.find_request(text) for text in ("a", "1", "r1", "2", "r4")] == [0, 1, 1, 2, 4]
    for text in ("twin", "5", "b"):
        with pytest.raises(InputError, match=r"2 requests have the id|has no request"):
            log.find_request(text)
    with pytest.raises(IndexError):
        log.request(5)


def test_a_log_of_no_blocks_is_a_log(tmp_path: Path) -> None:
    log = kept_log(write_trace(tmp_path / "t.jsonl", [], []), BUILT_IN, tmp_path / "l.kvlog")
    assert (log.requests, log.blocks, log.request(1).blocks) == (2, 0, ())
    assert_sums_are_the_figures(log)


def test_a_log_tells_what_it_is_of(tmp_path: Path) -> None:
    about = {"files": ["\udcff.jsonl"], "warnings": ["w"], "topology": {"name": "x"}, "filter": {"effective": "ALL"}}
    trace = write_trace(tmp_path / "t.jsonl", [1])
    header = kept_log(trace, BUILT_IN, tmp_path / "l.kvlog", about).header
    assert header.files == ["\\udcff.jsonl"]  # no UTF-8, so as people are shown it
    assert (header.warnings, header.topology, header.filter) == (["w"], {"name": "x"}, {"effective": "ALL"})
    assert (header.block_tokens, list(header.tiers)) == (512, ["cpu", "nvme", "s3"])


def test_filters_that_admit_the_same_stand_in_a_log_once(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    cpu, local = '{"medium": "cpu"}', '{"locality": "local"}'
    lists = [f"[{cpu}, {local}]", f"[{local}, {cpu}, {cpu}]", "null", "[]", "[{}]"]
    trace.write_text("".join(f'{{"input_length": 512, "hash_ids": [1], "kv_load_tiers": {each}}}\n' for each in lists))
    log = kept_log(trace, BUILT_IN, tmp_path / "l.kvlog")
    assert [log.request(number).filter.short for number in range(5)] == ["cpu,local", "cpu,local", "all", "deny", "any"]
    assert len(log.header.filters) == 4
