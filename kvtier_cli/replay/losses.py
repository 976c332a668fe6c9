"""Of each block the number of its last loss. Eight bytes a numbered block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from kvtier_cli.tiering.model import BlockKey

_NEVER = -1


class LastLosses:
    """Remembers of each block the number that was put in last.

    `numbered`: keys are numbers counted up from 0, as a replay of a trace has them; there may be tens of millions.
    Otherwise they may be anything.
    """

    def __init__(self, *, numbered: bool = False) -> None:
        self._numbered = numbered
        self._of_number: list[int] = []  # an array would turn each number into eight bytes, which takes longer
        self._of_name: dict[BlockKey, int] = {}

    def put(self, keys: Sequence[BlockKey], loss: int) -> None:
        """The blocks `keys` were lost, and it was the loss number `loss`, 0 or more."""
        if not self._numbered:
            of_name = self._of_name
            for key in keys:
                of_name[key] = loss
            return
        numbers: Sequence[int] = keys  # type: ignore[assignment]
        of_number = self._of_number
        try:
            for number in numbers:
                of_number[number] = loss
        except IndexError:
            lacking = max(numbers) + 1 - len(of_number)
            of_number.extend(repeat(_NEVER, lacking + len(of_number) // 8))
            for number in numbers:
                of_number[number] = loss

    def get(self, key: BlockKey) -> int | None:
        """The number of a block's last loss; None where it never had one."""
        if not self._numbered:
            return self._of_name.get(key)
        if not isinstance(key, int) or not 0 <= key < len(self._of_number):  # no request had it
            return None
        loss = self._of_number[key]
        return None if loss == _NEVER else loss

    def dump(self) -> Sequence[Sequence[BlockKey]]:
        """All that it remembers, for `load`: two lists, of ints alone where blocks are numbered."""
        if self._numbered:
            return [[], self._of_number.copy()]
        return [list(self._of_name), list(self._of_name.values())]

    def load(self, keys: Sequence[BlockKey], losses: Sequence[int]) -> None:
        """Go back to what `dump` gave."""
        if self._numbered:
            self._of_number = list(losses)
        else:
            self._of_name = dict(zip(keys, losses, strict=True))
