"""The Mooncake format: JSONL, a request a line with the ids of its blocks. Streams; sorts and chains nothing.

As released with the FAST'25 paper: `timestamp` (ms), `input_length`, `output_length` (tokens), `hash_ids`, blocks of
512 tokens, an id for the partly filled last block too. Read besides, where a record has them: `block_size`,
`request_id` or `id`, `kv_transfer_params` or `kv_load_tiers`. Any other key is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.traces.json_faults import json_fault
from kvtier_cli.traces.lines import MAX_LINE_BYTES, BoundedLines
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.source import TraceSource

BLOCK_TOKENS = 512
"""Tokens a block, unless the reader is told or the trace says otherwise."""

MAX_TOKENS = 1 << 53
"""The largest length that is believed; sums and shares of lengths stay exact below it."""

_MAX_TIMESTAMP = 1 << 63
_KEPT_EXAMPLES = 3
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,4299}|-[1-9][0-9]{0,4298}")  # as long as msgspec lets a number be


class _IntRow(msgspec.Struct, gc=False):
    """A line of the usual kind: every id is a number. `hash_ids` first: of all that is missing it is named first."""

    hash_ids: list[int]
    input_length: int
    output_length: int | None = None
    timestamp: int | float | None = None
    block_size: int | None = None
    request_id: int | str | None = None
    id: int | str | None = None
    kv_transfer_params: Raw | UnsetType = UNSET
    kv_load_tiers: Raw | UnsetType = UNSET


class _AnyRow(_IntRow, gc=False):
    """A line whose ids may be strings; an eighth slower to read, so used from the first such line on."""

    hash_ids: list[int | str]  # type: ignore[assignment]


_FAULTS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_Row = _IntRow | _AnyRow
_Decode = Callable[[bytes], _Row]
_decode_ints: _Decode = msgspec.json.Decoder(_IntRow).decode
_decode_any: _Decode = msgspec.json.Decoder(_AnyRow).decode


class MooncakeReader:
    """Iterates over the requests of a Mooncake trace in file order, reading as it goes; can be iterated again.

    `block_tokens` is the size of a block in tokens, unless the trace states its own. With `skip_bad` a line that is
    no request is counted and left out, else it ends the reading with an InputError that says where and why. A trace
    without any request, or with blocks of several sizes, is an InputError always. `on_bytes` hears of progress.

    The counters hold what was read so far, and are whole once the iteration is.
    """

    def __init__(
        self,
        source: TraceSource,
        *,
        block_tokens: int = BLOCK_TOKENS,
        skip_bad: bool = False,
        on_bytes: Callable[[int], object] | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.source = source
        self._given_block_tokens = block_tokens
        self._skip_bad = skip_bad
        self._on_bytes = on_bytes
        self._max_line_bytes = max_line_bytes
        self._reset()

    def _reset(self) -> None:
        self.block_tokens = self._given_block_tokens
        """Tokens a block; settled once the first request is there."""
        self.lines = 0
        """Lines so far, blank and bad ones too."""
        self.requests = 0
        self.blocks = 0
        """Block ids of all requests, repeated ones too."""
        self.bad_lines = 0
        """Lines left out (`skip_bad`)."""
        self.bad_examples: list[InputError] = []
        """What was wrong with the first three of them."""
        self.odd_requests = 0
        """Requests whose number of ids is not what their length gives at `block_tokens`."""
        self._first_odd = ""
        self._stated_block_tokens: int | None = None

    @property
    def warnings(self) -> list[str]:
        """What the reader of a result should know about the trace, a line each; none for a trace in order."""
        found = []
        if self.bad_lines:
            found.append(f"{_count(self.bad_lines, 'bad line')} skipped; the first: {self.bad_examples[0]}")
        if self.odd_requests:
            found.append(
                f"{self.odd_requests:,} of {_count(self.requests, 'request')} list more or fewer blocks than their "
                f"input_length fills at {self.block_tokens:,} tokens a block; the first: {self._first_odd}"
            )
        return found

    def __iter__(self) -> Iterator[Request]:
        self._reset()
        lines = BoundedLines(self.source, max_line_bytes=self._max_line_bytes, on_bytes=self._on_bytes)
        decode = _decode_ints
        for number, line in enumerate(lines, 1):
            self.lines = number
            try:
                if line is None:
                    raise self._too_long(number)
                try:
                    row = decode(line)
                    if not line.isascii():
                        line.decode("utf-8")  # msgspec does not look at what it skips
                except _FAULTS:
                    if not line.strip():
                        continue
                    row = self._read_again(line, number, lines.unterminated)
                    decode = _decode_any
                request = self._request(row, number)
            except InputError as fault:
                self._bad_line(fault)
                continue
            if row.block_size is not None:
                self._settle_block_tokens(row.block_size, number)
            blocks = len(request.hash_ids)
            if -(-request.input_length // self.block_tokens) != blocks:
                self._odd(request)
            self.requests += 1
            self.blocks += blocks
            yield request
        if not self.requests:
            raise self._no_request()

    def _read_again(self, line: bytes, number: int, unterminated: bool) -> _Row:
        """A line that is not of the usual kind: one with string ids, or a fault."""
        try:
            row = _decode_any(line)
            line.decode("utf-8")
            return row
        except _FAULTS as error:
            raise json_fault(line, error, file=self.source.name, number=number, unterminated=unterminated) from None

    def _request(self, row: _Row, number: int) -> Request:
        name = self.source.name
        length, output, timestamp = row.input_length, row.output_length, row.timestamp
        if not 0 <= length <= MAX_TOKENS:
            raise _bad_length(length, "input_length", name, number)
        if output is not None and not 0 <= output <= MAX_TOKENS:
            raise _bad_length(output, "output_length", name, number)
        if timestamp is not None and not -_MAX_TIMESTAMP <= timestamp <= _MAX_TIMESTAMP:
            raise InputError("expected milliseconds, at most 2^63", file=name, line=number, path="$.timestamp")
        if row.block_size is not None and not 1 <= row.block_size <= MAX_TOKENS:
            raise InputError("expected a block size of 1 token or more", file=name, line=number, path="$.block_size")
        ids: list[int | str] = row.hash_ids  # type: ignore[assignment]
        if type(row) is _AnyRow:
            ids = [_canonical(each) if type(each) is str else each for each in ids]
        own_id = row.id if row.request_id is None else row.request_id
        params = None
        if row.kv_transfer_params is not UNSET or row.kv_load_tiers is not UNSET:
            params = self._params(row, number)
        return Request(
            self.requests,
            number,
            length,
            ids,
            output,
            timestamp,
            None if own_id is None else str(own_id),
            params,
        )

    def _params(self, row: _Row, number: int) -> bytes:
        """The request's `kv_transfer_params`, undecoded: how a filter is to be read is for its own parser to say."""
        own, tiers = row.kv_transfer_params, row.kv_load_tiers
        if isinstance(tiers, UnsetType):
            return bytes(own)  # type: ignore[arg-type]
        if not isinstance(own, UnsetType) and bytes(own) != b"null":
            raise InputError(
                "given beside kv_transfer_params; expected one of the two",
                file=self.source.name,
                line=number,
                path="$.kv_load_tiers",
            )
        return b'{"kv_load_tiers":' + bytes(tiers) + b"}"

    def _settle_block_tokens(self, stated: int, number: int) -> None:
        """A size that the trace states wins over the one that was given, but holds for the whole trace."""
        if stated == self._stated_block_tokens:
            return
        if self.requests and stated != self.block_tokens:
            raise InputError(
                f"blocks of {stated:,} tokens, but of {self.block_tokens:,} before; expected one size in a trace",
                file=self.source.name,
                line=number,
                path="$.block_size",
                hint="Split the trace by block size.",
            )
        self.block_tokens = self._stated_block_tokens = stated

    def _odd(self, request: Request) -> None:
        self.odd_requests += 1
        if self.odd_requests == 1:
            ids = _count(len(request.hash_ids), "id")
            self._first_odd = f"line {request.line:,}, {ids} for {_count(request.input_length, 'token')}"

    def _too_long(self, number: int) -> InputError:
        limit = self._max_line_bytes
        size = f"{limit >> 20:,} MiB" if limit >> 20 else _count(limit, "byte")
        return InputError(f"the line is longer than {size}", file=self.source.name, line=number)

    def _bad_line(self, fault: InputError) -> None:
        if self._skip_bad:
            self.bad_lines += 1
            if len(self.bad_examples) < _KEPT_EXAMPLES:
                self.bad_examples.append(fault)
            return
        if fault.message == "the request has no hash_ids" and not self.requests:
            fault.hint = "Without the ids of its blocks a trace cannot show what is reused; use one that lists them."
        else:
            go_on = "Continue past bad lines with --skip-bad."
            if self.requests:
                read = f"{_count(self.requests, 'request')} {'was' if self.requests == 1 else 'were'}"
                go_on = f"{read} read before it. {go_on}"
            fault.hint = f"{fault.hint} {go_on}" if fault.hint else go_on
        raise fault

    def _no_request(self) -> InputError:
        if self.bad_lines:
            return InputError(
                f"no request in {_count(self.lines, 'line')}",
                file=self.source.name,
                hint=f"The first bad line: {self.bad_examples[0]}",
            )
        return InputError(
            "holds no request, only blank lines", file=self.source.name, hint="Expected one JSON object a line."
        )


def _canonical(text: str) -> int | str:
    """`"5"` is the id 5; what is not the one way to write an int (`"05"`, `"-0"`, `"5.0"`) is a name of its own."""
    if not _DECIMAL.fullmatch(text):
        return text
    try:
        return int(text)
    except ValueError:  # PYTHONINTMAXSTRDIGITS is set lower than its default
        return text


def _bad_length(length: int, key: str, file: str, number: int) -> InputError:
    got = f", got {length:,}" if abs(length) <= MAX_TOKENS else ""
    return InputError(f"expected a length of 0 to 2^53 tokens{got}", file=file, line=number, path=f"$.{key}")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


class _Arrival(msgspec.Struct, gc=False):
    timestamp: int | float | None = None


def first_fall(source: TraceSource) -> int | None:
    """The first line whose timestamp is below that of a line before it; None where the trace is in order.

    Reads the source once, and of each line the timestamp alone; lines that cannot be read are passed over.
    """
    decode = msgspec.json.Decoder(_Arrival).decode
    latest = float("-inf")
    for number, line in enumerate(BoundedLines(source), 1):
        try:
            timestamp = None if line is None else decode(line).timestamp
        except _FAULTS:
            continue
        if timestamp is not None:
            if timestamp < latest:
                return number
            latest = timestamp
    return None
