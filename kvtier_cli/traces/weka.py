"""Weka's conversations, as kv-cache-tester has them: a JSON object each, with the requests of a conversation.

They stand a line each, or make up one JSON document: an object, or an array of them, over however many lines. Times
(`t`, in seconds) count from a conversation's start, and ids hold within it (`hash_id_scope` local): `CONVERSATION:ID`
in the trace as a whole. A `subagent` entry holds requests of its own, with the conversation's ids and clock. Ids are
those of full blocks, or of fewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.ids import LocalIds, canonical_ids
from kvtier_cli.traces.json_faults import bare, json_fault
from kvtier_cli.traces.json_groups import JsonGroupsReader
from kvtier_cli.traces.json_tags import tag_reader
from kvtier_cli.traces.lines import BLOCK_BYTES
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.sniff import HEAD_BYTES, Head


class _Entry(msgspec.Struct, gc=False, rename={"input_length": "in", "output_length": "out"}):
    type: str = "n"
    t: int | float | None = None
    input_length: int | UnsetType = UNSET
    output_length: int | None = None
    hash_ids: list[int | str] | UnsetType = UNSET
    agent_id: str | None = None
    requests: list[_Entry] | None = None


class _Conversation(msgspec.Struct, gc=False):
    requests: list[_Entry]
    id: int | str
    block_size: int | None = None
    hash_id_scope: str = "local"


class _TaggedEntry(msgspec.Struct, gc=False):
    requests: list[Raw] | None = None


_Open = tuple[Iterator[tuple[int, _Entry]], str, str, list[Raw] | None]
_END: Final = (0, None)

_decode = msgspec.json.Decoder(_Conversation).decode
_decode_tagged = msgspec.json.Decoder(_TaggedEntry).decode
_decode_array = msgspec.json.Decoder(list[Raw]).decode
_decode_one = msgspec.json.Decoder(Raw).decode


class WekaReader(JsonGroupsReader[_Conversation]):
    """Reads conversations; a document of them is held in memory whole, as a line is. See TraceReader."""

    BLOCK_TOKENS = 64
    SIZE_IS_FIXED = True
    TIME_UNIT = "s"
    LISTS_TAILS = False
    USUAL = msgspec.json.Decoder(_Conversation)

    def _reset(self) -> None:
        super()._reset()
        self._ids = LocalIds()
        self._conversations: set[str] = set()

    def _group(self, row: _Conversation, line: bytes, number: int) -> list[Request]:
        if row.block_size is not None:
            self._settle_block_tokens(row.block_size, number)
        name = str(row.id)
        found: list[Request] = []
        tags = tag_reader(self.options.tags) if self.options.tags else None
        common = None if tags is None else tags(line)
        texts = _decode_tagged(line).requests if tags else None
        # Inner requests where they stand: those being looked at, with their path, their name, and their texts for tags.
        open_: list[_Open] = [(enumerate(row.requests), "$.requests", name, texts)]
        while open_:
            entries, path, prefix, texts = open_[-1]
            index, entry = next(entries, _END)
            if entry is None:
                open_.pop()
                continue
            text = None if texts is None else texts[index]
            own_path, own_name = f"{path}[{index}]", f"{prefix}/{index}"
            if entry.requests is not None or entry.type == "subagent":
                inner = None if text is None else _decode_tagged(text).requests
                open_.append((enumerate(entry.requests or []), f"{own_path}.requests", own_name, inner))
                continue
            request = self._of_entry(entry, name, own_name, own_path, row.hash_id_scope, number)
            if tags is not None and text is not None and common is not None:
                own = tags(text)
                request.tags = tuple([each if mine is None else mine for mine, each in zip(own, common, strict=True)])
            found.append(request)
        self._conversations.add(name)
        return found

    def _of_entry(self, entry: _Entry, conversation: str, name: str, path: str, scope: str, number: int) -> Request:
        length, ids = entry.input_length, entry.hash_ids
        if isinstance(ids, UnsetType) or isinstance(length, UnsetType):
            lacks = "hash_ids" if isinstance(ids, UnsetType) else "in"
            raise InputError(f"the request has no {lacks}", file=self.source.name, line=number, path=path)
        self._check_length(length, number, f"{path}.in")
        if entry.output_length is not None:
            self._check_length(entry.output_length, number, f"{path}.out")
        return Request(
            0,
            number,
            length,
            canonical_ids(ids) if scope == "global" else self._ids.of(conversation, ids),
            entry.output_length,
            None if entry.t is None else self._time(entry.t, number, f"{path}.t"),
            name,
            None,
            conversation,
        )

    def _remarks(self) -> list[str]:
        if len(self._conversations) < 2:
            return []
        return [
            f"the times of its {len(self._conversations):,} conversations count from the start of each: they are "
            "replayed as if all began at once"
        ]

    def _rows(self) -> Iterator[tuple[int, bytes, _Conversation]]:
        if not _is_document(Head(self.source.head(HEAD_BYTES))):
            yield from super()._rows()
            return
        for number, text in self._document():
            self.lines = number
            try:
                try:
                    row = _decode(text)
                except (msgspec.DecodeError, RecursionError) as error:
                    raise json_fault(text, error, file=self.source.name, number=number) from None
            except InputError as fault:
                self._bad_record(fault)
                continue
            yield number, text, row

    def _document(self) -> Iterator[tuple[int, bytes]]:
        """The conversations of a document, and the lines at which they begin. Raises TraceFault for what is no JSON."""
        content = self._whole()
        try:
            content.decode("utf-8")
            text = content.strip()
            parts = _decode_array(text) if text.startswith(b"[") else [_decode_one(text)]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise self._no_json(content, error) from None
        at, line = 0, 1
        for part in parts:
            each = bytes(part)
            start = content.find(each, at)
            line += content.count(b"\n", at, start)
            yield line, each
            line += each.count(b"\n")
            at = start + len(each)

    def _whole(self) -> bytes:
        parts: list[bytes] = []
        held = told = 0
        with self.source.open() as stream:
            while part := stream.piece(BLOCK_BYTES):
                parts.append(part)
                held += len(part)
                if held > self._max_line_bytes:
                    fault = self._too_long(1)
                    raise TraceFault(
                        fault.message.replace(f"the {self.RECORD}", "the document"),
                        file=self.source.name,
                        hint="Write its conversations a line each: jq -c '.[]' FILE | kvtier … -",
                    )
                if self._on_bytes is not None:
                    self._on_bytes(stream.consumed - told)
                    told = stream.consumed
        return b"".join(parts).removeprefix(b"\xef\xbb\xbf")

    def _no_json(self, content: bytes, error: Exception) -> TraceFault:
        """Where and why a document cannot be read; the standard library counts lines and columns, msgspec bytes."""
        file = self.source.name
        if "truncated" in str(error):
            hint = "If it is still being written, wait for its writer."
            return TraceFault("the document is cut off: its last bracket is not there", file=file, hint=hint)
        try:
            json.loads(content)
        except json.JSONDecodeError as found:
            return TraceFault(f"no JSON: {found.msg.lower()}", file=file, line=found.lineno, column=found.colno)
        except UnicodeDecodeError as found:
            return TraceFault("not UTF-8", file=file, line=content.count(b"\n", 0, found.start) + 1)
        except (ValueError, RecursionError):
            pass
        return TraceFault("no JSON that can be read: " + bare(str(error)), file=file)


def _is_document(head: Head) -> bool:
    """Whether the trace is one JSON value, of which a line may be anything, and not one a line."""
    if head.first.startswith("["):
        return True
    second = head.lines[1] if len(head.lines) > 1 else "{"
    return not head.first.endswith("}") and not second.startswith("{")
