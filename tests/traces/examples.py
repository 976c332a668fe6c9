"""An example of each format of traces, from which the tests of all readers are made. A new format needs one here."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A trace of a format. `requests` are what `content` holds: ids, length in tokens, time in ms; three or more.

    `row` makes a record of a format that has a JSON object a line: of these ids, that length, at that time (which a
    format without times leaves out). `header` is the line in front of them. A `…_key` is the path of a field in such
    a record, its parts with dots between; `length_key` None: the format states no lengths, `time_key` None: no times.
    """

    content: bytes
    requests: Sequence[tuple[list[int | str], int, float | None]]
    block_tokens: int
    row: Callable[[list[Any], int, Any], Row] | None = None
    ids_key: str = "hash_ids"
    length_key: str | None = "input_length"
    time_key: str | None = "timestamp"
    header: bytes = b""
    block_size_key: str | None = None
    space: str = ""
    """What the ids of such a record are local to: `SPACE:ID` in the trace as a whole."""
    by_itself: bool = True
    """Whether the content alone tells the format."""
    forms: Sequence[bytes] = ()
    """The same requests, written otherwise."""
    notes: Sequence[str] = ()
    """What the reader always remarks."""

    def lines(self, *rows: Row | bytes, end: bytes = b"\n") -> bytes:
        """A trace of these records, after its header."""
        texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        return b"\n".join([self.header, *texts] if self.header else texts) + end

    def named(self, *ids: int | str) -> list[int | str]:
        """How the ids of a record are called in the trace as a whole."""
        return [f"{self.space}:{each}" for each in ids] if self.space else list(ids)


def _jsonl(*rows: Row, header: bytes = b"") -> bytes:
    return b"".join([header + b"\n"] * bool(header) + [json.dumps(row).encode() + b"\n" for row in rows])


def _mooncake(ids: list[Any], length: int, time: Any) -> Row:
    return {"timestamp": time, "input_length": length, "output_length": 2, "hash_ids": ids}


def _bailian(ids: list[Any], length: int, time: Any) -> Row:
    chat = {"chat_id": 10, "parent_chat_id": -1, "timestamp": time, "input_length": length, "output_length": 9}
    return {**chat, "type": "text", "turn": 1, "hash_ids": ids}


def _kvcache_simulator(ids: list[Any], length: int, _: Any) -> Row:
    return {"block_size": 64, "hash_ids": ids, "input_length": length}


def _own(ids: list[Any], length: int, time: Any) -> Row:
    return {"request_id": "a", "timestamp": time, "input_length": length, "hash_ids": ids}


def _agentic(ids: list[Any], length: int, time: Any) -> Row:
    return {"request_id": "a", "play_id": "p", "not_before_ms": time, "input_length": length, "hash_ids": ids}


def _dynamo_request(ids: list[Any], length: int, time: Any) -> Row:
    replay = {"trace_block_size": 16, "input_length": length, "input_sequence_hashes": ids}
    return {"event_type": "request_end", "request": {"request_received_ms": time, "replay": replay}}


def _lmcache(ids: list[Any], length: int, time: Any) -> Row:
    return {"timestamp": time, "model_name": "m", "chunk_size": 256, "seq_len": length, "chunk_hashes": ids}


def _weka(ids: list[Any], length: int, time: Any) -> Row:
    request = {"t": time, "type": "n", "in": length, "out": 1, "hash_ids": ids}
    return {"id": "c", "block_size": 64, "hash_id_scope": "local", "requests": [request]}


def _kv_events(ids: list[Any], _: int, time: Any) -> Row:
    stored = {"type": "BlockStored", "block_hashes": ids, "parent_block_hash": None, "block_size": 16}
    return {"ts": time, "events": [stored]}


_AGENTIC_HEADER = (
    b'{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 16, "hash_id_scope": "local", "source": {}}'
)

_TALKS = [_weka([1, 2, 3], 200, 0), _weka([1], 64, 0) | {"id": 7}, _weka([1, 2, 4], 192, 2.5)]

_ARRAYS = (
    b'[1.5, [["BlockStored", [1, 2], null, [], 16, null, "GPU"], ["BlockRemoved", [1], "GPU"]], 0]\n'
    b'[2, [["BlockStored", [3], 2, [], 16, null, "GPU", null, null, 0]], 0]\n'
    b'[3, [["AllBlocksCleared"], ["BlockStored", [9], null, [], 16, null, null]]]\n'
)

_ONE_BLOCK = "each access is read as a request of one block: no prompt and no prefix is in such a trace"
_STORES_ONLY = (
    "put together from the blocks that GPU stored: what a cache served is not in it, and a prompt that was stored in "
    "several steps is as many requests"
)
_AT_ONCE = "the times of its 2 conversations count from the start of each: they are replayed as if all began at once"

_OWN_HEADER = b'{"kvtier": "trace", "version": 1, "block_tokens": 16}'

EXAMPLES: dict[str, Example] = {
    "kvtier": Example(
        _jsonl(_own([1, "x"], 20, 0), _own([1], 16, 5), _own([2, 3], 32, 7.5), header=_OWN_HEADER),
        [([1, "x"], 20, 0), ([1], 16, 5), ([2, 3], 32, 7.5)],
        16,
        _own,
        header=_OWN_HEADER,
    ),
    "mooncake": Example(
        _jsonl(_mooncake([0, 1, 2], 1300, 0), _mooncake([0, 1], 1024, 0), _mooncake([0, 1, 3], 1200, 3000)),
        [([0, 1, 2], 1300, 0), ([0, 1], 1024, 0), ([0, 1, 3], 1200, 3000)],
        512,
        _mooncake,
        block_size_key="block_size",
    ),
    "mooncake-delta": Example(
        _jsonl(*[_mooncake(ids, 512, 0) | {"session_id": "s", "output_length": 512} for ids in ([1], [2], [3])]),
        [([1], 512, 0), ([1, "s+1.1", 2], 1536, 0), ([1, "s+1.1", 2, "s+2.3", 3], 2560, 0)],
        512,
        _mooncake,
        block_size_key="block_size",
        by_itself=False,
    ),
    "bailian": Example(
        _jsonl(_bailian([5, 7, 8], 40, 0.0), _bailian([5, 7, 9, 12, 13], 70, 61.114), _bailian([6, 7, 8], 48, 61.114)),
        [([5, 7, 8], 40, 0), ([5, 7, 9, 12, 13], 70, 61114), ([6, 7, 8], 48, 61114)],
        16,
        _bailian,
    ),
    "kvcache-simulator": Example(
        _jsonl(
            _kvcache_simulator([2001, 2002], 128, None),
            _kvcache_simulator(["2001", "zz"], 100, None) | {"block_tokens": [64, 36], "timestamp": 5},
            _kvcache_simulator([2001], 64, None),
        ),
        [([2001, 2002], 128, None), ([2001, "zz"], 100, None), ([2001], 64, None)],
        64,
        _kvcache_simulator,
        time_key=None,
        block_size_key="block_size",
    ),
    "dynamo-agentic": Example(
        _jsonl(
            _agentic([1, 2], 32, 0),
            _agentic([1, 2, 3], 40, 0) | {"request_id": "b", "dependencies": [{"request_id": "a", "delay_ms": 5}]},
            _agentic([1], 16, 9) | {"play_id": "q"},
            header=_AGENTIC_HEADER,
        ),
        [(["p:1", "p:2"], 32, 0), (["p:1", "p:2", "p:3"], 40, 5), (["q:1"], 16, 9)],
        16,
        _agentic,
        time_key="not_before_ms",
        header=_AGENTIC_HEADER,
        space="p",
    ),
    "dynamo-requests": Example(
        _jsonl(
            {"event_type": "request_payload", "request": "hello"},
            _dynamo_request([2**64 - 1, 402, 7], 40, 1000),
            {"event": _dynamo_request([2**64 - 1, 402], 32, 1010)},
            _dynamo_request([5], 16, 1020),
        ),
        [([2**64 - 1, 402, 7], 40, 1000), ([2**64 - 1, 402], 32, 1010), ([5], 16, 1020)],
        16,
        _dynamo_request,
        ids_key="request.replay.input_sequence_hashes",
        length_key="request.replay.input_length",
        time_key="request.request_received_ms",
        block_size_key="request.replay.trace_block_size",
    ),
    "lmcache": Example(
        _jsonl(_lmcache(["0x0a", "0x0b"], 600, 1.5), _lmcache(["0x0a", "0c"], 512, 2), _lmcache([], 255, 3)),
        [(["m:0x0a", "m:0x0b"], 600, 1500), (["m:0x0a", "m:0c"], 512, 2000), ([], 255, 3000)],
        256,
        _lmcache,
        ids_key="chunk_hashes",
        length_key="seq_len",
        block_size_key="chunk_size",
        space="m",
    ),
    "weka": Example(
        _jsonl(*_TALKS),
        [(["c:1", "c:2", "c:3"], 200, 0), (["7:1"], 64, 0), (["c:1", "c:2", "c:4"], 192, 2500)],
        64,
        _weka,
        ids_key="requests.0.hash_ids",
        length_key="requests.0.in",
        time_key="requests.0.t",
        block_size_key="block_size",
        space="c",
        forms=[json.dumps(_TALKS).encode(), json.dumps(_TALKS, indent=2).encode()],
        notes=[_AT_ONCE],
    ),
    "timed-trace": Example(
        _jsonl(_mooncake([1, "x"], 20, 0), _mooncake([1], 16, 0.5), _mooncake([2, 3], 32, 7)),
        [([1, "x"], 20, 0), ([1], 16, 500), ([2, 3], 32, 7000)],
        16,
        _mooncake,
        by_itself=False,
    ),
    "kv-events": Example(
        _jsonl(
            _kv_events([1, 2], 0, 1.5),
            {"ts": 2, "events": [_kv_events([3], 0, 0)["events"][0] | {"parent_block_hash": 2}]},
            _kv_events([9], 0, 3),
        ),
        [([1, 2], 32, 1500), ([1, 2, 3], 48, 2000), ([9], 16, 3000)],
        16,
        _kv_events,
        ids_key="events.0.block_hashes",
        length_key=None,
        time_key="ts",
        forms=[_ARRAYS],
        notes=[_STORES_ONLY],
    ),
    "oracle-general": Example(
        b"".join(struct.pack("<IQIq", *access) for access in [(0, 5, 1, 3), (1, 2**64 - 1, 1, -1), (3, 5, 1, -1)]),
        [([5], 16, 0), ([2**64 - 1], 16, 1000), ([5], 16, 3000)],
        16,
        notes=[_ONE_BLOCK],
    ),
    "libcachesim-csv": Example(
        b"time,obj_id,size\n0,5,1\n0.5,0x1f,1\n3,5,1\n",
        [([5], 16, 0), (["0x1f"], 16, 500), ([5], 16, 3000)],
        16,
        forms=[b"0,5\r\n0.5,0x1f\r\n\r\n3,5"],
        notes=[_ONE_BLOCK],
    ),
}

WITH_LINES = {name: example for name, example in EXAMPLES.items() if example.row is not None}
"""Those with a JSON object a line."""
