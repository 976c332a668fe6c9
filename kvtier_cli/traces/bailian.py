"""The traces of Alibaba's Bailian service: JSONL, a turn of a chat a line, blocks of 16 tokens.

`chat_id`, `parent_chat_id` (-1 for the first turn), `timestamp` in seconds, `input_length`, `output_length`, `type`,
`turn`, `hash_ids`. In some files an id stands for a block's content alone, in others for all before it too: by their
chains both are read rightly. The hashes are salted by file, so ids of two files have nothing to do with each other.
"""

from __future__ import annotations

import msgspec

from kvtier_cli.traces.ids import canonical_ids
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.model import Request

_NO_PARENT = "-1"


class _IntRow(msgspec.Struct, gc=False):
    hash_ids: list[int]
    chat_id: int | str
    input_length: int
    timestamp: int | float | None = None
    output_length: int | None = None
    parent_chat_id: int | str | None = None


class _AnyRow(_IntRow, gc=False):
    hash_ids: list[int | str]  # type: ignore[assignment]


class BailianReader(JsonLinesReader[_IntRow]):
    """Reads a Bailian trace. A request's id is its chat's, its session the chat's first turn; see TraceReader."""

    BLOCK_TOKENS = 16
    SIZE_IS_FIXED = True
    TIME_UNIT = "s"
    USUAL = msgspec.json.Decoder(_IntRow)
    OTHER = msgspec.json.Decoder(_AnyRow)

    def _reset(self) -> None:
        super()._reset()
        self._sessions: dict[str, str] = {}

    def _request(self, row: _IntRow, number: int) -> Request:
        self._check_length(row.input_length, number, "$.input_length")
        if row.output_length is not None:
            self._check_length(row.output_length, number, "$.output_length")
        ids: list[int | str] = row.hash_ids  # type: ignore[assignment]
        if type(row) is not _IntRow:
            ids = canonical_ids(ids)
        chat = str(row.chat_id)
        parent = _NO_PARENT if row.parent_chat_id is None else str(row.parent_chat_id)
        session = chat if parent == _NO_PARENT else self._sessions.get(parent, parent)
        self._sessions[chat] = session
        return Request(
            self.requests,
            number,
            row.input_length,
            ids,
            row.output_length,
            None if row.timestamp is None else self._time(row.timestamp, number),
            chat,
            None,
            session,
        )
