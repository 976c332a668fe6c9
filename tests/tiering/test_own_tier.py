"""A secondary tier of one's own needs a handful of methods, and works with the manager as kvtier's do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from kvtier_cli.tiering import PrefixAnswer
from kvtier_cli.tiering.filters import parse_tier_filter
from kvtier_cli.tiering.jobs import JobResult, RequestContext, TransferJob
from kvtier_cli.tiering.manager import PreparedStore, TieringManager
from kvtier_cli.tiering.model import BlockKey, Locality, LookupResult, Medium, OffloadPolicy
from kvtier_cli.tiering.secondary import SecondaryTier, SecondaryTierManager
from kvtier_cli.tiering.topology import PrimarySpec, Topology
from tests.tiering.managers import NVME, Lookup, Lookups, fill, jobs, steps, store


@dataclass
class Shelf(SecondaryTierManager):
    """Keeps blocks in a set; its jobs end when somebody says so."""

    name: str = "shelf"
    kept: set[BlockKey] = field(default_factory=set)
    begun: list[TransferJob] = field(default_factory=list)
    done: list[JobResult] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def lookup(self, key: BlockKey, context: RequestContext) -> LookupResult:
        self.told.append(f"{context.req_id} asks for {key}")
        return LookupResult.HIT if key in self.kept else LookupResult.MISS

    def submit_store(self, job: TransferJob) -> None:
        self.begun.append(job)

    def submit_load(self, job: TransferJob) -> None:
        self.begun.append(job)

    def get_finished_jobs(self) -> Iterable[JobResult]:
        done, self.done = self.done, []
        return done

    def drain_jobs(self) -> None:
        while self.begun:
            self.end()

    def end(self, failed: Iterable[BlockKey] = ()) -> None:
        """The oldest job is over."""
        job = self.begun.pop(0)
        self.done.append(JobResult(job, frozenset(failed)))
        self.kept.update(set(job.keys) - set(failed))


def with_tiers(capacity: int, *tiers: SecondaryTierManager, observer: Lookups | None = None) -> TieringManager:
    return TieringManager(Topology(primary=PrimarySpec(capacity)), tiers, observer=observer)


def test_what_is_stored_cascades_to_it_and_stays_pinned_until_it_says_that_it_is_done() -> None:
    shelf = Shelf()
    manager = with_tiers(1, shelf)
    manager.on_new_request("r1")
    store(manager, "r1", "b1")
    steps(manager, 10)
    assert manager.prepare_store("r1", ["b2"]) is None
    assert manager.has_pending_work()
    shelf.end()
    assert manager.prepare_store("r1", ["b2"]) == PreparedStore(["b2"], ["b1"])
    assert shelf.kept == {"b1"}


def test_what_it_holds_is_promoted_block_by_block_and_ready_when_it_has_read_it() -> None:
    shelf = Shelf(kept={"b1", "b2"})
    manager = with_tiers(4, shelf)
    manager.on_new_request("r1")
    assert manager.lookup_prefix("r1", ["b1", "b2", "b3"]) == PrefixAnswer(2, True)
    assert shelf.told == ["r1 asks for b1", "r1 asks for b2", "r1 asks for b3"]
    manager.on_schedule_end()
    assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(2, True)
    shelf.end()
    manager.on_schedule_end()
    assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(2, False)


def test_one_that_can_tell_at_once_is_asked_for_runs() -> None:
    class Tells(Shelf):
        def lookup_run(self, keys: Iterable[BlockKey], context: RequestContext) -> list[BlockKey]:
            self.told.append("a run")
            return [key for key in keys if key in self.kept]

    shelf = Tells(kept={"b1", "b2"})
    manager = with_tiers(4, shelf)
    manager.on_new_request("r1")
    assert manager.lookup_prefix("r1", ["b1", "b2"]) == PrefixAnswer(2, True)
    assert (shelf.told, manager.counters.hits) == (["a run"], [2])


def test_a_load_that_it_fails_gives_the_slot_back() -> None:
    shelf = Shelf(kept={"b1", "b2"})
    manager = with_tiers(4, shelf)
    manager.on_new_request("r1")
    manager.lookup_prefix("r1", ["b1", "b2"])
    manager.on_schedule_end()
    shelf.end(failed=["b1"])
    manager.on_schedule_end()
    assert (manager.primary.free, manager.counters.failed) == (3, [1])


def test_it_may_say_retry_until_it_knows() -> None:
    class Slow(Shelf):
        def lookup(self, key: BlockKey, context: RequestContext) -> LookupResult:
            return LookupResult.RETRY if not self.told else super().lookup(key, context)

    slow = Slow(kept={"b1"})
    manager = with_tiers(4, slow)
    manager.on_new_request("r1")
    assert manager.lookup("r1", "b1") is LookupResult.RETRY
    slow.told.append("found it")
    assert manager.lookup("r1", "b1") is LookupResult.HIT_PENDING


def test_what_it_declares_is_filtered_and_what_it_does_not_passes() -> None:
    shelf = Shelf(kept={"b1"})
    pool = Shelf("pool", kept={"b1"})
    pool.medium, pool.locality = Medium.CPU, Locality.REMOTE
    lookups = Lookups()
    manager = with_tiers(4, pool, shelf, observer=lookups)
    manager.on_new_request("r1", parse_tier_filter([{"medium": "storage"}]).filter)
    manager.lookup("r1", "b1")
    assert lookups.heard == [Lookup(LookupResult.HIT_PENDING, "skipped hit", promotion="shelf")]


def test_it_stands_in_a_row_with_kvtiers_own() -> None:
    shelf = Shelf()
    nvme = SecondaryTier(NVME)
    manager = with_tiers(2, nvme, shelf)
    fill(manager, "r1", "b1")
    assert jobs(manager) == ["1 cascade shelf r1: b1"]
    assert list(nvme.blocks()) == ["b1"]


def test_it_is_told_of_requests_steps_and_touches_if_it_wants_to_know() -> None:
    class Listens(Shelf):
        def on_new_request(self, context: RequestContext) -> None:
            self.told.append(f"{context.req_id} arrives with {context.load_filter.short()}")

        def on_request_finished(self, context: RequestContext) -> None:
            self.told.append(f"{context.req_id} is over")

        def on_schedule_end(self) -> None:
            self.told.append("step")

        def touch(self, keys: Iterable[BlockKey], context: RequestContext) -> None:
            self.told.append(f"{context.req_id} touches {' '.join(map(str, keys))}")

    listens = Listens()
    manager = with_tiers(4, listens)
    manager.on_new_request("r1", parse_tier_filter([]).filter)
    manager.touch("r1", ["b1", "b2"])
    manager.on_request_finished("r1")
    manager.on_schedule_end()
    assert listens.told == ["r1 arrives with deny", "r1 touches b1 b2", "r1 is over", "step"]


def test_it_may_want_requests_whole() -> None:
    shelf = Shelf()
    shelf.request_level = True
    manager = with_tiers(4, shelf)
    assert manager.on_new_request("r1") is OffloadPolicy.REQUEST_LEVEL
    store(manager, "r1", "b1")
    shelf.end()
    store(manager, "r1", "b1")
    assert jobs(manager) == ["1 cascade shelf r1: b1"]


@pytest.mark.parametrize("tiers", [(), (Shelf(),)])
def test_otherwise_blocks_are_enough(tiers: tuple[SecondaryTierManager, ...]) -> None:
    assert with_tiers(4, *tiers).on_new_request("r1") is OffloadPolicy.CHUNK_LEVEL


def test_it_may_ask_for_another_step_without_a_job() -> None:
    class Busy(Shelf):
        def is_at_work(self) -> bool:
            return True

    assert with_tiers(4, Busy()).has_pending_work()
    assert not with_tiers(4, Shelf()).has_pending_work()


def test_a_reset_drains_it() -> None:
    shelf = Shelf()
    manager = with_tiers(4, shelf)
    manager.on_new_request("r1")
    store(manager, "r1", "b1")
    manager.reset_cache()
    assert (shelf.kept, jobs(manager), manager.primary.free) == ({"b1"}, [], 4)


def test_what_it_cannot_tell_it_need_not() -> None:
    shelf = Shelf(kept={"b1"})
    assert (shelf.holds("b1"), list(shelf.blocks()), shelf.size()) == (None, [], 0)


def test_without_its_five_methods_it_is_none() -> None:
    class Empty(SecondaryTierManager):
        pass

    with pytest.raises(TypeError, match=r"drain_jobs.*get_finished_jobs.*lookup.*submit_load.*submit_store"):
        Empty()  # type: ignore[abstract]
