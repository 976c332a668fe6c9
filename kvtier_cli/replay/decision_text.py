"""Decision logs as JSON lines and as CSV, written a part at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

from kvtier_cli.replay.decision_rows import LogShape, Rows, as_values

_LINES = 1 << 9


class JsonLines:
    """An object a row, all columns in each."""

    def __init__(self, file: BinaryIO, shape: LogShape) -> None:
        self._file = file
        self._shape = shape
        self._columns = shape.columns
        self._encoder = msgspec.json.Encoder()

    def write(self, rows: Rows) -> None:
        """Write some more rows."""
        columns, encode = self._columns, self._encoder.encode_lines
        lines = []
        for values in as_values(rows, self._shape, list):
            lines.append(dict(zip(columns, values, strict=True)))
            if len(lines) == _LINES:
                self._file.write(encode(lines))
                lines.clear()
        self._file.write(encode(lines))

    def finish(self) -> None:
        """There is nothing left."""


class Csv:
    """RFC 4180 in UTF-8, but for line ends of one character: a line of names, then a line a row."""

    def __init__(self, file: BinaryIO, shape: LogShape) -> None:
        self._file = file
        self._shape = shape
        self._write_rows([shape.columns])

    def write(self, rows: Rows) -> None:
        """Write some more rows."""
        self._write_rows(list(as_values(rows, self._shape, joined)))

    def _write_rows(self, rows: Sequence[Sequence[object]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def finish(self) -> None:
        """There is nothing left."""


def joined(names: Sequence[str]) -> str:
    """Names with semicolons between them; one inside a name, and a backslash, has a backslash before it."""
    return ";".join(name.replace("\\", "\\\\").replace(";", "\\;") for name in names)
