"""libCacheSim's oracleGeneral: binary, 24 bytes an access, little-endian, of any cache; no requests, no prompts.

`u32` time in seconds, `u64` object, `u32` its size, `i64` the number of the access that wants it next (-1 or the
largest number: none). Each access is read as a request of one block; what an access before it was is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.traces.lines import BLOCK_BYTES
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.reader import TraceReader
from kvtier_cli.traces.sniff import Head, Match
from kvtier_cli.wording import count

ONE_BLOCK: Final = "each access is read as a request of one block: no prompt and no prefix is in such a trace"

_RECORD: Final = Struct("<IQIq")
_NEVER: Final = {-2, -1, (1 << 63) - 1}
"""Next accesses that are none; -2 is what libCacheSim writes where it does not know."""

_MAX_ACCESSES: Final = 1 << 48
"""More than any trace has; what is no trace mostly has more."""


def sniff_oracle_general(head: Head) -> Match:
    """Whether all of the first bytes are accesses whose next ones come after them."""
    whole = len(head.content) - len(head.content) % _RECORD.size
    if not whole or not head.is_binary:
        return Match.NO
    records = enumerate(_RECORD.iter_unpack(head.content[:whole]), 1)
    return Match.SURE if all(_is_one(number, after) for number, (_, _, _, after) in records) else Match.NO


def _is_one(number: int, after: int) -> bool:
    """Whether `after` can be the access that wants the object of the `number`-th next."""
    return number <= after <= _MAX_ACCESSES or after in _NEVER


class OracleGeneralReader(TraceReader):
    """Reads an oracleGeneral trace; see TraceReader."""

    BLOCK_TOKENS = 16
    TIME_UNIT = "s"
    RECORD = "record"
    HAS_TAGS = False

    def __iter__(self) -> Iterator[Request]:
        self._reset()
        return self._counted(self._accesses())

    def _accesses(self) -> Iterator[Request]:
        size = _RECORD.size
        rest = b""
        number = told = 0
        with self.source.open() as stream:
            while piece := stream.piece(BLOCK_BYTES):
                data = rest + piece
                whole = len(data) - len(data) % size
                rest = data[whole:]
                for time, block, _, after in _RECORD.iter_unpack(data[:whole]):
                    number += 1
                    self.lines = number
                    if not _is_one(number, after):
                        self._bad_record(self._wrong(f"its next access, {after:,}, is not after it", number))
                        continue
                    yield Request(self.requests, number, self.block_tokens, [block], None, time * 1000)
                if self._on_bytes is not None:
                    self._on_bytes(stream.consumed - told)
                    told = stream.consumed
        if rest:
            self.lines = number + 1
            self._bad_record(
                self._wrong(f"the last record is cut off: {count(len(rest), 'byte')} of {size}", number + 1)
            )

    def _wrong(self, message: str, number: int) -> InputError:
        return InputError(f"{message} (record {number:,})", file=self.source.name)

    def _remarks(self) -> list[str]:
        return [ONE_BLOCK]
