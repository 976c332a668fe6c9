"""What all readers of traces have in common: counters, bad records, the size of blocks, times. Reads no format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.lines import MAX_LINE_BYTES
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import AS_IT_SAYS, BLOCK_TOKENS, MAX_TOKENS, TimeUnit, TraceOptions
from kvtier_cli.traces.source import TraceSource
from kvtier_cli.wording import count

MAX_TIMESTAMP = 1 << 63
_KEPT_EXAMPLES = 3


class TraceReader(ABC):
    """Iterates over the requests of a trace in file order, reading as it goes; can be iterated again.

    With `skip_bad` a record that is no request is counted and left out, else it ends the reading with an InputError
    that says where and why. A trace without any request, with blocks of several sizes, or that cannot be unpacked is an
    InputError always. `on_bytes` hears of progress, in bytes of the file. `max_line_bytes` bounds a record.

    The size of a block is, in this order, what the trace states, `options.block_tokens`, what the format fixes,
    `block_tokens`, and the format's usual.

    The counters hold what was read so far, and are whole once the iteration is.

    A format gives `__iter__`: it begins with `self._reset()`, and hands its requests through `self._counted` or does
    what that does. Lines of JSON have a base of their own, `JsonLinesReader`.
    """

    BLOCK_TOKENS: ClassVar[int] = BLOCK_TOKENS
    """Tokens a block, where nobody says."""
    SIZE_IS_FIXED: ClassVar[bool] = False
    """Whether `BLOCK_TOKENS` are part of the format, though it does not state them."""
    TIME_UNIT: ClassVar[TimeUnit | None] = "ms"
    """Of the format's timestamps; None where it has none."""
    TIME_UNIT_IS_OPEN: ClassVar[bool] = False
    """Whether the caller may say another."""
    RECORD: ClassVar[str] = "line"
    """What one record is called."""
    IDS_FIELD: str = "hash_ids"
    """What a record calls the ids of its blocks."""
    LISTS_TAILS: ClassVar[bool] = True
    """Whether a prompt's partly filled last block has an id too."""
    HAS_TAGS: ClassVar[bool] = True
    """Whether `TraceOptions.tags` can be read."""
    TAKES_FIELDS: ClassVar[tuple[str, ...]] = ()
    """What the caller may name the fields of (`TraceOptions.fields`)."""

    format: str = ""
    """What `--format` calls the format; set by whoever chose this reader for it."""

    def __init__(
        self,
        source: TraceSource,
        options: TraceOptions = AS_IT_SAYS,
        *,
        block_tokens: int | None = None,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.source = source
        self.options = options
        self._given_block_tokens = (
            options.block_tokens or (None if self.SIZE_IS_FIXED else block_tokens) or self.BLOCK_TOKENS
        )
        self._skip_bad = skip_bad
        self._on_bytes = on_bytes
        self._max_line_bytes = max_line_bytes
        unit = options.time_unit or self.TIME_UNIT or "ms"
        if options.time_unit and options.time_unit != self.TIME_UNIT and not self.TIME_UNIT_IS_OPEN:
            says = "has no times" if self.TIME_UNIT is None else f"counts its times in {self.TIME_UNIT}"
            raise InputError(f"its format {says}: --time-unit does not apply", file=source.name)
        self._time_unit: TimeUnit = unit
        self._is_in_ms = unit == "ms"
        if options.tags and not self.HAS_TAGS:
            raise InputError(
                f"its format has no fields of a request but its own: no {options.tags[0]}", file=source.name
            )
        if unknown := [name for name in options.field_names if name not in self.TAKES_FIELDS]:
            takes = f"it takes {', '.join(self.TAKES_FIELDS)}" if self.TAKES_FIELDS else "--fields does not apply"
            raise InputError(f"its format names no field {unknown[0]}: {takes}", file=source.name)
        self._reset()

    def _reset(self) -> None:
        self.block_tokens = self._given_block_tokens
        """Tokens a block; settled once the first request is there."""
        self.lines = 0
        """Records so far, blank and bad ones too."""
        self.requests = 0
        self.blocks = 0
        """Block ids of all requests, repeated ones too."""
        self.bad_lines = 0
        """Records left out (`skip_bad`)."""
        self.bad_examples: list[InputError] = []
        """What was wrong with the first three of them."""
        self.odd_requests = 0
        """Requests whose number of ids is not what their length gives at `block_tokens`."""
        self._first_odd = ""
        self._stated_block_tokens: int | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Request]: ...

    @property
    def warnings(self) -> list[str]:
        """What the reader of a result should know about the trace, a line each; none for a trace in order."""
        found = self._remarks()
        if self.bad_lines:
            found.append(f"{count(self.bad_lines, f'bad {self.RECORD}')} skipped; the first: {self.bad_examples[0]}")
        said, asked = self._stated_block_tokens, self.options.block_tokens
        if said and asked and said != asked:
            found.append(f"the trace states blocks of {said:,} tokens, so --block-tokens {asked} does not apply")
        if self.odd_requests:
            found.append(
                f"{self.odd_requests:,} of {count(self.requests, 'request')} list more or fewer blocks than their "
                f"input_length fills at {self.block_tokens:,} tokens a block; the first: {self._first_odd}"
            )
        return found

    def _remarks(self) -> list[str]:
        """What the format loses or takes for granted, where that bears on a result."""
        return []

    def first_fall(self) -> int | None:
        """The first record whose time is below that of one before it; None where the trace is in order.

        Reads the source once. Records that cannot be read are passed over.
        """
        if self.TIME_UNIT is None:
            return None
        again = type(self)(
            self.source,
            self.options,
            block_tokens=self._given_block_tokens,
            skip_bad=True,
            max_line_bytes=self._max_line_bytes,
        )
        latest = float("-inf")
        try:
            for request in again:
                if request.timestamp is not None:
                    if request.timestamp < latest:
                        return request.line
                    latest = request.timestamp
        except InputError:  # the reading proper says what is wrong
            pass
        return None

    # --- for the formats ---

    def _counted(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Passes requests on and counts them. Faults of `requests` end the reading: told with how far it came."""
        try:
            for request in requests:
                self._count(request)
                yield request
        except TraceFault as fault:
            raise self._after_requests(fault) from None
        if not self.requests:
            raise self._no_request()

    def _count(self, request: Request) -> None:
        blocks = len(request.hash_ids)
        if -(-request.input_length // self.block_tokens) != blocks:
            self._odd(request)
        self.requests += 1
        self.blocks += blocks

    def _odd(self, request: Request) -> None:
        """A request that lists another number of ids than its length has blocks, the partly filled one too."""
        if not self.LISTS_TAILS and request.input_length // self.block_tokens == len(request.hash_ids):
            return
        self.odd_requests += 1
        if self.odd_requests == 1:
            ids = count(len(request.hash_ids), "id")
            self._first_odd = f"{self.RECORD} {request.line:,}, {ids} for {count(request.input_length, 'token')}"

    def _milliseconds(self, time: int | float) -> int | float:
        """A time of the trace in milliseconds."""
        if self._is_in_ms:
            return time
        in_seconds = self._time_unit == "s"
        if isinstance(time, int):
            return time * 1000 if in_seconds else time / 1000
        text = repr(time)
        if "e" in text or "n" in text:  # very small or large, or no number
            return time * 1000 if in_seconds else time / 1000
        return float(f"{text}{'e3' if in_seconds else 'e-3'}")  # the point is moved: multiplying would change digits

    def _time(self, time: int | float, number: int, path: str = "$.timestamp") -> int | float:
        """A time of record `number` in milliseconds. Raises InputError for one beyond belief."""
        found = self._milliseconds(time)
        if not -MAX_TIMESTAMP <= found <= MAX_TIMESTAMP:  # NaN is not either
            raise InputError("expected milliseconds, at most 2^63", file=self.source.name, line=number, path=path)
        return found

    def _check_length(self, length: int, number: int, path: str) -> None:
        """Raises InputError for a number of tokens outside 0 to 2^53."""
        if not 0 <= length <= MAX_TOKENS:
            got = f", got {length:,}" if abs(length) <= MAX_TOKENS else ""
            raise InputError(
                f"expected a length of 0 to 2^53 tokens{got}", file=self.source.name, line=number, path=path
            )

    def _settle_block_tokens(self, stated: int, number: int, path: str = "$.block_size") -> None:
        """A size that the trace states wins over the one that was given, but holds for the whole trace."""
        if stated == self._stated_block_tokens:
            return
        if not 1 <= stated <= MAX_TOKENS:
            raise InputError("expected a block size of 1 token or more", file=self.source.name, line=number, path=path)
        if self.requests and stated != self.block_tokens:
            raise TraceFault(
                f"blocks of {stated:,} tokens, but of {self.block_tokens:,} before; expected one size in a trace",
                file=self.source.name,
                line=number,
                path=path,
                hint="Split the trace by block size.",
            )
        self.block_tokens = self._stated_block_tokens = stated

    def _too_long(self, number: int) -> InputError:
        limit = self._max_line_bytes
        size = f"{limit >> 20:,} MiB" if limit >> 20 else count(limit, "byte")
        return InputError(f"the {self.RECORD} is longer than {size}", file=self.source.name, line=number)

    def _bad_record(self, fault: InputError) -> None:
        """A record that is no request: count it, or raise `fault` with how far the reading came."""
        if isinstance(fault, TraceFault):
            raise fault
        if self._skip_bad:
            self.bad_lines += 1
            if len(self.bad_examples) < _KEPT_EXAMPLES:
                self.bad_examples.append(fault)
            return
        if fault.message == f"the request has no {self.IDS_FIELD}" and not self.requests:
            fault.hint = "Without the ids of its blocks a trace cannot show what is reused; use one that lists them."
            raise fault
        raise self._after_requests(fault, f"Continue past bad {self.RECORD}s with --skip-bad.")

    def _after_requests(self, fault: InputError, go_on: str = "") -> InputError:
        """`fault`, whose hint ends with how far the reading came and how to `go_on`."""
        hints = [fault.hint] if fault.hint else []
        if self.requests:
            read = f"{count(self.requests, 'request')} {'was' if self.requests == 1 else 'were'}"
            hints.append(f"{read} read before it.")
        if go_on:
            hints.append(go_on)
        fault.hint = " ".join(hints) or None
        return fault

    def _no_request(self) -> InputError:
        if self.bad_lines:
            return InputError(
                f"no request in {count(self.lines, self.RECORD)}",
                file=self.source.name,
                hint=f"The first bad {self.RECORD}: {self.bad_examples[0]}",
            )
        if self.RECORD != "line" or self.source.head().strip():
            return InputError("holds no request", file=self.source.name)
        return InputError(
            "holds no request, only blank lines", file=self.source.name, hint="Expected one JSON object a line."
        )
