"""The lines of a source, read in blocks and bounded in length. Knows nothing of what a line says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvtier_cli.traces.source import TraceSource

MAX_LINE_BYTES = 64 << 20
"""The longest line that is read, in bytes: eight million ids. Whatever is longer is no request."""

BLOCK_BYTES = 128 << 10
"""Bytes read at a time. Larger blocks are slower: a block and its lines should fit a core's cache."""

_BOM = b"\xef\xbb\xbf"


class BoundedLines:
    """Iterates over the lines of `source` without their newlines; None stands for a line over `max_line_bytes`.

    At most one block and one line are in memory at a time: the rest of a line that is too long is read and thrown
    away. A byte order mark at the start is dropped. `on_bytes` hears how many bytes of the file each block took, packed
    as they are, after its lines were used. Raises InputError where the source cannot be read on, and TraceFault where
    it got shorter meanwhile or cannot be unpacked, after the lines that come before.
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
        at_start = True
        told = 0
        with self._source.open() as stream:
            while block := stream.piece(block_bytes):
                text = block
                if at_start:
                    while len(block) < len(_BOM) and (more := stream.piece(1)):
                        block += more
                    text, at_start = block.removeprefix(_BOM), False
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
                    self._on_bytes(stream.consumed - told)
                    told = stream.consumed
        if parts:
            self.unterminated = True
            yield b"".join(parts)
