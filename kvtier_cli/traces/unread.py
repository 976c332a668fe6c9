"""What the records of a trace have that its reader does not read: fields by name, and how many requests have them."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import Raw

from kvtier_cli.errors import InputError
from kvtier_cli.traces.json_lines import JsonLinesReader
from kvtier_cli.traces.json_tags import tag_reader
from kvtier_cli.traces.own import OwnReader
from kvtier_cli.traces.reader import TraceReader

_MOST_NAMES = 1_000
"""Names that are told apart: a record may have any number of them."""
_REST = "(fields past the first 1,000)"

_Fields = dict[str, Raw]


class Unread:
    """Listens to `reader` and counts. `fields`: name → requests that have it, with another value than null.

    For kvtier's own traces these are the tags, all other fields being read.
    """

    def __init__(self, reader: TraceReader) -> None:
        self.fields: Counter[str] = Counter()
        read = reader.read_fields() if isinstance(reader, JsonLinesReader) else None
        self.is_known = read is not None
        """Whether the records of that format can be looked at so."""
        self._read = read or frozenset()
        self._in_tags = isinstance(reader, OwnReader)
        self._decode = msgspec.json.Decoder(_Fields).decode
        if isinstance(reader, JsonLinesReader) and self.is_known:
            reader.on_record = self._hear

    def possible_tags(self) -> list[str]:
        """The names under which a reader can be asked for these fields, in order of first sight."""
        return [name for name in self.fields if name not in self._read and _is_possible(name)]

    def _hear(self, line: bytes) -> None:
        try:
            record = self._decode(line)
            if self._in_tags:
                tags = bytes(record.get("tags", b"null"))
                record = {} if tags == b"null" else self._decode(tags)
                names = set(record)
            else:
                names = record.keys() - self._read
        except (msgspec.DecodeError, UnicodeDecodeError):  # a name that is no text; its reader passed over it
            return
        for name in record if names else ():
            if name in names and bytes(record[name]) != b"null":
                self.fields[name if name in self.fields or len(self.fields) < _MOST_NAMES else _REST] += 1


def _is_possible(name: str) -> bool:
    try:
        tag_reader([name])
    except InputError:
        return False
    return name != _REST
