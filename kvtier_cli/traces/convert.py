"""A trace in another format, and what is lost on the way. Knows the two tables of formats, no format itself."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import BinaryIO, Final

from kvtier_cli.errors import InputError
from kvtier_cli.traces.detect import detect_format
from kvtier_cli.traces.formats import find_format
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import TraceOptions
from kvtier_cli.traces.order import arrival_sorted
from kvtier_cli.traces.own import OwnReader
from kvtier_cli.traces.reader import TraceReader
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.traces.unread import Unread
from kvtier_cli.traces.write_own import OwnWriter
from kvtier_cli.traces.writer import TraceWriter
from kvtier_cli.traces.writers import WrittenFormat

MOST_TAGS: Final = 64
"""Fields without a meaning of their own that are kept as tags."""


class Conversion:
    """Reads the trace once, to know before anything is written whether `to` can hold it; `write` reads it again.

    Fields that the reader does not read are kept as tags where `to` has a place for them. Without `lossy` a trace whose
    essentials would be lost is refused with an InputError: the size of its blocks, where requests begin and end, or
    requests that the format cannot say; with it such requests are left out. The trace's own faults are raised as its
    reader raises them.
    """

    def __init__(
        self,
        source: TraceSource,
        to: WrittenFormat,
        options: TraceOptions,
        *,
        lossy: bool = False,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
    ) -> None:
        form = detect_format(source) if options.format is None else find_format(options.format)
        self.read_format = form.name
        self.to = to
        self._writer = to.writer_class()
        self._reader_of: Callable[[TraceOptions], TraceReader] = lambda asked: form.reader_class()(
            source, asked, skip_bad=skip_bad, on_bytes=on_bytes
        )
        self._options = replace(options, format=form.name)
        self._source = source
        self._lossy = lossy
        self.lost: Counter[str] = Counter()
        """Field → how many requests had it; whole once the trace is written."""
        self.lost_essentials: list[str] = []
        """What else is lost, in words; only with `lossy`."""
        self.left_out = 0
        """Requests that the format cannot say; only with `lossy`."""
        self.sorted_from: int | None = None
        """The first line out of order, where the requests are written in order of arrival instead."""
        self._survey()

    def _survey(self) -> None:
        reader = self._reader_of(self._options)
        unread = Unread(reader)
        sink = self._writer(io.BytesIO(), 1)
        latest = float("-inf")
        for request in reader:
            why = sink.cannot(request)
            if why is not None:
                self.left_out += 1
                if not self._lossy:
                    raise InputError(
                        f"{self.to.name} cannot hold this request: {why}",
                        file=self._source.name,
                        line=request.line,
                        hint="--lossy leaves such requests out.",
                    )
            if request.timestamp is not None:
                if request.timestamp < latest and self.sorted_from is None and not sink.HOLDS_ORDER:
                    self.sorted_from = request.line
                latest = max(latest, request.timestamp)
        self.requests, self.blocks, self.block_tokens = reader.requests, reader.blocks, reader.block_tokens
        if self.left_out == self.requests:
            raise InputError(f"{self.to.name} can hold none of its requests", file=self._source.name)
        self.warnings = reader.warnings
        if not unread.is_known:
            self.warnings = [*self.warnings, "what its records hold besides is neither kept nor counted"]
        self.about = reader.about if isinstance(reader, OwnReader) else None
        if self.about is not None and not issubclass(self._writer, OwnWriter):
            self.lost_essentials.append("the source that its header names")
        elsewhere = self._writer.BLOCK_TOKENS
        if elsewhere not in (None, self.block_tokens):
            self._essential(f"its blocks of {self.block_tokens:,} tokens: there a block has {elsewhere}")
        if self._writer.NEVER_HOLDS:
            self._essential(self._writer.NEVER_HOLDS)
        self.tags = tuple([name for name in unread.possible_tags() if self._writer.holds_tag(name)][:MOST_TAGS])
        """Fields kept as tags."""
        self.lost.update({name: count for name, count in unread.fields.items() if name not in self.tags})

    def _essential(self, what: str) -> None:
        if not self._lossy:
            raise InputError(
                f"{self.to.name} cannot hold {what}",
                file=self._source.name,
                hint="--lossy writes what is left.",
            )
        self.lost_essentials.append(what)

    def write(self, stream: BinaryIO) -> None:
        """The whole trace, in the other format."""
        requests: Iterable[Request] = self._reader_of(replace(self._options, tags=self.tags))
        if self.sorted_from is not None:
            requests = arrival_sorted(requests)
        writer: TraceWriter
        if issubclass(self._writer, OwnWriter):
            writer = self._writer(stream, self.block_tokens, tag_names=self.tags, source=self.about)
        else:
            writer = self._writer(stream, self.block_tokens, tag_names=self.tags)
        for request in requests:
            if not self.left_out or writer.cannot(request) is None:
                writer.write(request)
        self.lost.update(writer.lost)
        self.lost = +self.lost
