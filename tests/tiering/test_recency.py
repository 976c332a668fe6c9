"""An order of recency, against a plain list; and that it does not keep what no longer counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kvtier_cli.tiering import recency
from kvtier_cli.tiering.recency import Recency

KEYS = st.lists(st.integers(0, 11), max_size=8, unique=True)
SLACK = recency._SLACK


class AgainstAList(RuleBasedStateMachine):
    """`listed` has the least recent first, as the order of recency iterates."""

    @initialize(slack=st.sampled_from((SLACK, 0, -SLACK)))
    def start(self, slack: int) -> None:
        recency._SLACK = slack
        self.recency = Recency()
        self.listed: list[int] = []

    def teardown(self) -> None:
        recency._SLACK = SLACK

    @rule(keys=KEYS)
    def append(self, keys: list[int]) -> None:
        self.recency.append(keys)
        self.listed = [key for key in self.listed if key not in keys] + keys

    @rule(keys=KEYS)
    def discard(self, keys: list[int]) -> None:
        held = [key for key in keys if key in self.listed]
        self.recency.discard(held)
        self.listed = [key for key in self.listed if key not in held]

    @rule(count=st.integers(0, 14), busy=KEYS, protected=KEYS, take=st.booleans())
    def oldest(self, count: int, busy: list[int], protected: list[int], take: bool) -> None:
        found = self.recency.oldest(count, dict.fromkeys(busy), dict.fromkeys(protected))
        free = [key for key in self.listed if key not in busy and key not in protected]
        assert found == free[:count]
        if take:
            self.recency.discard(found)
            self.listed = [key for key in self.listed if key not in found]

    @rule(count=st.integers(0, 14), take=st.booleans())
    def oldest_of_all(self, count: int, take: bool) -> None:
        found = self.recency.oldest(count)
        assert found == self.listed[:count]
        if take:
            self.recency.discard(found)
            del self.listed[:count]

    @invariant()
    def the_order_is_that_of_the_list(self) -> None:
        assert list(self.recency) == self.listed
        assert set(self.recency.segments) == set(self.listed)


def test_any_sequence_of_moves_gives_the_order_of_a_plain_list() -> None:
    run_state_machine_as_test(AgainstAList, settings=settings(stateful_step_count=40))


def written(order: Recency) -> int:
    return sum(len(segment.keys) for segment in order._order)


def move_all(order: Recency) -> None:
    order.append(range(100))


def replace_all(order: Recency) -> None:
    order.discard(order.oldest(100))
    order.append(range(100))


def replace_others(order: Recency) -> None:
    order.discard(list(order))
    order.append(range(100))


@pytest.mark.parametrize("turn", [move_all, replace_all, replace_others])
def test_blocks_that_come_and_go_for_ever_take_no_more_room(turn: Callable[[Recency], None]) -> None:
    order = Recency()
    order.append(range(100))
    for _ in range(500):
        turn(order)
    assert list(order) == list(range(100))
    assert written(order) <= 4 * 100 + SLACK + 100
    assert len(order._order) <= 60
