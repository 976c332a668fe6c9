"""An order of recency, and the LRU policy on it, against a plain list; and that neither keeps what no longer counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kvtier_cli.tiering import recency
from kvtier_cli.tiering.policies import LruPolicy, RequestRecency
from kvtier_cli.tiering.recency import Recency

KEYS = st.lists(st.integers(0, 11), max_size=8, unique=True)
SLACK = recency._SLACK


class AgainstAList(RuleBasedStateMachine):
    """`listed` has the least recent first."""

    listed: list[int]

    @initialize(slack=st.sampled_from((SLACK, 0, -SLACK)))
    def start(self, slack: int) -> None:
        recency._SLACK = slack
        self.listed = []
        self.recency = Recency()
        self.policy = LruPolicy(12)

    def teardown(self) -> None:
        recency._SLACK = SLACK

    def held(self, keys: list[int]) -> list[int]:
        return [key for key in keys if key in self.listed]

    def without(self, keys: list[int]) -> list[int]:
        return [key for key in self.listed if key not in keys]


class OrderOfRecency(AgainstAList):
    @initialize()
    def start_without_a_mark(self) -> None:
        self.recent: set[int] | None = None
        self.gone: list[int] = []

    @rule(keys=KEYS)
    def append(self, keys: list[int]) -> None:
        self.recency.append(keys)
        self.listed = self.without(keys) + keys
        if self.recent is not None:
            self.recent.update(keys)

    @rule(keys=KEYS)
    def discard(self, keys: list[int]) -> None:
        held = self.held(keys)
        self.recency.discard(held)
        self.listed = self.without(held)
        self.gone += held

    @rule(count=st.integers(0, 14), busy=KEYS)
    def take_oldest(self, count: int, busy: list[int]) -> None:
        oldest = [key for key in self.listed if key not in busy][:count]
        assert self.recency.take_oldest(count, dict.fromkeys(busy)) == oldest
        self.listed = self.without(oldest)
        self.gone += oldest

    @rule()
    def mark(self) -> None:
        self.recency.set_mark("here")
        self.recent, self.gone = set(), []

    @invariant()
    def what_has_moved_since_the_mark_is_known(self) -> None:
        if self.recent is not None:
            recent = [key for key in self.listed if key in self.recent]
            assert self.recency.moved() == (recent, self.gone)

    @invariant()
    def the_order_is_that_of_the_list(self) -> None:
        assert list(self.recency) == self.listed
        assert set(self.recency.segments) == set(self.listed)


class Lru(AgainstAList):
    """Requests that come and go at once, without positions."""

    @rule(keys=KEYS)
    def insert(self, keys: list[int]) -> None:
        absent = [key for key in keys if key not in self.listed]
        if not absent:
            return
        request = RequestRecency()
        self.policy.access(request, dict.fromkeys(absent), ())
        self.policy.insert(request, absent)
        self.listed += absent

    @rule(keys=KEYS)
    def touch(self, keys: list[int]) -> None:
        self.policy.touch(keys, {})
        self.listed = self.without(keys) + self.held(keys)[::-1]

    @rule(keys=KEYS)
    def serve(self, keys: list[int]) -> None:
        held = self.held(keys)
        request = RequestRecency()
        self.policy.access(request, dict.fromkeys(held), held)
        self.policy.commit(request)
        self.listed = self.without(held) + held[::-1]

    @rule(keys=KEYS)
    def give_back(self, keys: list[int]) -> None:
        held = self.held(keys)
        self.policy.remove(held)
        self.listed = self.without(held)

    @rule(count=st.integers(0, 12), busy=KEYS, protected=KEYS)
    def evict(self, count: int, busy: list[int], protected: list[int]) -> None:
        victims = [key for key in self.listed if key not in busy and key not in protected][:count]
        found = self.policy.evict(len(victims), dict.fromkeys(busy, 1), dict.fromkeys(protected))
        assert found == victims
        self.listed = self.without(victims)

    @invariant()
    def the_order_is_that_of_the_list(self) -> None:
        assert self.policy.state() == {"name": "lru", "order": self.listed}
        assert set(self.policy.resident) == set(self.listed)


@pytest.mark.parametrize("listed", [1, 5, 512], ids="{} listed".format)
@pytest.mark.parametrize("machine", [OrderOfRecency, Lru])
def test_any_sequence_of_moves_gives_the_order_of_a_plain_list(
    machine: type[AgainstAList], listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recency, "_LISTED", listed)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40))


def move_all(order: Recency) -> None:
    order.append(range(100))


def evict_all(order: Recency) -> None:
    order.take_oldest(100)
    order.append(range(100))


def discard_all(order: Recency) -> None:
    order.discard(list(order))
    order.append(range(100))


@pytest.mark.parametrize("turn", [move_all, evict_all, discard_all])
def test_blocks_that_come_and_go_for_ever_take_no_more_room(turn: Callable[[Recency], None]) -> None:
    order = Recency()
    order.append(range(100))
    for _ in range(500):
        turn(order)
    assert list(order) == list(range(100))
    written = sum(len(segment.keys) for segment in order._order)
    assert written <= 4 * 100 + SLACK + 100
    assert len(order._order) <= 60


def test_a_prompt_that_is_served_for_ever_takes_no_more_room() -> None:
    policy = LruPolicy(100)
    prompt = dict.fromkeys(range(100))
    for served in range(500):
        request = RequestRecency()
        request.set_positions(list(prompt), range(16, 1616, 16))
        policy.access(request, dict(prompt), prompt if served else ())
        if not served:
            policy.insert(request, list(prompt))
        policy.commit(request)
    order = policy._recency._order
    assert sum(len(segment.keys) for segment in order) <= 4 * 100 + SLACK + 100
    assert policy.state()["order"] == list(reversed(prompt))
