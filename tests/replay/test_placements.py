"""Who put a block where, who put it out, and what else befell it, whatever is asked of whichever tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given

from kvtier_cli.replay.life import BlockLife, Deed
from kvtier_cli.replay.life_words import not_served
from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.outcomes import BlockHistory, Outcome, find_stop
from kvtier_cli.replay.placements import Cause, How, Placements, Put
from kvtier_cli.replay.watchers import PassWatchers
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.model import BlockKey
from kvtier_cli.tiering.observer import ObserverGroup
from kvtier_cli.tiering.topology import TierSpec
from tests.replay.stories import Server, server
from tests.replay.test_outcome_sums import CASES, TOKENS, Case
from tests.tiering.managers import NVME, S3

SMALL = replace(NVME, capacity=2)


def listened(at: Server, blocks: str = "") -> tuple[Placements, BlockLife]:
    """Hears of all that happens from now on, and of the lives of `blocks`."""
    placements, life = Placements(at.manager), BlockLife(at.manager, at.history, blocks.split())
    at.manager.observe(ObserverGroup([at.history, placements, life]))
    at.loop.watcher = life
    return placements, life


def deeds(life: BlockLife, block: str) -> list[str]:
    return [
        f"{event.step} {event.req_id} {event.deed.value} {event.tier or ''}{' unread' * event.unread}".rstrip()
        for event in life.events[block]
    ]


# What one request puts out


def test_a_store_puts_out_what_others_had_stored_and_nobody_had_read() -> None:
    at = server(2, S3)
    placements, _ = listened(at)
    at.replay("b1")
    at.replay("b2")
    at.replay("b1")
    placements.follow(3)
    at.replay("b3 b4")
    assert [(gone.key, gone.tier, gone.cause, gone.put, gone.unread) for gone in placements.evictions] == [
        ("b2", "cpu", Cause.STORE, Put(1, How.STORED, 1), True),
        ("b1", "cpu", Cause.STORE, Put(0, How.STORED, 0), False),
    ]


def test_a_promotion_puts_out_and_what_it_brought_is_put_out_as_promoted() -> None:
    at = server(1, S3)
    placements, _ = listened(at)
    at.replay("b1")
    at.replay("b2")
    placements.follow(2)
    at.replay("b1")
    assert [(gone.key, gone.cause) for gone in placements.evictions] == [("b2", Cause.PROMOTION)]
    placements.follow(3)
    at.replay("b3")
    (gone,) = placements.evictions
    assert (gone.key, gone.put, gone.unread) == ("b1", Put(2, How.PROMOTED, 2), False)


def test_a_cascade_puts_out_of_a_secondary_tier_after_its_request_is_over() -> None:
    at = server(9, SMALL, S3)
    placements, _ = listened(at)
    at.replay("b1 b2")
    placements.follow(1)
    at.replay("b3")
    assert placements.evictions == []  # the write is on its way
    at.replay("b1")
    assert [(gone.key, gone.tier, gone.cause, gone.put) for gone in placements.evictions] == [
        ("b1", "nvme", Cause.CASCADE, Put(0, How.CASCADED, 1))
    ]


def test_what_was_there_before_anybody_listened_was_put_there_by_nobody_known() -> None:
    at = server(1, SMALL, seeds={"nvme": "b8 b9"})
    at.replay("b1")
    placements, _ = listened(at)
    placements.follow(1)
    at.replay("b2")
    at.replay("b3")
    assert {gone.tier: gone.put for gone in placements.evictions} == {"cpu": None, "nvme": None}


# One block's life


def test_a_life_is_told_from_the_first_miss_to_the_last_load() -> None:
    at = server(1, SMALL, S3)
    _, life = listened(at, "b1")
    for prompt in ("b1", "b2", "b1", "b3", "b4"):
        at.replay(prompt)
    at.replay("b1", [{"medium": "cpu"}])
    assert deeds(life, "b1") == [
        "0 0 absent",
        "0 0 stored cpu",
        "1 0 cascaded nvme",
        "1 0 cascaded s3",
        "1 1 evicted cpu unread",
        "2 2 promoted nvme",
        "3 2 loaded cpu",
        "4 3 evicted cpu",
        "6 4 evicted nvme",
        "6 5 filtered s3",
        "6 5 stored cpu",
    ]


@pytest.mark.parametrize(
    ("spec", "deed"),
    [
        (replace(NVME, fail_stores=frozenset({"b1"})), Deed.NOT_CASCADED),
        (replace(NVME, capacity=0), Deed.NOT_CASCADED),
        (replace(NVME, offline=True), Deed.NOT_CASCADED),
        (NVME, Deed.CASCADED),
    ],
)
def test_a_cascade_that_leaves_nothing_in_its_tier_is_told_as_such(spec: TierSpec, deed: Deed) -> None:
    at = server(4, spec)
    _, life = listened(at, "b1")
    at.replay("b1")
    at.replay("b2")
    assert [event.deed for event in life.events["b1"]] == [Deed.ABSENT, Deed.STORED, deed]


def test_a_load_that_fails_names_its_job() -> None:
    at = server(2, replace(NVME, fail_loads=frozenset({"b1"})), seeds={"nvme": "b1"})
    _, life = listened(at, "b1")
    at.replay("b1")
    failed = [event for event in life.events["b1"] if event.deed is Deed.LOAD_FAILED]
    assert {(event.tier, event.job) for event in failed} >= {("nvme", 0)}
    assert Deed.FAILED in {event.deed for event in life.events["b1"]}


def test_a_block_in_an_offline_tier_is_said_to_be_there() -> None:
    at = server(2, replace(NVME, offline=True), seeds={"nvme": "b1"})
    _, life = listened(at, "b1")
    at.replay("b1")
    (said,) = [event for event in life.events["b1"] if event.deed is Deed.ABSENT]
    assert not_served(said.deed, said.tier or "", said.reason) == "not served: nvme holds it, but is offline"


def test_a_refused_store_is_told() -> None:
    at = server(1, S3)
    _, life = listened(at, "b1 b2")
    at.replay("b1 b2")
    assert [event.deed for event in life.events["b2"]] == [Deed.REFUSED]


def test_where_loads_are_only_counted_they_are_no_events() -> None:
    at = server(2, S3)
    life = BlockLife(at.manager, at.history, ["b1"], loads=False)
    at.manager.observe(ObserverGroup([at.history, life]))
    for _ in range(3):
        at.replay("b1")
    assert (life.loads, [event.deed for event in life.events["b1"]]) == (
        {"b1": 2},
        [Deed.STORED, Deed.CASCADED],
    )


# Whatever happens


class Checked:
    """Asked at each request's last pass: what was heard is how the tiers stand."""

    def __init__(self, manager: TieringManager, history: BlockHistory) -> None:
        self.manager, self.history = manager, history
        self.placements = Placements(manager)
        self.life = BlockLife(manager, history, range(-1, 100))
        self.stops: list[tuple[BlockKey, Outcome]] = []

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        manager = self.manager
        heard = {name: set(self.lying(name)) for name in ("cpu", *(tier.name for tier in manager.tiers))}
        assert heard == {"cpu": set(manager.primary.resident)} | {
            tier.name: set(tier.blocks()) for tier in manager.tiers
        }
        for tier in manager.tiers:
            if tier.spec.capacity is not None:  # type: ignore[attr-defined]
                for key in range(100):
                    put = self.placements.put_by(tier.name, key)
                    assert (put is not None) == (tier.holds(key) is True)
                    assert put is None or put.how is How.CASCADED
        for key in range(100):
            put = self.placements.put_by("cpu", key)
            assert (put is not None) == (key in manager.primary.resident)
        stop = find_stop(manager, manager.requests[req_id], keys, loaded, gave_up, self.history)
        if stop is not None:
            self.stops.append((keys[stop.at], stop.outcome))

    def lying(self, tier: str) -> list[BlockKey]:
        """The blocks that lie in a tier by what was told of their lives."""
        comes = (Deed.STORED, Deed.PROMOTED) if tier == "cpu" else (Deed.CASCADED,)
        lying = []
        for key, events in self.life.events.items():
            is_in = False
            for event in events:
                if event.deed in comes and tier in ("cpu", event.tier):
                    is_in = True
                elif event.deed is Deed.EVICTED and event.tier == tier:
                    assert is_in, "evicted before it came"
                    is_in = False
                elif event.deed is Deed.LOAD_FAILED and tier == "cpu":
                    is_in = False
            if is_in:
                lying.append(key)
        return lying


@given(CASES)
def test_what_was_heard_of_the_tiers_is_how_they_stand(case: Case) -> None:
    history = BlockHistory()
    manager = TieringManager(case.topology)
    checked = Checked(manager, history)
    manager.observe(ObserverGroup([history, checked.placements, checked.life]))
    loop = ReplayLoop(manager, case.topology.replay, TOKENS, PassWatchers([checked.life, checked]))
    for ids, request in case.requests:
        loop.replay(loop.table.keys(ids), parse_tier_filter(request.get("kv_load_tiers")).filter)
    told = [(key, event.deed.value) for key, events in checked.life.events.items() for event in events]
    for key, outcome in checked.stops:
        told.remove((key, outcome.value))
