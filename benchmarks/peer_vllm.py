"""The peer of `kvtier replay`: the same replay loop over vLLM 0.33.0's own TieringOffloadingManager, timed.

Not part of the product and never imported by it. Run it with the interpreter of a virtual environment that has the
wheel of vLLM 0.33.0, numpy, msgspec, prometheus_client and typing_extensions (see README.md; no torch, no GPU):

    PYTHON peer_vllm.py TRACE.jsonl TOPOLOGY [--run NAME] [--kv-load-tiers JSON] [--check]

TRACE has Mooncake's shape (`timestamp`, `input_length`, `hash_ids` on each line). TOPOLOGY is JSON or TOML with
capacities in blocks, or a recording of whole-trace figures (`runs`), of which `--run` picks one. One JSON line goes to
stdout: `refs_per_second` (block references of the trace / `seconds`), `seconds` (the loop alone: reading the trace and
hashing its blocks are not in it), `figures`, and what was run. `--check` compares the figures with the recording's
and exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import sys
import time
import tomllib
import types
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

VLLM_VERSION = "0.33.0"
DEFAULT_BLOCK_TOKENS = 16
DEFAULT_MAX_WAIT_STEPS = 16
OFFLOAD = "vllm.v1.kv_offload"

# Packages of vLLM whose own __init__ pulls in torch and most of vLLM: only their place on disk is needed.
BARE_PACKAGES = (
    "vllm",
    "vllm.utils",
    "vllm.distributed",
    "vllm.distributed.kv_transfer",
    "vllm.distributed.kv_transfer.kv_connector.v1",
)
# Modules that the manager's files name for annotations, logging or hardware, and never use in a decision.
STAND_INS: dict[str, dict[str, Any]] = {
    "torch": {"Tensor": object},
    "vllm.logger": {"init_logger": logging.getLogger},
    "vllm.config": {"VllmConfig": object, "KVTransferConfig": object},
    "vllm.distributed.kv_transfer.kv_connector.factory": {"KVConnectorFactory": object},
    "vllm.v1.kv_offload.cpu.shared_offload_region": {"SharedOffloadRegion": object},
}


def load_vllm() -> types.SimpleNamespace:
    """Import the manager from the installed wheel: its own files unchanged, stand-ins for what they merely name.

    Raises SystemExit where vLLM is absent or of another version (its decisions change between versions).
    """
    try:
        version = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"{sys.executable} has no vLLM: pip install --no-deps vllm=={VLLM_VERSION}")
    if version != VLLM_VERSION:
        sys.exit(f"{sys.executable} has vLLM {version}, the peer is {VLLM_VERSION}")
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{sys.executable} knows vLLM {version}, but its files are not there")
    root = Path(spec.submodule_search_locations[0])
    for name in BARE_PACKAGES:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    for name, members in STAND_INS.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module
    parts = [importlib.import_module(f"{OFFLOAD}.{part}") for part in ("base", "tiering.base", "tiering.manager")]
    names: dict[str, Any] = {}
    for part in parts:
        names.update({name: value for name, value in vars(part).items() if not name.startswith("_")})
    return types.SimpleNamespace(**names)


class Region:
    """Stands for the shared memory of the CPU tier: the manager asks it for the shape of a row and nothing more."""

    def __init__(self, blocks: int) -> None:
        self._view = memoryview(bytearray(max(blocks, 1))).cast("B", shape=[max(blocks, 1), 1])

    def create_kv_memoryview(self) -> memoryview:
        """The rows, one byte each."""
        return self._view

    def cleanup(self) -> None:
        """Nothing to release."""


def tier_classes(v: types.SimpleNamespace) -> dict[str | None, type]:
    """vLLM's secondary tier interface filled in by an LRU of keys; one class a medium, as vLLM has it per class.

    A job submitted at step count c with latency L is due when the count reaches c + L, and takes effect when a poll
    reports it. The first `lookup_retry` lookups of a key answer RETRY, until no request that asked for it is left.
    """
    hit, miss, retry = v.LookupResult.HIT, v.LookupResult.MISS, v.LookupResult.RETRY

    class MemoryTier(v.SecondaryTierManager):  # type: ignore[name-defined, misc]
        """A secondary tier that keeps keys and no bytes, and counts what it is asked."""

        def __init__(self, view: memoryview, options: dict[str, Any]) -> None:
            super().__init__(None, view, options["name"])
            locality = options.get("locality")
            self.locality = v.Locality(locality.upper()) if locality else None
            self.capacity: int | None = options.get("capacity")
            self.load_latency: int = options.get("load_latency", 0)
            self.store_latency: int = options.get("store_latency", 0)
            self.retries: int = options.get("lookup_retry", 0)
            level = v.OffloadPolicy.REQUEST_LEVEL if options.get("request_level") else v.OffloadPolicy.CHUNK_LEVEL
            self._context = v.RequestOffloadingContext(policy=level)
            self.keys: OrderedDict[bytes, None] = OrderedDict()
            self.count = 0
            self.running: list[tuple[int, Any]] = []
            self.asked_times: dict[bytes, int] = {}
            self.askers: dict[bytes, int] = {}
            self.asked_by: dict[str, set[bytes]] = {}
            self.asked = self.hits = self.promoted = 0

        def lookup(self, key: bytes, req_context: Any) -> Any:
            """HIT, MISS, or RETRY while the (pretended) asynchronous check runs."""
            self.asked += 1
            if self.retries:
                mine = self.asked_by.setdefault(req_context.req_id, set())
                if key not in mine:
                    mine.add(key)
                    self.askers[key] = self.askers.get(key, 0) + 1
                times = self.asked_times.get(key, 0)
                if times < self.retries:
                    self.asked_times[key] = times + 1
                    return retry
            if key in self.keys:
                self.hits += 1
                return hit
            return miss

        def submit_store(self, job_metadata: Any) -> None:
            """Queue a cascade."""
            self.running.append((self.count + self.store_latency, job_metadata))

        def submit_load(self, job_metadata: Any) -> None:
            """Queue a promotion."""
            self.promoted += len(job_metadata.keys)
            self.running.append((self.count + self.load_latency, job_metadata))

        def get_finished_jobs(self) -> list[Any]:
            """The due jobs in the order of submission; their effects happen here."""
            if not self.running:
                return []
            due = [job for at, job in self.running if at <= self.count]
            self.running = [(at, job) for at, job in self.running if at > self.count]
            return [self._load(job) if job.is_promotion else self._store(job) for job in due]

        def _store(self, job: Any) -> Any:
            keys, capacity = self.keys, self.capacity
            for key in job.keys:
                if key in keys:
                    keys.move_to_end(key)
                elif capacity != 0:
                    if capacity is not None and len(keys) >= capacity:
                        keys.popitem(last=False)
                    keys[key] = None
            return v.JobResult(job_id=job.job_id, success=True)

        def _load(self, job: Any) -> Any:
            good = [key for key in job.keys if key in self.keys]
            for key in good:
                self.keys.move_to_end(key)
            whole = len(good) == len(job.keys)
            return v.JobResult(job_id=job.job_id, success=whole, successful_keys=None if whole else good)

        def touch(self, keys: Iterable[bytes], req_context: Any) -> None:
            """Keys last to first, those resident become the most recent."""
            for key in reversed(list(keys)):
                if key in self.keys:
                    self.keys.move_to_end(key)

        def on_new_request(self, req_context: Any) -> Any:
            """This tier's wish: blocks as they come, or all of a request's."""
            return self._context

        def on_request_finished(self, req_context: Any) -> None:
            """Forget the retries of keys that nobody else asked for."""
            for key in self.asked_by.pop(req_context.req_id, ()):
                self.askers[key] -= 1
                if not self.askers[key]:
                    del self.askers[key], self.asked_times[key]

        def on_schedule_end(self, context: Any) -> None:
            """A step has passed."""
            self.count += 1

        def drain_jobs(self) -> None:
            """Make every running job due at once."""
            self.running = [(self.count, job) for _, job in self.running]

    class CpuTier(MemoryTier):
        medium = v.Medium.CPU

    class StorageTier(MemoryTier):
        medium = v.Medium.STORAGE

    return {None: MemoryTier, "cpu": CpuTier, "storage": StorageTier}


def check_topology(topology: dict[str, Any]) -> None:
    """Leave (with one line) where the topology asks for what this peer does not have: sizes in bytes, faults."""
    parts = [("primary", topology["primary"]), *((tier["name"], tier) for tier in topology.get("tiers", []))]
    for name, options in parts:
        capacity = options.get("capacity")
        if isinstance(capacity, str):
            sys.exit(f"{name}: capacity {capacity!r}: the peer takes capacities in blocks only")
        for fault in ("fail_loads", "fail_stores", "offline", "fail_rate"):
            if options.get(fault):
                sys.exit(f"{name}: the peer has no {fault}")


def read_trace(path: Path, tokens: int, keep_tail: bool) -> list[list[bytes]]:
    """The requests in order of arrival, each the vLLM keys of its blocks: a chained digest and the group, 0.

    A last, partly filled block counts only with `keep_tail`.
    """
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    rows.sort(key=lambda row: row.get("timestamp", 0))
    names: dict[tuple[bytes, str], bytes] = {}
    requests = []
    for row in rows:
        ids = row["hash_ids"]
        if not keep_tail:
            ids = ids[: row["input_length"] // tokens]
        parent, keys = b"", []
        for block in ids:
            link = (parent, str(block))
            key = names.get(link)
            if key is None:
                digest = hashlib.sha256(parent + b"\0" + link[1].encode()).digest()
                key = names[link] = digest + bytes(4)
            parent = key
            keys.append(key)
        requests.append(keys)
    return requests


def parse_filter(v: types.SimpleNamespace, raw: list[dict[str, str]] | None) -> Any:
    """A TierFilter for matchers of known words. An unknown word drops its entry; with none left all tiers take part."""
    if raw is None:
        return v.TierFilter.ALL
    matchers = []
    for entry in raw:
        try:
            medium = v.Medium(entry["medium"].upper()) if "medium" in entry else None
            locality = v.Locality(entry["locality"].upper()) if "locality" in entry else None
        except ValueError:
            continue
        matchers.append(v.TierMatcher(medium=medium, locality=locality))
    return v.TierFilter(matchers=tuple(matchers)) if matchers or not raw else v.TierFilter.ALL


def replay(
    v: types.SimpleNamespace, requests: list[list[bytes]], topology: dict[str, Any], load_filter: Any
) -> tuple[float, dict[str, Any]]:
    """Run the requests one after another; the seconds that took, and the figures under the names of `--json`."""
    primary_options, options = topology["primary"], topology.get("replay", {})
    tokens = topology.get("block", {}).get("tokens", DEFAULT_BLOCK_TOKENS)
    max_waits, batch = options.get("max_wait_steps", DEFAULT_MAX_WAIT_STEPS), options.get("store_batch_blocks", 0)
    capacity = primary_options["capacity"]
    primary = v.CPUPrimaryTierOffloadingManager(
        num_chunks=capacity, mmap_region=Region(capacity), cache_policy=primary_options.get("policy", "lru")
    )
    classes = tier_classes(v)
    tiers = [
        classes[tier["medium"].lower() if tier.get("medium") else None](primary.get_kv_memoryview(), tier)
        for tier in topology.get("tiers", [])
    ]
    manager = v.TieringOffloadingManager(primary, list(tiers))
    step = v.ScheduleEndContext(new_req_ids=(), preempted_req_ids=())
    hit, miss = v.LookupResult.HIT, v.LookupResult.MISS
    evicted_by_promotions = denied = 0
    prepare_write = primary.prepare_write

    def counting_prepare_write(keys: list[bytes], context: Any) -> Any:
        """A promotion asks for its slot: the one place where a denial and its evictions can be seen from outside."""
        nonlocal evicted_by_promotions, denied
        output = prepare_write(keys, context)
        if output is None:
            denied += 1
        else:
            evicted_by_promotions += len(output.evicted_keys)
        return output

    primary.prepare_write = counting_prepare_write
    lookups = steps = wait_steps = gave_up = loaded = stored = refused = evicted = 0
    sources = dict.fromkeys(("host", "disk", "external_unspecified"), 0)
    start = time.perf_counter()
    for number, keys in enumerate(requests):
        context = v.ReqContext(req_id=str(number), load_tier_filter=load_filter)
        for index, key in enumerate(keys, 1):
            context.set_offload_key_position(key, index * tokens)
        manager.on_new_request(context)
        waits = 0
        while True:
            wait = False
            for key in keys:
                lookups += 1
                result = manager.lookup(key, context)
                if result is miss:
                    break
                if result is not hit:
                    wait = True
            if not wait:
                break
            if waits == max_waits:
                gave_up += 1
                break
            waits += 1
            manager.on_schedule_end(step)
        wait_steps += waits
        steps += waits
        ready = 0
        while ready < len(keys) and primary.lookup(keys[ready], context) is hit:
            ready += 1
        if ready:
            head = keys[:ready]
            for key in head:
                sources[manager.get_load_source(key, context).value] += 1
            manager.prepare_load(head, context)
            manager.complete_load(head, context)
            loaded += ready
        for at in range(ready, len(keys), batch or max(len(keys), 1)):
            if at > ready:
                manager.on_schedule_end(step)
                steps += 1
            output = manager.prepare_store(keys[at : at + batch] if batch else keys[at:], context)
            if output is None:
                refused += 1
            else:
                evicted += len(output.evicted_keys)
                if output.keys_to_store:
                    manager.complete_store(output.keys_to_store, context)
                    stored += len(output.keys_to_store)
        manager.on_request_finished(context)
        manager.on_schedule_end(step)
        steps += 1
    seconds = time.perf_counter() - start
    return seconds, {
        "requests": len(requests),
        "blocks": sum(map(len, requests)),
        "lookups": lookups,
        "steps": steps,
        "wait_steps": wait_steps,
        "gave_up": gave_up,
        "blocks_loaded": loaded,
        "loaded_by_source": sources,
        "blocks_stored": stored,
        "stores_refused": refused,
        "blocks_evicted_by_stores": evicted,
        "blocks_evicted_by_promotions": evicted_by_promotions,
        "promotions_started": sum(tier.promoted for tier in tiers),
        "promotions_denied": denied,
        "promoted_by_tier": {tier.tier_type: tier.promoted for tier in tiers},
        "asked_by_tier": {tier.tier_type: tier.asked for tier in tiers},
        "hits_by_tier": {tier.tier_type: tier.hits for tier in tiers},
        "resident": {
            "primary": capacity - primary._get_num_free_chunks(),
            **{tier.tier_type: len(tier.keys) for tier in tiers},
        },
    }


def main() -> int:
    """Read the options, run once, print one JSON line."""
    parser = argparse.ArgumentParser(description="Replay a trace through vLLM 0.33.0's tiering manager, timed.")
    parser.add_argument("trace", type=Path)
    parser.add_argument("topology", type=Path)
    parser.add_argument("--run", default="default", help="which run of a recording (default: default)")
    parser.add_argument("--kv-load-tiers", type=json.loads, help="a filter for every request, as JSON")
    parser.add_argument("--check", action="store_true", help="compare with the recording's figures")
    options = parser.parse_args()

    text = options.topology.read_text()
    document = tomllib.loads(text) if options.topology.suffix == ".toml" else json.loads(text)
    recorded = document["runs"][options.run] if "runs" in document else None
    topology = recorded["topology"] if recorded else document
    raw = options.kv_load_tiers
    if raw is None and recorded:
        raw = recorded.get("kv_load_tiers")

    check_topology(topology)
    v = load_vllm()
    tokens = topology.get("block", {}).get("tokens", DEFAULT_BLOCK_TOKENS)
    requests = read_trace(options.trace, tokens, topology.get("replay", {}).get("tail", "keep") == "keep")
    seconds, figures = replay(v, requests, topology, parse_filter(v, raw))
    result = {
        "peer": f"vllm {VLLM_VERSION}",
        "run": options.run if recorded else options.topology.name,
        "refs_per_second": round(figures["blocks"] / seconds) if seconds else None,
        "seconds": round(seconds, 3),
        "figures": figures,
    }
    wrong = {}
    if options.check:
        if recorded is None:
            sys.exit(f"{options.topology} holds no recorded figures to check against")
        wrong = {name: want for name, want in recorded["figures"].items() if figures.get(name) != want}
        result["differs"] = wrong
    print(json.dumps(result))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:  # an unreadable or malformed input
        sys.exit(f"{type(error).__name__}: {error}")
