"""Samples and public traces whose blocks and reuse were counted otherwise: what is read must come to the same."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.traces.detect import detect_format, read_trace
from kvtier_cli.traces.source import TraceSource

SHARED = Path(__file__).parents[3] / "shared"
SAMPLES = SHARED / "reference" / "samples"
MOONCAKE = SHARED / "data" / "mooncake"


def sample(name: str) -> Path:
    if not SAMPLES.is_dir():
        pytest.skip(f"no samples in {SAMPLES}")
    return SAMPLES / name


def cached(prompts: Iterable[list[int]], capacity: float) -> tuple[int, int, int]:
    """Blocks that a cache of that many would have had, those of them without a gap before them, and its evictions."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = prefix = evicted = 0
    for keys in prompts:
        unbroken = True
        for key in keys:
            unbroken &= key in cache
            if key in cache:
                hits += 1
                prefix += unbroken
                cache.move_to_end(key)
            else:
                cache[key] = None
                if len(cache) > capacity:
                    cache.popitem(last=False)
                    evicted += 1
    return hits, prefix, evicted


@pytest.mark.parametrize("name", ["mooncake_min", "discriminate_512", "bailian_min"])
@pytest.mark.parametrize("identity", ["raw", "chained"])
def test_blocks_and_reuse_are_as_counted_by_hand(name: str, identity: str) -> None:
    expected = json.loads(sample("expected.json").read_text())[name]
    table = BlockTable(by_id=identity == "raw")
    prompts = [table.keys(each.hash_ids) for each in read_trace(TraceSource(sample(f"{name}.jsonl")))]
    assert sum(map(len, prompts)) == expected["refs"]
    assert len(table) == expected[f"unique_{identity}"]
    assert list(cached(prompts, float("inf"))[:2]) == expected[f"infinite_{identity}(ind,prefix)"]
    for capacity in (2, 3, 4):
        key = f"lru{capacity}_{identity}" + ("(ind,prefix,evict)" if identity == "raw" else "")
        assert list(cached(prompts, capacity)) == expected[key]


@pytest.mark.parametrize("file", ["mooncake_min.oracleGeneral.bin", "mooncake_min.libcachesim.csv"])
def test_a_trace_of_accesses_has_the_blocks_of_the_trace_that_it_was_made_of(file: str) -> None:
    accesses = [each.hash_ids for each in read_trace(TraceSource(sample(file)))]
    prompts = [each.hash_ids for each in read_trace(TraceSource(sample("mooncake_min.jsonl")))]
    assert [block for ids in accesses for block in ids] == [block for ids in prompts for block in ids]
    assert {len(ids) for ids in accesses} == {1}


@pytest.mark.parametrize(
    ("file", "name", "requests", "blocks"),
    [
        ("dynamo_agentic_mooncake_v2.jsonl", "dynamo-agentic", 2, 3),
        ("dynamo_mooncake_aliases.jsonl", "mooncake", 2, 3),
        ("dynamo_request_trace_v1.jsonl", "dynamo-requests", 2, 3),
        ("kvcache_simulator.jsonl", "kvcache-simulator", 2, 3),
        ("lookup_hashes_0001.jsonl", "lmcache", 2, 3),
        ("weka_trace.json", "weka", 3, 5),
    ],
)
def test_the_sample_of_each_format_is_read_as_what_it_is(file: str, name: str, requests: int, blocks: int) -> None:
    source = TraceSource(sample(file))
    assert detect_format(source).name == name
    reader = read_trace(source)
    table = BlockTable()
    for each in reader:
        table.keys(each.hash_ids)
    assert (reader.requests, len(table), reader.odd_requests) == (requests, blocks, 0)


@pytest.mark.parametrize("name", ["azure_llm.csv", "burstgpt.csv", "aibrix_workload.jsonl", "lmcache_trace.lct"])
def test_the_samples_that_cannot_be_replayed_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=r"looks like a"):
        read_trace(TraceSource(sample(name)))


@pytest.mark.parametrize("file", ["conversation_trace.jsonl", "synthetic_trace.jsonl"])
def test_the_public_mooncake_traces_have_the_reuse_that_an_endless_cache_would_find(file: str) -> None:
    if not MOONCAKE.is_dir():
        pytest.skip(f"no traces in {MOONCAKE}")
    facts: list[dict[str, Any]] = json.loads((SHARED / "reference" / "mooncake-facts.json").read_text())
    fact = next(each for each in facts if each["file"] == file)
    kept, dropped = BlockTable(), BlockTable()
    found = {"keep": [0, 0], "drop": [0, 0]}
    reader = read_trace(TraceSource(MOONCAKE / file))
    for request in reader:
        whole = request.input_length // reader.block_tokens
        for tail, table, ids in (("keep", kept, request.hash_ids), ("drop", dropped, request.hash_ids[:whole])):
            known = len(table)
            keys = table.keys(ids)
            found[tail][0] += len(keys)
            found[tail][1] += sum(key < known for key in keys)
    assert (reader.requests, reader.warnings) == (fact["requests"], [])
    for tail, table, mode in (("keep", kept, fact["mode_all"]), ("drop", dropped, fact["mode_full"])):
        assert found[tail] == [mode["references"], mode["infinite"]["prefix_hits"]]
        assert len(table) == mode["unique"]
