"""What is remembered of lost blocks: which loss of each was the last."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.losses import LastLosses

PUTS = st.lists(st.tuples(st.lists(st.integers(0, 30)), st.integers(0, 2**40)))


@given(PUTS)
def test_the_last_loss_of_a_numbered_block_is_that_of_any_block(puts: list[tuple[list[int], int]]) -> None:
    numbered, named = LastLosses(numbered=True), LastLosses()
    for keys, loss in puts:
        numbered.put(keys, loss)
        named.put([str(key) for key in keys], loss)
    for key in range(32):
        assert numbered.get(key) == named.get(str(key))


@given(PUTS, PUTS, st.booleans())
def test_it_goes_back_to_what_it_knew(
    puts: list[tuple[list[int], int]], later: list[tuple[list[int], int]], numbered: bool
) -> None:
    losses = LastLosses(numbered=numbered)
    for keys, loss in puts:
        losses.put(keys, loss)
    known, kept = [losses.get(key) for key in range(32)], losses.dump()
    for keys, loss in later:
        losses.put(keys, loss)
    losses.load(*kept)  # type: ignore[arg-type]
    assert [losses.get(key) for key in range(32)] == known


@pytest.mark.parametrize("key", [-1, 2, 10**30, "0", "text"])
def test_what_is_no_number_of_a_block_was_never_lost(key: int | str) -> None:
    losses = LastLosses(numbered=True)
    losses.put([0, 1], 7)
    assert losses.get(key) is None


def test_a_numbered_block_takes_little_memory() -> None:
    losses = LastLosses(numbered=True)
    for key in range(0, 100_000, 100):
        losses.put(range(key, key + 100), key)
    assert sum(map(sys.getsizeof, vars(losses).values())) < 1_000_000
