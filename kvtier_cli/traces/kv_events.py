"""Recorded KV events: JSON lines, a published batch a line. Of the blocks that were stored, requests are made.

A BlockStored that names its parent says where in a prompt its blocks stand. It is read as a request whose prompt is
that chain from its start; so is a run of such events in one batch, each of which goes on where the last one ended.
What was served from a cache publishes nothing, so this shows what was stored and behind which prefixes, never what was
asked for. Removals are not read: what stays is for the topology of the replay.

vLLM's offloading connector publishes placeholders unless told otherwise (`self_describing_kv_events`): a hash, no
parent, a block size of 0. They say nothing of prompts and are passed over; a recording with nothing else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from kvtier_cli.errors import InputError
from kvtier_cli.traces.compression import TraceFault
from kvtier_cli.traces.ids import canonical
from kvtier_cli.traces.json_groups import JsonGroupsReader
from kvtier_cli.traces.model import Request
from kvtier_cli.wording import count

_STORED: Final = "BlockStored"
_HASH_BITS: Final = (1 << 64) - 1

_PLACED = re.compile(rb'\s*(?:\{.*?"events"\s*:|\[[^\[{]*,)\s*\[\s*\[')
"""A batch whose first event is an array."""

Hash = int | str


class _Stored(msgspec.Struct, gc=False, tag=_STORED, tag_field="type"):
    """What is read of a BlockStored. The tokens are not: the hashes cover them."""

    block_hashes: list[Hash]
    parent_block_hash: Hash | None
    block_size: int
    medium: str | None = None
    group_idx: int | None = None
    session_id: int | str | None = None


class _Removed(msgspec.Struct, gc=False, tag="BlockRemoved", tag_field="type"):
    pass


class _Cleared(msgspec.Struct, gc=False, tag="AllBlocksCleared", tag_field="type"):
    pass


class _PlacedStored(msgspec.Struct, gc=False, tag=_STORED, array_like=True):
    """A BlockStored as vLLM wrote it before 0.24: its fields by their places."""

    block_hashes: list[Hash]
    parent_block_hash: Hash | None
    token_ids: list[object]
    block_size: int
    lora_id: object = None
    medium: str | None = None
    lora_name: object = None
    extra_keys: object = None
    group_idx: int | None = None

    @property
    def session_id(self) -> None:
        return None


class _PlacedRemoved(msgspec.Struct, gc=False, tag="BlockRemoved", array_like=True):
    pass


class _PlacedCleared(msgspec.Struct, gc=False, tag="AllBlocksCleared", array_like=True):
    pass


_Events = list[_Stored | _Removed | _Cleared]
_PlacedEvents = list[_PlacedStored | _PlacedRemoved | _PlacedCleared]


class _Batch(msgspec.Struct, gc=False):
    events: _Events
    ts: int | float | None = None


class _BatchOfPlaced(msgspec.Struct, gc=False):
    events: _PlacedEvents
    ts: int | float | None = None


class _Array(msgspec.Struct, gc=False, array_like=True):
    ts: int | float | None
    events: _Events


class _ArrayOfPlaced(msgspec.Struct, gc=False, array_like=True):
    ts: int | float | None
    events: _PlacedEvents


_Row = _Batch | _BatchOfPlaced | _Array | _ArrayOfPlaced

_of_object = (msgspec.json.Decoder(_Batch).decode, msgspec.json.Decoder(_BatchOfPlaced).decode)
_of_array = (msgspec.json.Decoder(_Array).decode, msgspec.json.Decoder(_ArrayOfPlaced).decode)


def _decode_any(line: bytes) -> _Row:
    """A batch of any shape."""
    by_name, by_place = _of_array if line.lstrip().startswith(b"[") else _of_object
    return by_place(line) if _PLACED.match(line) else by_name(line)


class KvEventsReader(JsonGroupsReader[_Row]):
    """Puts requests together from recorded KV events; holds each block's parent in memory. See TraceReader.

    Of several media, and of several groups of KV caches, the first that names parents is read.
    """

    BLOCK_TOKENS = 16
    TIME_UNIT = "s"
    IDS_FIELD = "block_hashes"
    HAS_TAGS = False
    USUAL = msgspec.json.Decoder(_Batch)

    def _reset(self) -> None:
        super()._reset()
        self._parents: dict[Hash, Hash | None] = {}
        self._read: tuple[str, int] | None = None
        self._stored = self._placeholders = self._orphans = self._elsewhere = 0

    def _other(self) -> Callable[[bytes], _Row]:
        return _decode_any

    def _group(self, row: _Row, line: bytes, number: int) -> list[Request]:
        time = None if row.ts is None else self._time(row.ts, number, "$.ts")
        found: list[Request] = []
        for index, event in enumerate(row.events):
            if isinstance(event, _Stored | _PlacedStored) and self._is_read(event):
                self._add(event, found, time, number, f"$.events[{index}]")
        return found

    def _is_read(self, event: _Stored | _PlacedStored) -> bool:
        """Whether it tells of a prompt, and of the one cache that is read."""
        self._stored += 1
        if not event.block_size or not event.block_hashes:
            self._placeholders += 1
            return False
        where = ((event.medium or "GPU").upper(), event.group_idx or 0)
        if self._read is None:
            self._read = where
        if where != self._read:
            self._elsewhere += 1
            return False
        return True

    def _add(
        self, event: _Stored | _PlacedStored, found: list[Request], time: float | None, number: int, path: str
    ) -> None:
        hashes = [_hash(each) for each in event.block_hashes]
        parent = None if event.parent_block_hash is None else _hash(event.parent_block_hash)
        tokens = self._tokens(event.block_size, len(hashes), number, f"{path}.block_size")
        if parent is not None and found and found[-1].hash_ids[-1] == parent:
            request = found[-1]
            request.hash_ids += hashes
            request.input_length += tokens
        else:
            chain = self._chain(parent)
            if chain is None:
                self._orphans += 1
                return
            length = len(chain) * self.block_tokens + tokens
            session = None if event.session_id is None else str(event.session_id)
            found.append(Request(0, number, length, [*chain, *hashes], None, time, None, None, session))
        for each in hashes:
            self._parents.setdefault(each, parent)
            parent = each

    def _tokens(self, size: int, blocks: int, number: int, path: str) -> int:
        """The tokens of a run of blocks; one that is not full has a smaller size, and is the last of its prompt."""
        if blocks == 1 and self._stated_block_tokens is not None and 0 < size < self._stated_block_tokens:
            return size
        self._settle_block_tokens(size, number, path)
        return blocks * size

    def _chain(self, parent: Hash | None) -> list[Hash] | None:
        """The blocks from the prompt's start to `parent`; None where one of them was stored before the recording."""
        chain: list[Hash] = []
        while parent is not None:
            if parent not in self._parents:
                return None
            chain.append(parent)
            parent = self._parents[parent]
        chain.reverse()
        return chain

    def _remarks(self) -> list[str]:
        medium = self._read[0] if self._read else ""
        found = [
            f"put together from the blocks that {medium} stored: what a cache served is not in it, and a prompt that "
            "was stored in several steps is as many requests"
        ]
        if self._elsewhere:
            found.append(f"{count(self._elsewhere, 'store')} of other media or KV cache groups passed over")
        if self._placeholders:
            found.append(f"{count(self._placeholders, 'placeholder')} passed over: they do not name their parents")
        if self._orphans:
            found.append(f"{count(self._orphans, 'store')} passed over, whose prompts began before the recording")
        return found

    def _no_request(self) -> InputError:
        if self._placeholders:
            return TraceFault(
                f"all its stored blocks ({self._placeholders:,}) are placeholders, which do not name their parents: "
                "nothing says what prompts they were of",
                file=self.source.name,
                hint="Record events that do: those of the GPU, or with self_describing_kv_events set.",
            )
        if self._orphans:
            return TraceFault("all its prompts began before the recording", file=self.source.name)
        if self.bad_lines:
            return super()._no_request()
        return InputError("holds no stored blocks", file=self.source.name)


def _hash(value: Hash) -> Hash:
    """A block's hash in one form: some servers publish its 64 bits as a signed number."""
    own = canonical(value) if isinstance(value, str) else value
    return own & _HASH_BITS if isinstance(own, int) and own < 0 else own
