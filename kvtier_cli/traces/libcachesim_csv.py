"""libCacheSim's CSV: an access of some cache a line, with a header or without; no requests, no prompts.

Without a header the first column is the time in seconds and the second the object. A header's columns are known by the
names that are usual, or by `--fields timestamp=COLUMN,hash_ids=COLUMN`. Each access is read as a request of one block.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.ids import canonical
from kvtier_cli.traces.json_faults import bare
from kvtier_cli.traces.lines import BoundedLines
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.oracle_general import ONE_BLOCK
from kvtier_cli.traces.reader import TraceReader

_OBJECTS: Final = ("obj_id", "obj-id", "objid", "object_id", "object")
_TIMES: Final = ("time", "timestamp", "clock_time", "ts")


class LibcachesimCsvReader(TraceReader):
    """Reads a CSV of accesses; see TraceReader."""

    BLOCK_TOKENS = 16
    TIME_UNIT = "s"
    TIME_UNIT_IS_OPEN = True
    HAS_TAGS = False
    TAKES_FIELDS = ("hash_ids", "timestamp")

    def __iter__(self) -> Iterator[Request]:
        self._reset()
        return self._counted(self._accesses())

    def _accesses(self) -> Iterator[Request]:
        lines = BoundedLines(self.source, max_line_bytes=self._max_line_bytes, on_bytes=self._on_bytes)
        columns: tuple[int | None, int] | None = None
        for number, line in enumerate(lines, 1):
            self.lines = number
            if line is not None and not line.strip():
                continue
            try:
                cells = self._cells(line, number)
                if columns is None:
                    columns, is_header = self._columns(cells, number)
                    if is_header:
                        continue
                request = self._access(cells, columns, number)
            except InputError as fault:
                self._bad_record(fault)
                continue
            yield request

    def _cells(self, line: bytes | None, number: int) -> list[str]:
        if line is None:
            raise self._too_long(number)
        try:
            text = line.decode("utf-8")
            cells = next(csv.reader([text], strict=True)) if '"' in text else text.split(",")
            return [cell.strip() for cell in cells]
        except UnicodeDecodeError:
            raise InputError("not UTF-8", file=self.source.name, line=number) from None
        except (csv.Error, StopIteration) as error:
            raise InputError(f"no line of CSV: {error}", file=self.source.name, line=number) from None

    def _columns(self, cells: Sequence[str], number: int) -> tuple[tuple[int | None, int], bool]:
        """Where the time (None: nowhere) and the object of an access stand, and whether the first line says so."""
        fields = dict(self.options.fields)
        if not fields and _number(cells[0]) is not None:
            return (0, 1), False
        names = [cell.casefold() for cell in cells]

        def find(wanted: Sequence[str]) -> int | None:
            return next((names.index(name) for name in wanted if name in names), None)

        time = find([fields["timestamp"].casefold()] if "timestamp" in fields else _TIMES)
        block = find([fields["hash_ids"].casefold()] if "hash_ids" in fields else _OBJECTS)
        if block is None or (time is None and "timestamp" in fields):
            raise TraceFault(
                f"its header names no column of {'objects' if block is None else 'times'} ({bare(','.join(cells))})",
                file=self.source.name,
                line=number,
                hint="Say which are: --fields timestamp=COLUMN,hash_ids=COLUMN",
            )
        return (time, block), True

    def _access(self, cells: Sequence[str], columns: tuple[int | None, int], number: int) -> Request:
        at_time, at_block = columns
        file = self.source.name
        needed = max(at_block, -1 if at_time is None else at_time) + 1
        if len(cells) < needed:
            raise InputError(f"expected {needed} columns or more, found {len(cells)}", file=file, line=number)
        if not cells[at_block]:
            raise InputError("the access names no object", file=file, line=number)
        time: int | float | None = None
        if at_time is not None:
            found = _number(cells[at_time])
            if found is None:
                raise InputError(f"expected a time, got {bare(cells[at_time])}", file=file, line=number)
            time = self._time(found, number)
        return Request(self.requests, number, self.block_tokens, [canonical(cells[at_block])], None, time)

    def _remarks(self) -> list[str]:
        return [ONE_BLOCK]


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        found = float(text)
    except ValueError:
        return None
    return found if isfinite(found) else None
