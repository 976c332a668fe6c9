"""An example of each format of traces, from which the tests of all readers are made. A new format needs one here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A trace of a format. `requests` are what `content` holds: ids, length in tokens, time in ms; three or more.

    `row` makes a record of a format that has a JSON object a line: of these ids, that length, at that time (which a
    format without times leaves out). `header` is the line in front of them. `int_ids`: ids cannot be text.
    `unit`: milliseconds in one of the format's times.
    """

    content: bytes
    requests: Sequence[tuple[list[int | str], int, float | None]]
    block_tokens: int
    row: Callable[[list[Any], int, Any], Row] | None = None
    ids_key: str = "hash_ids"
    length_key: str = "input_length"
    time_key: str | None = "timestamp"
    header: bytes = b""
    block_size_key: str | None = None
    by_itself: bool = True
    """Whether the content alone tells the format."""
    notes: Sequence[str] = ()
    """What the reader always remarks."""

    def lines(self, *rows: Row | bytes, end: bytes = b"\n") -> bytes:
        """A trace of these records, after its header."""
        texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        return b"\n".join([self.header, *texts] if self.header else texts) + end


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
}

WITH_LINES = {name: example for name, example in EXAMPLES.items() if example.row is not None}
"""Those with a JSON object a line."""
