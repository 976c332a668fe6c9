"""Mooncake traces whose rows hold only what is new in a session's prompt, as Dynamo's `mooncake-delta` has them.

Nothing in a row tells it from an ordinary one, so this format is never guessed. A session's prompt is its last prompt,
what was generated then, and the row's own input. Only whole blocks of the last prompt come again. What follows them is
this session's alone, for what was generated stands in front of it: where the row's ids do not fall on the borders of
blocks, or there are none, such blocks get ids of their own, `SESSION+TURN.BLOCK`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvtier_cli.errors import InputError
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.mooncake import MooncakeReader, _IntRow
from kvtier_cli.traces.options import MAX_TOKENS

_MAX_BLOCKS = 1 << 23
"""Of a prompt: as many as there may be ids on a line."""


@dataclass(slots=True)
class _Session:
    """Where a session stands: the last prompt's blocks and tokens, the tokens generated since, and its turns."""

    ids: list[int | str]
    length: int
    generated: int
    turns: int = 1


class MooncakeDeltaReader(MooncakeReader):
    """Reads a trace of deltas as one of whole prompts; holds each session's last one in memory. See TraceReader."""

    def _reset(self) -> None:
        super()._reset()
        self._sessions: dict[str, _Session] = {}

    def _request(self, row: _IntRow, number: int) -> Request | None:
        request = super()._request(row, number)
        if request is None or request.session_id is None:
            return request
        session = self._sessions.get(request.session_id)
        if session is None:
            session = _Session(request.hash_ids, request.input_length, request.output_length or 0)
            self._sessions[request.session_id] = session
            return request
        before = session.length + session.generated
        length = before + request.input_length
        blocks = -(-length // self.block_tokens)
        if blocks > _MAX_BLOCKS or length > MAX_TOKENS:
            raise InputError(
                f"the session's prompt has {blocks:,} blocks by now; at most {_MAX_BLOCKS:,} are read",
                file=self.source.name,
                line=number,
            )
        ids = session.ids[: session.length // self.block_tokens]
        own = request.hash_ids if before % self.block_tokens == 0 else []
        own = own if before // self.block_tokens + len(own) == blocks else []
        name = f"{request.session_id}+{session.turns}"
        ids += [f"{name}.{block}" for block in range(len(ids), blocks - len(own))]
        ids += own
        request.hash_ids, request.input_length = ids, length
        session.ids, session.length, session.generated = ids, length, request.output_length or 0
        session.turns += 1
        return request
