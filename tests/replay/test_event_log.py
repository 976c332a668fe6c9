"""The KV events of a replay, as JSON lines, say at every step what a server's listeners would have heard."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.event_log import EventLog
from kvtier_cli.replay.loop import ReplayLoop
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.tiering.filters import ALL
from kvtier_cli.tiering.kv_events import wire_hash
from kvtier_cli.tiering.manager import TieringManager
from kvtier_cli.tiering.topology import BUILT_IN, PrimarySpec, ReplaySpec, TierSpec, Topology
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.source import TraceSource
from tests.tiering.managers import NVME, PEER, S3
from tests.tiering.strategies import tier_lists

TOKENS = 16


class Replay:
    """A server that publishes, and what it has published."""

    def __init__(self, topology: Topology, arrival: Callable[[], float | None] = lambda: None) -> None:
        self.manager = TieringManager(topology, events=True)
        self.loop = ReplayLoop(self.manager, topology.replay, TOKENS)
        self._file = io.BytesIO()
        self.log = EventLog(self._file, self.manager.take_events, self.loop.table, arrival)
        self.manager.observe(self.log)

    def ask(self, *ids: int) -> None:
        request = Request(0, 1, TOKENS * len(ids), list(ids))
        for _ in self.loop.run([request], lambda _: ALL):
            pass

    @property
    def batches(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._file.getvalue().splitlines()]

    def heard(self) -> list[str]:
        """The events in words, blocks by their labels."""
        labels = {self.hash(key): self.loop.table.name(key) for key in range(len(self.loop.table))}
        return [
            " ".join(
                [
                    *(event["medium"], event.get("locality", "-"), event["type"].removeprefix("Block").lower()),
                    *(labels[each] for each in event["block_hashes"]),
                ]
            )
            for batch in self.batches
            for event in batch["events"]
        ]

    def hash(self, key: int) -> int:
        return wire_hash(self.loop.table.digest(key))


def server(capacity: int, *tiers: TierSpec, **spec: Any) -> Topology:
    return Topology(primary=PrimarySpec(capacity), tiers=tiers, replay=ReplaySpec(**spec))


def test_a_step_that_had_events_is_one_line_counted_from_0() -> None:
    replay = Replay(server(9), lambda: 1.5)
    replay.ask(1)
    replay.ask(1)  # nothing happens
    replay.ask(2)
    first, second = replay.batches
    assert list(first) == ["seq", "ts", "events", "data_parallel_rank"]
    assert (first["seq"], first["ts"], first["data_parallel_rank"]) == (0, 1.5, 0)
    assert (second["seq"], replay.log.batches, replay.log.events) == (1, 2, 2)


def test_what_left_is_told_before_what_took_its_place() -> None:
    replay = Replay(server(2))
    replay.ask(1, 2)
    replay.ask(3, 4)
    assert replay.heard() == [
        "CPU - stored 1",
        "CPU - stored 2",
        "CPU - removed 2 1",
        "CPU - stored 3",
        "CPU - stored 4",
    ]


def test_a_promotion_is_a_removal_and_steps_later_a_block_stored_in_the_cpu_tier() -> None:
    replay = Replay(server(1, replace(NVME, medium=None, load_latency=3)))  # which tells nothing itself
    for block in (1, 2, 1):
        replay.ask(block)
    before = len(replay.batches) - 2
    assert [[event["type"] for event in batch["events"]] for batch in replay.batches[before:]] == [
        ["BlockRemoved"],
        ["BlockStored"],
    ]
    assert replay.heard()[-2:] == ["CPU - removed 2", "CPU - stored 1"]


def test_a_storage_tier_tells_what_it_stored_with_its_locality_one_that_declares_no_medium_nothing() -> None:
    replay = Replay(server(9, S3, PEER, NVME))
    replay.ask(1)
    replay.ask(2)
    assert replay.heard() == [
        "CPU - stored 1",
        *("CPU - stored 2", "STORAGE REMOTE stored 1", "STORAGE LOCAL stored 1"),
    ]


def test_the_same_id_behind_another_prefix_has_another_hash() -> None:
    replay = Replay(server(9))
    replay.ask(1, 2)
    replay.ask(5, 2)
    hashes = [each for batch in replay.batches for event in batch["events"] for each in event["block_hashes"]]
    assert len(set(hashes)) == 4
    assert all(0 <= each < 2**64 for each in hashes)


def still_resident(batches: Sequence[dict[str, Any]], medium: str, locality: str | None) -> set[int]:
    """The hashes that somebody who has heard all events holds for resident there."""
    resident: set[int] = set()
    for batch in batches:
        for event in batch["events"]:
            if (event["medium"], event.get("locality")) != (medium, locality):
                continue
            if event["type"] == "BlockStored":
                resident.update(event["block_hashes"])
            else:
                assert resident.issuperset(event["block_hashes"]), "nothing leaves that was not there"
                resident.difference_update(event["block_hashes"])
    return resident


PROMPTS = st.lists(
    st.builds(lambda first, count: list(range(first, first + count)), st.integers(0, 7), st.integers(0, 6)), max_size=14
)


@given(
    PROMPTS,
    st.builds(
        lambda capacity, policy, tiers, batch: Topology(
            primary=PrimarySpec(capacity, policy),
            tiers=tiers,
            replay=ReplaySpec(max_wait_steps=3, store_batch_blocks=batch),
        ),
        st.integers(0, 6),
        st.sampled_from(("lru", "arc")),
        tier_lists(),
        st.sampled_from((0, 0, 2)),
    ),
)
def test_whoever_follows_the_events_knows_what_the_cpu_tier_has_ready(
    prompts: list[list[int]], topology: Topology
) -> None:
    topology = replace(topology, tiers=tuple(replace(tier, medium=None) for tier in topology.tiers))
    replay = Replay(topology)
    for prompt in prompts:
        replay.ask(*prompt)
        primary = replay.manager.primary
        ready = {replay.hash(key) for key in primary.resident if primary.is_ready(key)}  # type: ignore[arg-type]
        assert still_resident(replay.batches, "CPU", None) == ready


CHAT = shipped_fixture("chat.jsonl")


def logged(topology: Topology) -> tuple[TraceRun, bytes]:
    """A run over the chat that comes with kvtier, and the bytes of its events."""
    file = io.BytesIO()
    with TraceSource(CHAT) as source:
        run = TraceRun([source], topology, events=True)
        run.listen(EventLog(file, run.manager.take_events, run.loop.table, run.arrival_seconds))
        run.run()
    return run, file.getvalue()


def resident(run: TraceRun) -> Iterator[tuple[str, str | None, set[int]]]:
    """Medium, locality and the hashes of what is in each tier that publishes."""
    table = run.loop.table
    yield "CPU", None, {wire_hash(table.digest(key)) for key in run.manager.primary.resident}  # type: ignore[arg-type]
    for tier in run.manager.tiers:
        if tier.medium is not None and tier.locality is not None:
            hashes = {wire_hash(table.digest(key)) for key in tier.blocks()}  # type: ignore[arg-type]
            yield tier.medium.value, tier.locality.value, hashes


def test_after_a_whole_trace_the_events_leave_what_the_tiers_hold() -> None:
    # Nothing leaves these storage tiers: of that they would tell nothing.
    run, data = logged(replace(BUILT_IN, primary=PrimarySpec(400), tiers=(NVME, S3)))
    batches = [json.loads(line) for line in data.splitlines()]
    assert run.manager.counters.evicted_by_promotions > 0
    assert [batch["seq"] for batch in batches] == list(range(len(batches)))
    assert [batch["ts"] for batch in batches] == sorted(batch["ts"] for batch in batches)
    for medium, locality, hashes in resident(run):
        assert still_resident(batches, medium, locality) == hashes


def test_the_same_trace_gives_the_same_bytes_and_the_same_figures_as_without() -> None:
    topology = replace(BUILT_IN, primary=PrimarySpec(400))
    run, data = logged(topology)
    assert logged(topology)[1] == data
    with TraceSource(CHAT) as source:
        assert TraceRun([source], topology).run() == run.figures()
