"""The lines of a source, read in blocks and bounded in length. Knows nothing of what a line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

from kvtier_cli.errors import InputError
from kvtier_cli.traces.source import TraceSource, unreadable

MAX_LINE_BYTES = 64 << 20
"""The longest line that is read, in bytes: eight million ids. Whatever is longer is no request."""

BLOCK_BYTES = 128 << 10
"""Bytes read at a time. Larger blocks are slower: a block and its lines should fit a core's cache."""

_BOM = b"\xef\xbb\xbf"


class BoundedLines:
    """Iterates over the lines of `source` without their newlines; None stands for a line over `max_line_bytes`.

    At most one block and one line are in memory at a time: the rest of a line that is too long is read and thrown
    away. A byte order mark at the start is dropped. `on_bytes` hears how many bytes each block had, after its lines
    were used. Raises InputError where the source cannot be read on, or got shorter meanwhile.
    """

    def __init__(
        self,
        source: TraceSource,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        on_bytes: Callable[[int], object] | None = None,
    ) -> None:
        self._source = source
        self._max = max_line_bytes
        self._on_bytes = on_bytes
        self.unterminated = False
        """Whether the line given last was the file's last and had no newline."""

    def __iter__(self) -> Iterator[bytes | None]:
        self.unterminated = False
        limit = self._max
        block_bytes = min(BLOCK_BYTES, limit)  # so that only a line across blocks can be too long
        parts: list[bytes] = []  # the start of a line whose end is not read yet
        held = 0
        discarding = False
        total = 0
        with self._source.open() as stream:
            while block := self._read(stream, block_bytes):
                text = block if total else block.removeprefix(_BOM)
                total += len(block)
                first, newline, others = text.partition(b"\n")
                rest = first
                if newline:
                    if not discarding:
                        parts.append(first)
                        yield b"".join(parts) if held + len(first) <= limit else None
                    parts, held, discarding = [], 0, False
                    whole = others.split(b"\n")
                    rest = whole.pop()
                    yield from whole
                if rest and not discarding:
                    parts.append(rest)
                    held += len(rest)
                    if held > limit:
                        parts, held, discarding = [], 0, True
                        yield None
                if self._on_bytes is not None:
                    self._on_bytes(len(block))
        if total < self._source.size:
            raise InputError("got shorter while it was read", file=self._source.name, hint="Read it again.")
        if parts:
            self.unterminated = True
            yield b"".join(parts)

    def _read(self, stream: BinaryIO, count: int) -> bytes:
        try:
            return stream.read(count)
        except OSError as error:
            raise unreadable(error, self._source.name) from None
