"""Writes traces in the format of Alibaba's Bailian service: a turn of a chat a line, blocks of 16 tokens, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import BinaryIO

from kvtier_cli.traces.bailian import BailianReader
from kvtier_cli.traces.ids import canonical
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.writer import TraceWriter, encoded

_LOSES_NAME = "name of session_id"
_EXACT = Context(prec=400)


class BailianWriter(TraceWriter):
    """A request's id becomes its chat's, one without takes its number among the requests, and the chat before it is the
    last one of its session. So sessions stay together, but go by the name of their first chat.

    The tags `type` and `turn` are the format's own fields. Where a request has none they are "text" and its turn in the
    session.
    """

    HOLDS = frozenset({"output_length", "timestamp", "request_id", "session_id"})
    BLOCK_TOKENS = BailianReader.BLOCK_TOKENS

    def __init__(self, stream: BinaryIO, block_tokens: int, *, tag_names: Sequence[str] = ()) -> None:
        super().__init__(stream, block_tokens, tag_names=tag_names)
        self._sessions: dict[str, tuple[int, int | str, str]] = {}
        """Of each session its turns, its last chat and its first."""

    @classmethod
    def holds_tag(cls, name: str) -> bool:
        return name in ("type", "turn")

    def _record(self, request: Request) -> bytes:
        chat = canonical(str(request.index) if request.request_id is None else request.request_id)
        turn, parent, first = 0, -1, str(chat)
        if request.session_id is not None:
            turn, last, first = self._sessions.get(request.session_id, (0, -1, first))
            parent = last  # type: ignore[assignment]
            self._sessions[request.session_id] = turn + 1, chat, first
            self.lost[_LOSES_NAME] += first != request.session_id
        parts = [b'{"chat_id":%b,"parent_chat_id":%b' % (encoded(chat), encoded(parent))]
        if request.timestamp is not None:
            parts.append(b',"timestamp":' + seconds(request.timestamp))
        parts.append(b',"input_length":%d' % request.input_length)
        if request.output_length is not None:
            parts.append(b',"output_length":%d' % request.output_length)
        tags = dict(zip(self.tag_names, request.tags or (), strict=request.tags is not None))
        kind, number = tags.get("type") or "text", canonical(tags.get("turn") or str(turn + 1))
        parts.append(b',"type":%b,"turn":%b,"hash_ids":' % (encoded(kind), encoded(number)))
        parts += encoded(request.hash_ids), b"}\n"
        return b"".join(parts)


def seconds(milliseconds: int | float) -> bytes:
    """A time in seconds as a JSON number, no digit lost."""
    text = f"{Decimal(repr(milliseconds)).scaleb(-3, _EXACT):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
