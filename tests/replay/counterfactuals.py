"""What would have been, by forks of the process in the midst of a replay: no state is copied by hand, none is shared.

`python -m tests.replay.counterfactuals TASK`, a JSON object, prints another. It runs in a process of its own: one that
has threads must not fork.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from kvtier_cli.replay.outcomes import Outcome, find_stop
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import ALL, parse_tier_filter
from kvtier_cli.tiering.model import BlockKey, LookupResult
from kvtier_cli.tiering.topology_shape import topology_from_builtins
from kvtier_cli.traces.source import TraceSource


def in_a_fork(answer: Callable[[], int]) -> int:
    """What `answer` comes to in a copy of this process, which then ends."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, str(int(answer())).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert said, "the fork failed"
    return int(said)


class FilteredBlocks:
    """At every `stride`-th filtered block: does the tier that the filter skipped hit, if it alone is admitted too?"""

    def __init__(self, run: TraceRun, stride: int, limit: int) -> None:
        self.run, self.stride, self.limit = run, stride, limit
        self.seen = self.checked = 0
        self.wrong: list[str] = []
        run.loop.watcher = self

    def last_pass(self, req_id: int, keys: Sequence[BlockKey], loaded: int, gave_up: bool, first_new: int) -> None:
        manager = self.run.manager
        stop = find_stop(manager, manager.requests[req_id], keys, loaded, gave_up, self.run.history)
        if stop is None or stop.outcome is not Outcome.FILTERED:
            return
        self.seen += 1
        if self.seen % self.stride == 0 and self.checked < self.limit:
            self.checked += 1
            assert stop.tier is not None
            tier = stop.tier
            if not in_a_fork(lambda: self.hits(req_id, keys[loaded], tier)):
                self.wrong.append(f"r{req_id} block {loaded}")

    def hits(self, req_id: int, key: BlockKey, tier: int) -> bool:
        manager = self.run.manager
        request = manager.requests[req_id]
        request.scan = [(index, each, admitted or index == tier) for index, each, admitted in request.scan]
        for _ in range(16):
            answer = manager.lookup(req_id, key)
            if answer is not LookupResult.RETRY:
                break
            manager.on_schedule_end()
        if answer is LookupResult.HIT_PENDING:
            return request.promoted.get(key) == tier
        return request.denied.get(key) == tier


def served_without(run: TraceRun, indices: Sequence[int]) -> dict[str, int]:
    """How many blocks each of these requests is served under no filter, after the same history."""
    served = {}
    requests = run.requests()
    for request in requests:
        keys = run.loop.keys(request)
        if request.index in indices:
            served[str(request.index)] = in_a_fork(lambda: run.loop.replay(keys, ALL).loaded)  # noqa: B023 - at once
        run.loop.replay(keys, run.filter_of(request))
    return served


def main(task: dict[str, Any]) -> dict[str, Any]:
    topology = topology_from_builtins(task["topology"], "task")
    with TraceSource(task["trace"]) as source:
        run = TraceRun([source], topology, parse_tier_filter(task["kv_load_tiers"]).filter)
        if "indices" in task:
            return served_without(run, task["indices"])
        blocks = FilteredBlocks(run, task["stride"], task["limit"])
        for _ in run.steps():
            if blocks.checked == blocks.limit:
                break
    return {"checked": blocks.checked, "wrong": blocks.wrong}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
