"""Recorded KV events: the requests that the stored blocks of a server tell of, and what they cannot tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.source import TraceSource
from tests.conftest import RunsKvtier

MakeTrace = Callable[..., TraceSource]
Row = dict[str, Any]
REFERENCE = Path(__file__).parents[3] / "shared" / "reference"


def stored(hashes: Sequence[int], parent: int | None = None, **more: Any) -> Row:
    event = {"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent, "token_ids": []}
    return {**event, "block_size": 16, "lora_id": None, "medium": "GPU", **more}


def batch(*events: Row, time: float = 0) -> Row:
    return {"seq": 0, "ts": time, "events": events, "data_parallel_rank": 0}


def prompts(source: TraceSource) -> list[list[int | str]]:
    return [each.hash_ids for each in read_trace(source)]


def test_a_store_is_a_request_of_the_whole_chain_that_leads_to_it(trace: MakeTrace) -> None:
    batches = [batch(stored([1, 2])), batch(stored([3], 2)), batch(stored([4, 5], 1)), batch(stored([6], 5))]
    assert prompts(trace(*batches)) == [[1, 2], [1, 2, 3], [1, 4, 5], [1, 4, 5, 6]]


def test_stores_of_one_batch_that_go_on_from_each_other_are_one_request(trace: MakeTrace) -> None:
    reader = read_trace(trace(batch(stored([1]), stored([2], 1), stored([9]), stored([3], 2))))
    assert [(each.hash_ids, each.input_length) for each in reader] == [([1, 2], 32), ([9], 16), ([1, 2, 3], 48)]


def test_a_last_block_that_is_not_full_counts_its_tokens(trace: MakeTrace) -> None:
    reader = read_trace(trace(batch(stored([1, 2])), batch(stored([3], 2, block_size=5))))
    assert [each.input_length for each in reader] == [32, 37]
    assert reader.odd_requests == 0


def test_what_left_does_not_matter_and_what_comes_again_comes_again(trace: MakeTrace) -> None:
    gone = {"type": "BlockRemoved", "block_hashes": [2], "medium": "GPU"}
    batches = [batch(stored([1, 2])), batch(gone, {"type": "AllBlocksCleared"}), batch(stored([2], 1))]
    assert prompts(trace(*batches)) == [[1, 2], [1, 2]]


def test_only_the_first_medium_and_group_that_name_parents_are_read(trace: MakeTrace) -> None:
    placeholder = stored([1], medium="CPU", block_size=0)
    others = [stored([1], medium="CPU"), stored([1], group_idx=1)]
    reader = read_trace(trace(batch(placeholder, stored([1]), *others), batch(placeholder, stored([2], 1))))
    assert [each.hash_ids for each in reader] == [[1], [1, 2]]
    assert reader.warnings[1:] == [
        "2 stores of other media or KV cache groups passed over",
        "2 placeholders passed over: they do not name their parents",
    ]


def test_prompts_that_began_before_the_recording_are_left_out_and_counted(trace: MakeTrace) -> None:
    reader = read_trace(trace(batch(stored([5], 4)), batch(stored([6], 5)), batch(stored([1]))))
    assert [each.hash_ids for each in reader] == [[1]]
    assert reader.warnings[-1] == "2 stores passed over, whose prompts began before the recording"
    with pytest.raises(InputError, match="all its prompts began before the recording"):
        prompts(trace(batch(stored([5], 4))))


def test_placeholders_alone_are_refused_with_the_way_out(trace: MakeTrace) -> None:
    with pytest.raises(InputError, match=r"all its stored blocks \(2\) are placeholders") as caught:
        prompts(trace(batch(stored([1], block_size=0)), batch(stored([2], block_size=0))))
    assert caught.value.hint
    assert "self_describing_kv_events" in caught.value.hint


def test_the_events_of_a_replay_are_placeholders_too(kvtier: RunsKvtier, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"timestamp": 0, "input_length": 512, "hash_ids": [1]}\n')
    assert kvtier("replay", "t.jsonl", "--events", "e.jsonl", "-q", cwd=tmp_path).status == 0
    ran = kvtier("replay", "e.jsonl", cwd=tmp_path)
    assert ran.status == 2
    assert ran.stderr.startswith("error: e.jsonl: all its stored blocks (3) are placeholders")


def test_signed_hashes_are_the_unsigned_ones(trace: MakeTrace) -> None:
    assert prompts(trace(batch(stored([-1])), batch(stored([7], 2**64 - 1)))) == [[2**64 - 1], [2**64 - 1, 7]]


@pytest.mark.parametrize("events_are_arrays", [False, True])
@pytest.mark.parametrize("batch_is_array", [False, True])
def test_arrays_are_read_as_older_servers_write_them(
    events_are_arrays: bool, batch_is_array: bool, trace: MakeTrace
) -> None:
    events: list[Any] = [stored([1, 2]), {"type": "BlockRemoved", "block_hashes": [9], "medium": "GPU"}]
    if events_are_arrays:
        events = [["BlockStored", [1, 2], None, [0] * 32, 16, None, "GPU"], ["BlockRemoved", [9], "GPU", 0]]
        events.append(["AllBlocksCleared"])
    line = json.dumps([1.5, events, 0] if batch_is_array else {"ts": 1.5, "events": events}).encode()
    source = trace(line, line)
    assert detect_format(source).name == "kv-events"
    assert [(each.hash_ids, each.timestamp) for each in read_trace(source)] == [([1, 2], 1500)] * 2


@pytest.mark.parametrize("file", ["kv-events-samples.json", "kv-events-legacy-samples.json"])
def test_what_servers_of_all_versions_send_is_understood_as_json(file: str, trace: MakeTrace) -> None:
    if not (REFERENCE / file).is_file():
        pytest.skip(f"no samples in {REFERENCE}")
    for name, sample in json.loads((REFERENCE / file).read_text()).items():
        line = msgspec.json.encode(msgspec.msgpack.decode(bytes.fromhex(sample)))
        reader = read_trace(trace(line, json.dumps(batch(stored([99], block_size=4))).encode()))
        assert list(reader)[-1].hash_ids[-1] == 99 or reader.warnings[1:], name
        assert reader.bad_lines == 0


def test_msgpack_is_refused_by_name(trace: MakeTrace) -> None:
    payload = msgspec.msgpack.encode([1.5, [stored([1, 2])], 0])
    with pytest.raises(InputError, match="looks like KV events in msgpack"):
        detect_format(trace(payload + bytes(8)))
