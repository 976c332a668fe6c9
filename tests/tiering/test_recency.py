"""An order of recency, and the LRU policy on it, against a plain list; and that neither keeps what no longer counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kvtier_cli.tiering import recency
from kvtier_cli.tiering.policies import LruPolicy, RequestRecency
from kvtier_cli.tiering.recency import Recency

KEYS = st.lists(st.integers(0, 11), max_size=8, unique=True)
PROMPTS = KEYS | st.builds(
    # All share a head; three ways to go on.
    lambda head, way, tail: [*range(head), *range(6 + 2 * way, 6 + 2 * way + tail)],
    *(st.integers(0, 6), st.integers(0, 2), st.integers(0, 2)),
)
SLACK = recency._SLACK


class AgainstAList(RuleBasedStateMachine):
    """`listed` has the least recent first."""

    listed: list[int]
    order: Recency

    @initialize(slack=st.sampled_from((SLACK, 0, -SLACK)))
    def start(self, slack: int) -> None:
        recency._SLACK = slack
        self.listed = []
        self.recent: set[int] | None = None
        self.gone: list[int] = []
        self.policy = LruPolicy(12)
        self.order = self.policy.recency

    def teardown(self) -> None:
        recency._SLACK = SLACK

    def held(self, keys: list[int]) -> list[int]:
        return [key for key in keys if key in self.listed]

    def renewed(self, keys: list[int]) -> None:
        """Blocks are the most recent now, the last most of all."""
        self.listed = [key for key in self.listed if key not in keys] + keys
        if self.recent is not None:
            self.recent.update(keys)

    def left(self, keys: list[int]) -> None:
        self.listed = [key for key in self.listed if key not in keys]
        self.gone += keys

    @rule()
    def mark(self) -> None:
        self.order.set_mark("here")
        self.recent, self.gone = set(), []

    @invariant()
    def what_has_moved_since_the_mark_is_known(self) -> None:
        if self.recent is not None:
            recent = [key for key in self.listed if key in self.recent]
            assert self.order.moved() == (recent, self.gone)

    @invariant()
    def the_order_is_that_of_the_list(self) -> None:
        assert list(self.order) == self.listed
        assert set(self.order.segments) == set(self.listed)


class OrderOfRecency(AgainstAList):
    @rule(keys=KEYS)
    def append(self, keys: list[int]) -> None:
        self.order.append(keys)
        self.renewed(keys)

    @rule(keys=KEYS)
    def discard(self, keys: list[int]) -> None:
        held = self.held(keys)
        self.order.discard(held)
        self.left(held)

    @rule(count=st.integers(0, 14), busy=KEYS)
    def take_oldest(self, count: int, busy: list[int]) -> None:
        oldest = [key for key in self.listed if key not in busy][:count]
        assert self.order.take_oldest(count, dict.fromkeys(busy)) == oldest
        self.left(oldest)


class Lru(AgainstAList):
    """Requests that come and go at once, most of them without positions."""

    @rule(prompt=PROMPTS, evicted=st.integers(0, 4), at_once=st.booleans())
    def serve_prompt(self, prompt: list[int], evicted: int, at_once: bool) -> None:
        """A request with positions loads the head of its prompt, or all that is there, and stores the rest."""
        held = self.held(prompt)
        head = held if at_once else list(takewhile(self.listed.__contains__, prompt))
        rest = [key for key in prompt if key not in head]
        request = RequestRecency()
        request.set_prompt(list(prompt), range(16, 16 * len(prompt) + 1, 16))
        self.policy.access(request, dict.fromkeys(head), dict.fromkeys(head))
        self.policy.access(request, dict.fromkeys(rest), dict.fromkeys(self.held(rest)))
        self.evict(evicted, [], prompt)
        absent = [key for key in rest if key not in held]
        if absent:
            self.policy.insert(request, absent)
        self.policy.commit(request)
        self.renewed(prompt[::-1])

    @rule(keys=KEYS)
    def insert(self, keys: list[int]) -> None:
        absent = [key for key in keys if key not in self.listed]
        if not absent:
            return
        request = RequestRecency()
        self.policy.access(request, dict.fromkeys(absent), ())
        self.policy.insert(request, absent)
        self.renewed(absent)

    @rule(keys=KEYS)
    def touch(self, keys: list[int]) -> None:
        self.policy.touch(keys, {})
        self.renewed(self.held(keys)[::-1])

    @rule(keys=KEYS)
    def serve(self, keys: list[int]) -> None:
        held = self.held(keys)
        request = RequestRecency()
        self.policy.access(request, dict.fromkeys(held), held)
        self.policy.commit(request)
        self.renewed(held[::-1])

    @rule(keys=KEYS)
    def give_back(self, keys: list[int]) -> None:
        held = self.held(keys)
        self.policy.remove(held)
        self.left(held)

    @rule(count=st.integers(0, 12), busy=KEYS, protected=KEYS)
    def evict(self, count: int, busy: list[int], protected: list[int]) -> None:
        victims = [key for key in self.listed if key not in busy and key not in protected][:count]
        found = self.policy.evict(len(victims), dict.fromkeys(busy, 1), dict.fromkeys(protected))
        assert found == victims
        self.left(victims)


@pytest.mark.parametrize("listed", [1, 5, 512], ids="{} listed".format)
@pytest.mark.parametrize("machine", [OrderOfRecency, Lru])
def test_any_sequence_of_moves_gives_the_order_of_a_plain_list(
    machine: type[AgainstAList], listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recency, "_LISTED", listed)
    monkeypatch.setattr(recency, "_KEPT", 0 if listed == 1 else recency._KEPT)
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


def served(policy: LruPolicy, prompt: list[int]) -> None:
    request = RequestRecency()
    request.set_prompt(list(prompt), range(16, 16 * len(prompt) + 1, 16))
    held = [key for key in prompt if key in policy.resident]
    policy.access(request, dict.fromkeys(held), held)
    absent = [key for key in prompt if key not in policy.resident]
    if absent:
        policy.access(request, dict.fromkeys(absent), ())
        policy.insert(request, absent)
    policy.commit(request)


def test_many_prompts_with_one_head_take_little_more_room_than_their_blocks() -> None:
    policy = LruPolicy(2_000)
    head = list(range(1_000))
    for tail in range(1_000, 1_500):
        served(policy, [*head, tail])
    assert sum(len(segment.keys) for segment in policy._recency._order) < 2 * 1_500
    assert policy.state()["order"] == [*range(1_000, 1_500), *reversed(head)]
    assert policy.evict(501, {}, {}) == [*range(1_000, 1_500), 999]


def test_prompts_that_are_all_served_again_leave_nothing_behind() -> None:
    policy = LruPolicy(100)
    for _ in range(4 * SLACK):
        served(policy, list(range(10)))
    assert len(policy._recency._order) <= 2 * SLACK


def test_a_prompt_that_looks_like_an_earlier_one_but_has_other_blocks_before_moves_only_its_own() -> None:
    policy = LruPolicy(100)
    served(policy, [1, 2, 3, 4])
    served(policy, [9, 2, 3])
    assert policy.state()["order"] == [4, 1, 3, 2, 9]
    assert policy.evict(3, {}, {}) == [4, 1, 3]


def test_what_is_busy_in_the_tail_of_a_prompt_stays_where_it_was() -> None:
    policy = LruPolicy(100)
    served(policy, [1, 2, 3, 4])
    assert policy.evict(2, {3: 1}, {}) == [4, 2]
    served(policy, [1])
    assert policy.state()["order"] == [3, 1]
    assert policy.evict(2, {}, {}) == [3, 1]


def test_what_is_busy_behind_a_live_request_is_evicted_in_its_turn() -> None:
    policy, live = LruPolicy(100), RequestRecency()
    live.set_prompt([1, 2], range(16, 33, 16))
    policy.access(live, dict.fromkeys([1, 2]), ())
    policy.insert(live, [1, 2])
    served(policy, [5, 6, 7, 8])
    served(policy, [5, 6, 9])
    assert policy.evict(5, {8: 1}, {}) == [2, 1, 7, 9, 6]
    policy.commit(live)
    assert policy.state()["order"] == [8, 5]
    assert policy.evict(2, {}, {}) == [8, 5]
