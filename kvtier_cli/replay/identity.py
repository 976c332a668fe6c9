"""A block's identity in a trace: its chain, the ids from the start of the prompt to it. Hands out small ints for it.

vLLM's block hashes cover the prefix, so the same id behind another prefix is another block. The engine works with
ints, counted up in order of first sight; ids are labels for people, digests what is stored and published.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile

Label = int | str

ROOT = -1
"""The parent of a prompt's first block."""

ROOT_DIGEST = bytes(32)


class BlockTable:
    """All blocks seen so far. `by_id`: take ids as they are, whatever is in front of them."""

    def __init__(self, *, by_id: bool = False) -> None:
        self._by_id = by_id
        self.labels: list[Label] = []
        self.parents: list[int] = []
        # An id nearly always stands for one chain: its first. The others are looked up by (parent, id).
        self._first: dict[Label, int] = {}
        self._others: dict[tuple[int, Label], int] = {}
        self._others_of: dict[Label, list[int]] = {}
        self._digests: dict[int, bytes] = {ROOT: ROOT_DIGEST}

    def __len__(self) -> int:
        return len(self.labels)

    def keys(self, ids: Sequence[Label]) -> list[int]:
        """The blocks of a prompt, one an id, new ones included. A repeated id is another block each time, except
        with `by_id`."""
        if self._by_id:
            return self._keys_one_by_one(ids)
        first, parents = self._first, self.parents
        # Maps and comparisons of whole lists: much faster than a step a block, and half of all blocks pass here.
        keys = list(map(first.__getitem__, takewhile(first.__contains__, ids)))
        if keys and (parents[keys[0]] != ROOT or list(map(parents.__getitem__, keys[1:])) != keys[:-1]):
            return self._keys_one_by_one(ids)
        if len(keys) == len(ids):
            return keys
        parent = keys[-1] if keys else ROOT
        # What follows a new block is new too; nearly always its ids are so as well, and each stands there once.
        tail = ids[len(keys) :]
        start, known = len(self.labels), len(first)
        if not first.keys().isdisjoint(tail):
            return self._keys_one_by_one(ids)
        # One int object a block wherever it is named, and the trace's own where it counts its blocks as we do.
        new = list(range(start, start + len(tail)))
        if new == tail:
            new = tail
        first.update(zip(tail, new, strict=True))
        if len(first) - known != len(tail):
            for label in set(tail):
                del first[label]
            return self._keys_one_by_one(ids)
        parents.append(parent)
        parents += new[:-1]
        self.labels += tail
        keys += new
        return keys

    def _keys_one_by_one(self, ids: Sequence[Label]) -> list[int]:
        keys: list[int] = []
        parent = ROOT
        for label in ids:
            key = self._find(parent, label)
            if key is None:
                key = len(self.labels)
                self.labels.append(label)
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
        first = self._first.get(label)
        if first is None:
            return []
        return [first, *self._others_of.get(label, ())]

    def name(self, key: int) -> str:
        """The label of a block for people; the second, third… block of one label is `label~2`, `label~3`…"""
        label = self.labels[key]
        if self._first[label] == key:
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
