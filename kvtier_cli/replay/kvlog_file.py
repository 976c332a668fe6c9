"""The container of a `.kvlog`: a header in JSON, then columns of plain numbers, each with a checksum. Nothing in a file
is believed before it was checked, and nothing in it is ever executed.

    8 bytes     the magic
    3 x 4 bytes the format's version, the header's length, the header's CRC-32 (all little-endian)
    header      JSON in UTF-8: `LogHeader`
    columns     each at the offset that the header tells, counted from the first multiple of 64 behind the header
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np

from kvtier_cli.errors import InputError
from kvtier_cli.replay.decision_columns import Array
from kvtier_cli.traces.source import KVLOG_MAGIC as MAGIC
from kvtier_cli.traces.source import unreadable

VERSION: Final = 1
AGAIN: Final = "Make it again: kvtier replay TRACE --log OUT.kvlog"

_PREFIX: Final = struct.Struct("<8sIII")
_ALIGN: Final = 64
_HEADER_LIMIT: Final = 1 << 26
_COLUMN_LIMIT: Final = 1000


class Column(msgspec.Struct, frozen=True):
    """Where a column is: `count` numbers of `type` (as numpy writes types) from byte `offset` on."""

    name: str
    type: str
    count: int
    offset: int
    crc32: int


class LoggedFilter(msgspec.Struct, frozen=True):
    """A filter that requests had: its short form, and its matchers as `--json` has them (`"ALL"`: there was none)."""

    short: str
    matchers: str | list[dict[str, str | None]]


class LogHeader(msgspec.Struct):
    """What a log says of itself. `tiers` has all names, the primary first; `verdicts` the combinations that the column
    `said` counts, each a place in `verdict_words` for every secondary tier; `size` the bytes of all columns."""

    kvtier: str
    scope: str
    files: list[str]
    block_tokens: int
    topology: dict[str, Any]
    filter: dict[str, Any] | None
    figures: dict[str, Any]
    warnings: list[str]
    tiers: list[str]
    outcome_words: list[str]
    reason_words: list[str]
    verdict_words: list[str]
    verdicts: list[list[int]]
    filters: list[LoggedFilter]
    columns: list[Column] = []
    size: int = 0


def write_kvlog(file: BinaryIO, header: LogHeader, columns: Mapping[str, tuple[str, Sequence[Array]]]) -> None:
    """Write a log: `columns` gives each by name its type and its arrays, to stand one behind the other. The same log
    gives the same bytes."""
    places = []
    offset = 0
    for name, (type_, arrays) in columns.items():
        crc = 0
        count = 0
        for array in arrays:
            data = _bytes(array, type_)
            crc = zlib.crc32(data, crc)
            count += len(array)
        places.append(Column(name, type_, count, offset, crc))
        offset += _aligned(count * np.dtype(type_).itemsize)
    header.columns, header.size = places, offset
    text = _encode(header)
    start = _PREFIX.size + len(text)
    file.write(_PREFIX.pack(MAGIC, VERSION, len(text), zlib.crc32(text)))
    file.write(text)
    file.write(bytes(_aligned(start) - start))
    for type_, arrays in columns.values():
        written = 0
        for array in arrays:
            written += file.write(_bytes(array, type_))
        file.write(bytes(_aligned(written) - written))


def _bytes(array: Array, type_: str) -> memoryview:
    return np.ascontiguousarray(array, dtype=type_).data.cast("B") if len(array) else memoryview(b"")


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _encode(header: LogHeader) -> bytes:
    try:
        return msgspec.json.encode(header)
    except UnicodeEncodeError:  # a file's name that is no UTF-8
        return msgspec.json.encode(_printable(msgspec.to_builtins(header)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value


class KvlogFile:
    """A `.kvlog`, opened: its header is read and checked, its columns are mapped and checked when they are asked for.

    Raises InputError for a file that is missing, foreign, of a newer format, cut short or damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            if not Path(path).is_file():  # a pipe is not opened: that could wait for ever
                raise self._foreign() if Path(path).exists() else InputError("no such file", file=path)
            with Path(path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                self.header, start = self._read_header(file, size)
                self._data = self._map(file, start)
        except (OSError, ValueError) as error:
            raise unreadable(error, path) from None
        self._columns = {column.name: column for column in self.header.columns}
        self._checked: dict[str, Array] = {}

    def _read_header(self, file: BinaryIO, size: int) -> tuple[LogHeader, int]:
        prefix = file.read(_PREFIX.size)
        if not prefix.startswith(MAGIC):
            raise self._foreign()
        if len(prefix) < _PREFIX.size:
            raise self._cut(len(prefix))
        _, version, length, crc = _PREFIX.unpack(prefix)
        if version != VERSION:
            raise InputError(
                f"is a decision log of format {version:,}; this kvtier reads format {VERSION}",
                file=self.path,
                hint=f"Read it with the kvtier that wrote it. {AGAIN}",
            )
        if length > _HEADER_LIMIT:
            raise self.damaged(f"a header of {length:,} bytes")
        text = file.read(length)
        if len(text) < length:
            raise self._cut(size)
        if zlib.crc32(text) != crc:
            raise self.damaged("its header was altered")
        try:
            header = msgspec.json.decode(text, type=LogHeader)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.damaged(f"its header is not as expected ({error})") from None
        start = _aligned(_PREFIX.size + length)
        if header.size < 0 or size < start + header.size:
            raise self._cut(size)
        if size > start + header.size:
            raise self.damaged(f"{size - start - header.size:,} bytes behind its end")
        self._check_places(header)
        return header, start

    def _map(self, file: BinaryIO, start: int) -> Array:
        length = self.header.size
        try:
            return np.memmap(file, np.uint8, "r", start, (length,)) if length else np.empty(0, np.uint8)
        except ValueError:  # somebody has cut it since its size was looked at
            raise self._cut(os.fstat(file.fileno()).st_size) from None

    def _check_places(self, header: LogHeader) -> None:
        names = [column.name for column in header.columns]
        if len(set(names)) < len(names) or len(names) > _COLUMN_LIMIT:
            raise self.damaged("its columns are not told apart")
        for column in header.columns:
            if column.type not in _TYPES:
                raise self.damaged(f"column {column.name} has an unknown type")
            end = column.offset + column.count * np.dtype(column.type).itemsize
            if column.offset < 0 or column.offset % _ALIGN or column.count < 0 or end > header.size:
                raise self.damaged(f"column {column.name} lies outside of it")

    def has(self, name: str) -> bool:
        """Whether there is a column of that name."""
        return name in self._columns

    def count(self, name: str) -> int:
        """How many numbers a column has, 0 where there is none."""
        column = self._columns.get(name)
        return 0 if column is None else column.count

    def column(self, name: str, types: Iterable[str]) -> Array:
        """A column of one of `types`, for reading; its checksum is compared the first time. Raises InputError."""
        found = self._checked.get(name)
        if found is not None:
            return found
        column = self._columns.get(name)
        if column is None or column.type not in types:
            raise self.damaged(f"no column {name} as expected")
        size = column.count * np.dtype(column.type).itemsize
        data: Array = self._data[column.offset : column.offset + size].view(np.ndarray)
        if zlib.crc32(data.data) != column.crc32:
            raise self.damaged(f"column {name} was altered")
        self._checked[name] = array = data.view(column.type)
        return array

    def damaged(self, what: str) -> InputError:
        """The error for something in the file that cannot be."""
        return InputError(f"is damaged: {what}", file=self.path, hint=AGAIN)

    def _cut(self, size: int) -> InputError:
        return InputError(f"is cut short after {size:,} bytes", file=self.path, hint=AGAIN)

    def _foreign(self) -> InputError:
        return InputError("is no decision log", file=self.path, hint=AGAIN)


_TYPES: Final = frozenset({"|u1", "<u2", "<u4", "<i2", "<i4", "<i8"})
