"""Logs of requests as an OpenAI-style server gets them: JSONL, of each line the request's id and `kv_transfer_params`.

Nothing else of a line is looked at. What the parameters mean is for their own readers to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.traces.json_faults import json_fault
from kvtier_cli.traces.lines import MAX_LINE_BYTES, BoundedLines
from kvtier_cli.traces.source import TraceSource

_Id = int | str | None
_Field = Raw | UnsetType


class _Holder(msgspec.Struct, gc=False):
    """What a line, or the body in it, may have. The order of the fields is the order in which they are looked at."""

    request_id: _Id = None
    id: _Id = None
    custom_id: _Id = None
    kv_transfer_params: _Field = UNSET
    extra_body: _Field = UNSET
    extra_args: _Field = UNSET
    sampling_params: _Field = UNSET
    body: _Field = UNSET
    request: _Field = UNSET
    request_body: _Field = UNSET


_PARAMETER_HOLDERS: Final = ("extra_body", "extra_args", "sampling_params")
"""Objects beside `kv_transfer_params` that may have it instead: the OpenAI client lifts `extra_body` into the body,
and vLLM carries the parameters on in `sampling_params.extra_args`."""

_BODIES: Final = ("body", "request", "request_body")
"""Where a log puts the request's body, as an object or as its text."""

_FAULTS: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_decode = msgspec.json.Decoder(_Holder).decode


@dataclass(frozen=True, slots=True)
class RequestLog:
    """The parameters of requests by their ids, undecoded JSON; None where a request carries none.

    `repeated` counts the lines whose id stood in the log before: of them the last holds. `bad_lines` were left out;
    `first_bad` says what was wrong with the first.
    """

    name: str
    params: dict[str, bytes | None]
    repeated: int = 0
    bad_lines: int = 0
    first_bad: str = ""

    @property
    def warnings(self) -> list[str]:
        """What the reader of a result should know about the log."""
        found = []
        if self.bad_lines:
            found.append(f"{_lines(self.bad_lines)} skipped; the first: {self.first_bad}")
        if self.repeated:
            lines = "1 line repeats an id" if self.repeated == 1 else f"{self.repeated:,} lines repeat ids"
            found.append(f"{lines} of lines before; of each id the last holds")
        return [f"{self.name}: {text}" for text in found]


def read_request_log(
    source: TraceSource, *, skip_bad: bool = False, max_line_bytes: int = MAX_LINE_BYTES
) -> RequestLog:
    """Read a log whole. A line without an id, or that is no JSON object, is an InputError with its place, or with
    `skip_bad` counted and left out; so are parameters that cannot be decoded. A log without a request is an error."""
    params: dict[str, bytes | None] = {}
    sound: dict[bytes, bytes] = {}
    repeated = bad = 0
    first_bad = ""
    lines = BoundedLines(source, max_line_bytes=max_line_bytes)
    for number, line in enumerate(lines, 1):
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise InputError(f"the line is longer than {max_line_bytes:,} bytes", file=source.name, line=number)
            own_id, own = _read(line, number, source.name, unterminated=lines.unterminated)
            if own is not None and own not in sound:
                _check(own, number, source.name)
                sound[own] = own
        except InputError as fault:
            if not skip_bad or fault.line is None:
                fault.hint = fault.hint or "Continue past bad lines with --skip-bad."
                raise
            bad += 1
            first_bad = first_bad or str(fault)
            continue
        repeated += own_id in params
        params[own_id] = None if own is None else sound[own]
    if not params:
        hint = f"The first bad line: {first_bad}" if bad else "Expected one JSON object a line."
        raise InputError("holds no request", file=source.name, hint=hint)
    return RequestLog(source.name, params, repeated, bad, first_bad)


def _read(line: bytes, number: int, file: str, *, unterminated: bool) -> tuple[str, bytes | None]:
    """The id and the parameters of one line."""
    try:
        if not line.isascii():
            line.decode("utf-8")  # msgspec does not look at what it skips
        holders = [*_holders(_decode(line))]
        for holder in holders:
            for own in (holder.request_id, holder.id, holder.custom_id):
                if own is not None:
                    found = next((raw for each in holders if (raw := _params(each)) is not None), None)
                    return str(own), None if found in (None, b"null") else found
    except _FAULTS as error:
        raise json_fault(line, error, file=file, number=number, unterminated=unterminated) from None
    raise InputError(
        "the request has no id",
        file=file,
        line=number,
        hint="Expected request_id, id or custom_id, here or in its body.",
    )


def _holders(line: _Holder) -> Iterator[_Holder]:
    """The line itself, then the bodies in it."""
    yield line
    for name in _BODIES:
        body = _opened(getattr(line, name))
        if body is not None:
            yield body


def _params(holder: _Holder) -> bytes | None:
    if not isinstance(holder.kv_transfer_params, UnsetType):
        return bytes(holder.kv_transfer_params)
    for name in _PARAMETER_HOLDERS:
        inner = _opened(getattr(holder, name))
        found = None if inner is None else _params(inner)
        if found is not None:
            return found
    return None


def _opened(field: _Field) -> _Holder | None:
    """An object, or a text that is one; None for whatever else."""
    if isinstance(field, UnsetType):
        return None
    text = bytes(field)
    if text.startswith(b'"'):
        text = msgspec.json.decode(text, type=str).strip().encode()
    if not text.startswith(b"{"):
        return None
    try:
        return _decode(text)
    except msgspec.DecodeError:
        if bytes(field).startswith(b'"'):  # any text may stand there
            return None
        raise


def _check(params: bytes, number: int, file: str) -> None:
    """Raises InputError where Python's decoder, by which parameters are read, refuses what msgspec lets pass."""
    from json import loads

    try:
        loads(params)
    except RecursionError:
        raise InputError(
            "brackets are nested too deeply", file=file, line=number, path="$.kv_transfer_params"
        ) from None
    except ValueError:
        message = "holds a number of more than 4,300 digits"
        raise InputError(message, file=file, line=number, path="$.kv_transfer_params") from None


def _lines(count: int) -> str:
    return "1 bad line" if count == 1 else f"{count:,} bad lines"
