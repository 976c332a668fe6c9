"""The blocks' labels as columns, and names from them as `BlockTable.name` gives them. Of any number of blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from kvtier_cli.replay.decision_columns import Array
from kvtier_cli.replay.identity import BlockTable
from kvtier_cli.tiering.block_names import CHAIN_MARK

LABEL_TYPES: Final = {
    "parent": "<i4",
    "label": "<i8",
    "label_text": "|u1",
    "label_end": "<i8",
    "again_key": "<i4",
    "again_number": "<i4",
}
"""`parent`: the block before each in its prompt (-1: it begins one). Their labels: `label` where all are integers of 64
bits, else `label_text`, one behind the other in UTF-8, each up to its `label_end`. `again_key` and `again_number`: the
blocks, rising, whose label stood for another before, and which of its label's blocks each is (2: the second)."""


def text_columns(texts: Iterable[str]) -> tuple[Array, Array]:
    """Texts as their bytes, one behind the other, and where each ends."""
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum(np.fromiter(map(len, coded), np.int64, len(coded)), dtype=np.int64)
    return np.frombuffer(b"".join(coded), np.uint8), ends


def text_at(text: Array, end: Array, index: int) -> str:
    """One of the texts of `text_columns`."""
    start = int(end[index - 1]) if index else 0
    return text[start : int(end[index])].tobytes().decode("utf-8", "replace")


def label_columns(table: BlockTable) -> dict[str, Array]:
    """The labels and chains of all blocks in `table`."""
    columns: dict[str, Array] = {"parent": np.maximum(np.array(table.parents), -1).astype(np.int32)}
    labels = table.labels
    try:
        if isinstance(labels, range):  # of which an array would make a list first
            columns["label"] = np.arange(len(labels), dtype=np.int64)
        elif set(map(type, labels)) - {int}:
            raise OverflowError
        else:
            columns["label"] = np.array(labels, np.int64)
    except OverflowError:
        columns["label_text"], columns["label_end"] = text_columns(map(str, labels))
    repeats = table.repeats()
    columns["again_key"] = np.array([key for key, _ in repeats], np.int32)
    columns["again_number"] = np.array([number for _, number in repeats], np.int32)
    return columns


class BlockNames:
    """What the blocks of a log are called. `column` gives the columns of `LABEL_TYPES` by name."""

    def __init__(self, column: Callable[[str], Array], *, as_numbers: bool) -> None:
        self._column = column
        self._as_numbers = as_numbers

    def columns(self) -> list[Array]:
        """The labels of all blocks as they are stored: equal columns are equal labels."""
        return [self._column(name) for name in (["label"] if self._as_numbers else ["label_text", "label_end"])]

    def labels(self) -> list[str]:
        """The labels of all blocks, by number."""
        return [self.label(key) for key in range(len(self._column("parent")))]

    def label(self, key: int) -> str:
        """The id that the trace gave a block."""
        if self._as_numbers:
            return str(int(self._column("label")[key]))
        return text_at(self._column("label_text"), self._column("label_end"), key)

    def name(self, key: int) -> str:
        """The label of a block; the second, third… block of one label is `label~2`, `label~3`…"""
        again = self._column("again_key")
        at = bisect_left(again, key)
        if at < len(again) and again[at] == key:
            return f"{self.label(key)}{CHAIN_MARK}{self._column('again_number')[at]}"
        return self.label(key)

    def names(self, keys: Array) -> list[str]:
        """The names of many blocks."""
        if not self._as_numbers:
            return list(map(self.name, keys.tolist()))
        names = list(map(str, self._column("label")[keys].tolist()))
        again = self._column("again_key")
        if len(again):
            at = np.searchsorted(again, keys)
            at[at == len(again)] = 0
            for row in np.flatnonzero(again[at] == keys).tolist():
                names[row] += f"{CHAIN_MARK}{self._column('again_number')[at[row]]}"
        return names

    def find(self, text: str) -> Sequence[int]:
        """The blocks that `text` means: all with that label, or the one with that name."""
        found = self._labelled(text)
        if not len(found):
            label, mark, number = text.rpartition(CHAIN_MARK)
            if mark and number.isdecimal() and number[0] != "0" and len(number) < 10:
                found = self._labelled(label)[int(number) - 1 :][:1]
        return found

    def _labelled(self, label: str) -> list[int]:
        if self._as_numbers:
            try:
                number = int(label)
            except ValueError:
                return []
            if str(number) != label or not -(2**63) <= number < 2**63:
                return []
            return [int(key) for key in np.flatnonzero(self._column("label") == number)]
        # Only labels of the right length are worth a look.
        coded = np.frombuffer(label.encode("utf-8", "surrogatepass"), np.uint8)
        end = self._column("label_end")
        starts = np.concatenate([np.zeros(1, end.dtype), end[:-1]]) if len(end) else end
        text = self._column("label_text")
        return [
            int(key)
            for key in np.flatnonzero(end - starts == len(coded))
            if np.array_equal(text[int(starts[key]) : int(end[key])], coded)
        ]
