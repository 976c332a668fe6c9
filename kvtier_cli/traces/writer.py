"""What all writers of traces have in common: what a format holds, what it cannot say, a count of what is lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO, ClassVar, Final

import msgspec

from kvtier_cli.traces.model import Request

FIELDS: Final[dict[str, str]] = {
    "output_length": "output_length",
    "timestamp": "timestamp",
    "request_id": "request_id",
    "session_id": "session_id",
    "params": "kv_transfer_params",
}
"""What a request may have besides its blocks and its length: attribute → what it is called. Tags go by their names."""


class TraceWriter(ABC):
    """Writes requests to `stream` as a trace of one format. `block_tokens`: tokens a block; `tag_names`: what the
    values of `Request.tags` are called.

    What the format has no place for is left out and counted in `lost`: field → how many requests had it.
    """

    HOLDS: ClassVar[frozenset[str]] = frozenset(FIELDS)
    """The attributes of a request, of `FIELDS`, that the format has a place for."""
    HOLDS_ORDER: ClassVar[bool] = True
    """Whether requests may stand in another order than they arrived in: not in a format without their times."""
    BLOCK_TOKENS: ClassVar[int | None] = None
    """The one size of blocks, in tokens, that the format has; None where a trace may say its own."""
    NEVER_HOLDS: ClassVar[str] = ""
    """What every trace loses in this format, where a trace is nothing without it."""

    def __init__(self, stream: BinaryIO, block_tokens: int, *, tag_names: Sequence[str] = ()) -> None:
        self._write = stream.write
        self.block_tokens = block_tokens
        self.tag_names = tuple(tag_names)
        self.lost: Counter[str] = Counter()
        self._lost_tags = [(at, name) for at, name in enumerate(self.tag_names) if not self.holds_tag(name)]
        self._lacks = [(field, name) for field, name in FIELDS.items() if field not in self.HOLDS]

    @classmethod
    def holds_tag(cls, name: str) -> bool:
        """Whether the format has a place for a tag of that name."""
        return False

    def cannot(self, request: Request) -> str | None:
        """Why the format cannot say this request at all; None where it can."""
        return None

    def write(self, request: Request) -> None:
        """One request, which the format can say."""
        for field, name in self._lacks:
            if getattr(request, field) is not None:
                self.lost[name] += 1
        if request.tags is not None:
            for at, name in self._lost_tags:
                self.lost[name] += request.tags[at] is not None
        self._write(self._record(request))

    @abstractmethod
    def _record(self, request: Request) -> bytes:
        """The request as it stands in the file, its line end included."""


def encoded(value: object) -> bytes:
    """`value` as JSON, ints of any size exact."""
    try:
        return msgspec.json.encode(value)
    except OverflowError:  # an int of more than 64 bits
        if isinstance(value, list):
            return b"[" + b",".join(map(encoded, value)) + b"]"
        return str(value).encode()


def params_of(request: Request) -> bytes | None:
    """A request's `kv_transfer_params` as JSON on one line, None where it has none."""
    return None if request.params is None else msgspec.json.format(request.params, indent=-1)
