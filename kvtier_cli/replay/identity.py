"""A block's identity in a trace: its chain, the ids from the start of the prompt to it. Hands out small ints for it.

vLLM's block hashes cover the prefix, so the same id behind another prefix is another block. The engine works with
ints, counted up in order of first sight; ids are labels for people, digests what is stored and published.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile
from operator import itemgetter
from struct import pack

Label = int | str

ROOT = -(1 << 63)
"""The parent of a prompt's first block. Far from any block's number, and from any index behind the last block."""

ROOT_DIGEST = bytes(32)


class BlockTable:
    """All blocks seen so far. `by_id`: take ids as they are, whatever is in front of them.

    Many traces count their ids as this table counts its blocks: from 0, in order of first sight, one id a chain. As
    long as one does, each id is its block's number, and a block takes the eight bytes of its parent alone.
    """

    def __init__(self, *, by_id: bool = False) -> None:
        self._by_id = by_id
        self._counted = not by_id
        """Whether all labels so far are their blocks' numbers."""
        self._labels: list[Label] = []
        self.parents = array("q")
        """Of each block the one in front of it, or `ROOT`."""
        # An id nearly always stands for one chain: its first. The others are looked up by (parent, id).
        self._first: dict[Label, int] = {}
        self._others: dict[tuple[int, Label], int] = {}
        self._others_of: dict[Label, list[int]] = {}
        self._digests: dict[int, bytes] = {ROOT: ROOT_DIGEST}

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def labels(self) -> Sequence[Label]:
        """The id of each block, as its trace has it."""
        return range(len(self.parents)) if self._counted else self._labels

    def keys(self, ids: Sequence[Label]) -> list[int]:
        """The blocks of a prompt, one an id, new ones included. A repeated id is another block each time, except
        with `by_id`."""
        if self._counted:
            counted = self._keys_as_counted(ids)
            if counted is not None:
                return counted
            self._stop_counting()
        if self._by_id:
            return self._keys_one_by_one(ids)
        first = self._first
        # Maps and comparisons of whole lists: much faster than a step a block, and half of all blocks pass here.
        keys = list(map(first.__getitem__, takewhile(first.__contains__, ids)))
        if keys and not self._is_chain(keys):
            return self._keys_one_by_one(ids)
        if len(keys) == len(ids):
            return keys
        parent = keys[-1] if keys else ROOT
        # What follows a new block is new too; nearly always its ids are so as well, and each stands there once.
        tail = ids[len(keys) :]
        start, known = len(self._labels), len(first)
        if not first.keys().isdisjoint(tail):
            return self._keys_one_by_one(ids)
        new = list(range(start, start + len(tail)))  # one int object a block, wherever it is named
        first.update(zip(tail, new, strict=True))
        if len(first) - known != len(tail):
            for label in set(tail):
                del first[label]
            return self._keys_one_by_one(ids)
        self.parents.append(parent)
        self.parents.extend(new[:-1])
        self._labels += tail
        keys += new
        return keys

    def _keys_as_counted(self, ids: Sequence[Label]) -> list[int] | None:
        """The blocks of a prompt whose ids are their numbers; None where that does not hold, and nothing is changed."""
        keys: list[int] = list(ids)  # type: ignore[arg-type]
        if not keys:
            return keys
        start = len(self.parents)
        try:
            new = keys[-1] - start + 1
            if new <= 0:
                return keys if self._is_chain(keys) else None
            known = len(keys) - new
            tail = keys[known:]
            if known < 0 or tail != list(range(start, start + new)):
                return None
            if known and not self._is_chain(keys[:known]):
                return None
        except (TypeError, IndexError):  # text; the number of no block
            return None
        # Packing is much faster than array's own look at each int.
        self.parents.frombytes(pack(f"{new}q", keys[known - 1] if known else ROOT, *tail[:-1]))
        return keys

    def _is_chain(self, keys: list[int]) -> bool:
        """Whether each of these numbers, one or more, is the block behind the one before it, the first behind none."""
        if keys[-1] < 0:  # of all others the block behind them tells
            return False
        if len(keys) == 1:
            return self.parents[keys[0]] == ROOT
        before: tuple[int, ...] = itemgetter(*keys)(self.parents)
        return before == (ROOT, *keys[:-1])

    def _stop_counting(self) -> None:
        """From now on ids are labels like any others."""
        self._counted = False
        numbers = list(range(len(self.parents)))
        self._labels += numbers
        self._first.update(zip(numbers, numbers, strict=True))

    def _keys_one_by_one(self, ids: Sequence[Label]) -> list[int]:
        keys: list[int] = []
        parent = ROOT
        for label in ids:
            key = self._find(parent, label)
            if key is None:
                key = len(self._labels)
                self._labels.append(label)
                self.parents.append(parent)
                if label in self._first:
                    self._others[parent, label] = key
                    self._others_of.setdefault(label, []).append(key)
                else:
                    self._first[label] = key
            keys.append(key)
            parent = key
        return keys

    def _find(self, parent: int, label: Label) -> int | None:
        key = self._first.get(label)
        if key is None or self._by_id or self.parents[key] == parent:
            return key
        return self._others.get((parent, label))

    def named(self, label: Label) -> list[int]:
        """Every block that a label stands for, in order of first sight."""
        if self._counted:
            return [label] if isinstance(label, int) and 0 <= label < len(self.parents) else []
        first = self._first.get(label)
        if first is None:
            return []
        return [first, *self._others_of.get(label, ())]

    def name(self, key: int) -> str:
        """The label of a block for people; the second, third… block of one label is `label~2`, `label~3`…"""
        label = self.labels[key]
        if self._counted or self._first[label] == key:
            return str(label)
        others = self._others_of[label]  # counted up, as all keys are
        return f"{label}~{bisect_left(others, key) + 2}"

    def repeats(self) -> list[tuple[int, int]]:
        """The blocks whose label stood for another block before, in their order, each with which of its label's blocks
        it is: 2 for the second."""
        return sorted((key, at) for others in self._others_of.values() for at, key in enumerate(others, 2))

    def digest(self, key: int) -> bytes:
        """32 bytes that name the chain, the same in every run: SHA-256 over the parent's digest and the id.

        With `by_id` only the id counts. The id goes in as text behind a parent's digest that always has 32 bytes, so
        that no two chains give the same input; `1` and `"1"` are one id.
        """
        if self._by_id:
            return chain_digest(ROOT_DIGEST, self.labels[key])
        unknown = []
        while key not in self._digests:
            unknown.append(key)
            key = self.parents[key]
        digest = self._digests[key]
        for child in reversed(unknown):
            digest = self._digests[child] = chain_digest(digest, self.labels[child])
        return digest


def chain_digest(parent: bytes, label: Label) -> bytes:
    """The digest of the block `label` behind the block with the digest `parent` (`ROOT_DIGEST`: behind none)."""
    import hashlib  # only who publishes or stores blocks pays for it

    return hashlib.sha256(parent + str(label).encode("utf-8", "surrogatepass")).digest()
