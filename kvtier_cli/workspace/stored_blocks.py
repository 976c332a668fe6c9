"""The blocks of an open workspace: which tiers have them, what people call them, which one a text means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, cast

from kvtier_cli.errors import InputError
from kvtier_cli.replay.text_keys import hex_of, key_behind, label_of, text_key_start
from kvtier_cli.tiering.block_names import CHAIN_MARK
from kvtier_cli.tiering.stores import BlockStore
from kvtier_cli.tiering.topology import PRIMARY_NAME
from kvtier_cli.wording import did_you_mean, shown
from kvtier_cli.workspace.opened import Workspace
from kvtier_cli.workspace.peeking_store import PeekingStore
from kvtier_cli.workspace.state import LruLists

_NAMED_DIGITS: Final = 8
_CHAINED: Final = re.compile(rf"(?P<label>.+){CHAIN_MARK}(?P<digits>[0-9a-f]{{1,64}})", re.DOTALL)
_COMPARED: Final = 200
_NUMBER_OR_TEXT: Final = re.compile(r"[0-9]+|[^0-9]+")

_ASKED_FOR: Final = 1000
"""More labels than that are found faster by going over all blocks."""

SORTS: Final = ("block", "recent", "oldest")


class StoredBlock(NamedTuple):
    """A block and the tiers that have it, the primary (`cpu`) first, then in lookup order."""

    key: str
    tiers: tuple[str, ...]


class Resolved(NamedTuple):
    """What texts mean: `keys` one each; `unknown` texts that no tier has a block for (their keys are of blocks never
    stored); `ambiguous` texts with all the blocks that they may stand for."""

    keys: list[str]
    unknown: list[str]
    ambiguous: dict[str, list[StoredBlock]]


class StoredBlocks:
    """The blocks of `space` as they were when each was first asked for.

    A label may stand for several blocks, which follow different prefixes. Then they are called `5102~3fa9c01d`, with
    the beginning of the digest; as numbers they could not be told apart in every run alike.
    """

    def __init__(self, space: Workspace) -> None:
        self._space = space
        self._known: dict[str, list[str]] = {}
        self._by_id = space.topology.replay.identity == "id"

    @cached_property
    def _primary(self) -> dict[str, None]:
        """The blocks of the primary, least recent first."""
        lists = self._space.state.primary
        return dict.fromkeys(lists.order if isinstance(lists, LruLists) else [*lists.t1, *lists.t2])

    def _orders(self) -> dict[str, Sequence[str]]:
        """Tier → its blocks, least recent first."""
        orders: dict[str, Sequence[str]] = {PRIMARY_NAME: list(self._primary)}
        for tier in self._space.tiers:
            orders[tier.name] = tier.blocks()  # type: ignore[assignment]  # a workspace's blocks are texts
        return orders

    def learn(self, labels: Iterable[str]) -> None:
        """Find the blocks with these labels."""
        new = set(labels).difference(self._known)
        if not new:
            return
        found: dict[str, dict[str, None]] = {label: {} for label in new}
        for held in (self._primary, *(self._candidates(tier.store, new) for tier in self._space.tiers)):
            for key in held:
                label = label_of(key)
                if label in found:
                    found[label][key] = None
        self._known.update((label, list(keys)) for label, keys in found.items())

    def _candidates(self, store: BlockStore, labels: Collection[str]) -> Collection[str]:
        """Blocks among which all are that have one of the labels: a few, where the store can be asked for them."""
        if isinstance(store, PeekingStore) and not store.is_whole and len(labels) <= _ASKED_FOR:
            return [key for label in labels for key in store.with_start(text_key_start(label))]
        return cast("Collection[str]", store.index)

    def _with_label(self, label: str) -> list[str]:
        self.learn((label,))
        return self._known[label]

    def name(self, key: object) -> str:
        """What people call a block. For many of them `learn` their labels first."""
        text = str(key)
        label = label_of(text)
        others = [other for other in self._with_label(label) if other != text]
        return f"{label}{CHAIN_MARK}{hex_of(text)[:_NAMED_DIGITS]}" if others and hex_of(text) else label

    def holders(self, key: str) -> tuple[str, ...]:
        """The tiers that have a block, the primary first, then in lookup order."""
        primary = (PRIMARY_NAME,) if key in self._primary else ()
        return primary + tuple(tier.name for tier in self._space.tiers if tier.holds(key))

    def listed(self, *, tier: str | None = None, block: str | None = None, sort: str = "block") -> list[StoredBlock]:
        """The blocks that `tier` has (None: that any has), of those the ones that `block` may mean, in order.

        `block` orders by label, numbers by their size; `recent` and `oldest` by recency, tiers in lookup order.
        Raises InputError for a tier that there is not.
        """
        orders = self._orders()
        if tier == "primary":
            tier = PRIMARY_NAME
        if tier is not None and tier not in orders:
            raise InputError(f"the workspace has no tier {shown(tier)}", hint=did_you_mean(tier, orders))
        found: dict[str, None] = {}
        for order in orders.values() if tier is None else [orders[tier]]:
            found.update(dict.fromkeys(order if sort == "oldest" else reversed(order)))
        if block is not None:
            meant = set(self.meant_by(block))
            found = dict.fromkeys(key for key in found if key in meant)
        keys: Iterable[str] = sorted(found, key=_by_label) if sort == "block" else found
        return [StoredBlock(key, self.holders(key)) for key in keys]

    def meant_by(self, text: str) -> list[str]:
        """The blocks that `text` may mean: a label, `label~` and the beginning of a digest, or a whole key."""
        chained = _CHAINED.fullmatch(text)
        digest = hex_of(text)
        labels = [text, *([chained["label"]] if chained else []), *([label_of(text)] if digest else [])]
        self.learn(labels)
        found = self._known[text]
        if chained and not found:
            found = [key for key in self._known[chained["label"]] if hex_of(key).startswith(chained["digits"])]
        if digest and not found:
            found = [key for key in self._known[label_of(text)] if key == text]
        return found

    def resolve(self, texts: Sequence[str]) -> Resolved:
        """The blocks that `texts` mean, in the order of a prompt.

        `5102` is the block with that label; of several the one behind the block before it in `texts`, at the beginning
        the one that begins a prompt. `5102~3fa9` is the one whose digest begins so. Where neither tells which, the
        text is ambiguous, and the first that was found stands for it.
        """
        resolved = Resolved([], [], {})
        self.learn(texts)
        before: str | None = None
        for text in texts:
            key = key_behind(before, text, by_id=self._by_id)
            if not self.holders(key):
                found = self.meant_by(text)
                if len(found) > 1:
                    resolved.ambiguous[text] = [StoredBlock(match, self.holders(match)) for match in found]
                if found:
                    key = found[0]
                else:
                    resolved.unknown.append(text)
            resolved.keys.append(key)
            before = key
        return resolved


def _by_label(key: str) -> tuple[list[tuple[int, int, str]], str]:
    """Labels as people sort them: `r2:9` before `r2:10`, a number as a number."""
    label = label_of(key)[:_COMPARED]
    if label.isascii() and label.isdigit():
        return [(0, int(label), "")], key
    parts = _NUMBER_OR_TEXT.findall(label)
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts], key
