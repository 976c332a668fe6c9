"""What the manager is not to be asked: it says so, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kvtier_cli.errors import ExitStatus, ManagerError
from kvtier_cli.replay.state import manager_state
from kvtier_cli.tiering.counters import Counters
from kvtier_cli.tiering.manager import TieringManager
from tests.tiering.managers import NVME, fill, manager_of, pending_store, positions, steps, store


def busy_manager(policy: str) -> TieringManager:
    """`live` stores b2 and reads b1; `over` is finalised; `waiting` is finished and has a store under way."""
    manager = manager_of(4, replace(NVME, load_latency=3), policy=policy, seeds={"nvme": "b8 b9"}, events=True)
    fill(manager, "over", "b1")
    manager.on_new_request("live")
    positions(manager, "live", "b1 b2")
    manager.prepare_load("live", ["b1"])
    assert pending_store(manager, "live", "b2") == ["b2"]
    manager.on_new_request("waiting")
    pending_store(manager, "waiting", "b3")
    manager.on_request_finished("waiting")
    steps(manager, 1)
    manager.on_new_request("other")
    manager.lookup("other", "b8")
    manager.take_events()
    return manager


Call = Callable[[TieringManager], object]

BREACHES: dict[str, tuple[Call, str]] = {
    "a second arrival": (lambda m: m.on_new_request("live"), "request 'live' is live already"),
    "a second arrival while a store of the first is under way": (
        lambda m: m.on_new_request("waiting"),
        "request 'waiting' is live already",
    ),
    "a second finish": (lambda m: m.on_request_finished("waiting"), "request 'waiting' is finished already"),
    "a second finish when all is over": (lambda m: m.on_request_finished("over"), "request 'over' is not known"),
    "a finish of nobody": (lambda m: m.on_request_finished("nobody"), "request 'nobody' is not known"),
    "a lookup by nobody": (lambda m: m.lookup("nobody", "b8"), "request 'nobody' is not known"),
    "a prefix of nobody": (lambda m: m.lookup_prefix("nobody", ["b8"]), "request 'nobody' is not known"),
    "a store by nobody": (lambda m: m.prepare_store("nobody", ["b4"]), "request 'nobody' is not known"),
    "a load by nobody": (lambda m: m.prepare_load("nobody", ["b1"]), "request 'nobody' is not known"),
    "a touch by nobody": (lambda m: m.touch("nobody", ["b1"]), "request 'nobody' is not known"),
    "positions of nobody": (lambda m: m.set_positions("nobody", ["b1"], [16]), "request 'nobody' is not known"),
    "a source for nobody": (lambda m: m.load_source("nobody", "b1"), "request 'nobody' is not known"),
    "a lookup after the finish": (lambda m: m.lookup("waiting", "b8"), "request 'waiting' is finished already"),
    "a prefix after the finish": (
        lambda m: m.lookup_prefix("waiting", ["b8"]),
        "request 'waiting' is finished already",
    ),
    "a store after the finish": (
        lambda m: m.prepare_store("waiting", ["b4"]),
        "request 'waiting' is finished already",
    ),
    "a load after the finish": (lambda m: m.load("waiting", ["b1"]), "request 'waiting' is finished already"),
    "a touch after the finish": (lambda m: m.touch("waiting", ["b1"]), "request 'waiting' is finished already"),
    "a load of a block that is absent": (
        lambda m: m.prepare_load("live", ["b1", "b7"]),
        "block 'b7' is not ready in the primary",
    ),
    "a load of a block that is pending": (
        lambda m: m.load("live", ["b1", "b2"]),
        "block 'b2' is not ready in the primary",
    ),
    "the end of a load that nobody began": (
        lambda m: m.complete_load("other", ["b1"]),
        "request 'other' has no such load under way",
    ),
    "the end of another load": (
        lambda m: m.complete_load("live", ["b2"]),
        "request 'live' has no such load under way",
    ),
    "the end of a store that nobody began": (
        lambda m: m.complete_store("other", ["b4"]),
        "request 'other' has no such store under way",
    ),
    "the end of a part of a store": (
        lambda m: m.complete_store("live", []),
        "request 'live' has no such store under way",
    ),
    "the end of a store of another": (
        lambda m: m.complete_store("live", ["b3"], success=False),
        "request 'live' has no such store under way",
    ),
    "the end of a store when all is over": (
        lambda m: m.complete_store("over", ["b1"]),
        "request 'over' is not known",
    ),
}


def everything(manager: TieringManager) -> object:
    counters = {name: str(getattr(manager.counters, name)) for name in Counters.__slots__}
    requests = {
        name: {slot: str(getattr(request, slot)) for slot in ("accessed", "positions", "promoted", "storing")}
        for name, request in manager.requests.items()
    }
    return manager_state(manager), counters, requests


@pytest.mark.parametrize("policy", ["lru", "arc"])
@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_of_the_protocol_is_an_error_and_changes_nothing(breach: str, policy: str) -> None:
    call, message = BREACHES[breach]
    manager = busy_manager(policy)
    before = everything(manager)
    with pytest.raises(ManagerError) as error:
        call(manager)
    assert (error.value.message, error.value.exit_status) == (message, ExitStatus.FAULT)
    assert everything(manager) == before
    assert manager.take_events() == []


@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_after_all_of_them_the_manager_goes_on_as_if_nobody_had_asked(policy: str) -> None:
    asked, spared = busy_manager(policy), busy_manager(policy)
    for call, _ in BREACHES.values():
        with pytest.raises(ManagerError):
            call(asked)
    for manager in (asked, spared):
        manager.complete_load("live", ["b1"])
        manager.complete_store("waiting", ["b3"])
        manager.complete_store("live", ["b2"])
        store(manager, "live", "b4")
        for name in ("live", "other"):
            manager.on_request_finished(name)
        steps(manager, 5)
    assert everything(asked) == everything(spared)
    assert not asked.has_pending_work()
    assert asked.primary.free + asked.primary.evictable == asked.primary.capacity


def test_an_unknown_request_is_told_what_to_do() -> None:
    with pytest.raises(ManagerError) as error:
        manager_of(1).lookup("r1", "b1")
    assert error.value.hint == "Announce it with on_new_request first."
