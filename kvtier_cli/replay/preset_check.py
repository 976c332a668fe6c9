"""Whether the state that a `preset` op writes down is one that its manager can be put into. Changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from kvtier_cli.replay.op_shape import check_block, check_blocks, check_fields
from kvtier_cli.replay.preset import policy_state
from kvtier_cli.replay.source_text import SourceText
from kvtier_cli.tiering.topology import PRIMARY_NAME, TierSpec, Topology
from kvtier_cli.tiering.topology_shape import Path
from kvtier_cli.units import LARGEST
from kvtier_cli.wording import did_you_mean, shown

LARGEST_DRAWS: Final = 1_000_000_000
"""Each is drawn again when the state is restored."""

_Count = Annotated[int, Meta(ge=0, le=LARGEST)]
_Draws = Annotated[int, Meta(ge=0, le=LARGEST_DRAWS)]
_Blocks = list[Any]  # names, checked by `check_blocks`


class _Lru(Struct):
    name: str = "lru"
    order: _Blocks = field(default_factory=list)


class _Arc(Struct):
    name: str = "arc"
    t1: _Blocks = field(default_factory=list)
    t2: _Blocks = field(default_factory=list)
    b1: _Blocks = field(default_factory=list)
    b2: _Blocks = field(default_factory=list)
    target: Annotated[float, Meta(ge=0)] = 0.0


class _Queued(Struct):
    tier: str
    req: str
    blocks: _Blocks


class _Job(Struct):
    tier: str
    kind: Literal["promotion", "cascade"]
    req: str
    blocks: _Blocks
    job: _Count | None = None
    due: _Count | None = None


class _Waiting(Struct):
    req: str
    parked: dict[str, _Blocks]


class _Retries(Struct):
    lookups: dict[str, _Count] = field(default_factory=dict)
    asked_by: dict[str, _Blocks] = field(default_factory=dict)


class _Lost(Struct):
    block: str
    reason: Literal["evicted", "refused"]
    by: str
    tier: str | None = None


class _State(Struct):
    blocks: dict[str, _Count | None] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    free: _Count | None = None
    evictable: _Count | None = None
    tiers: dict[str, _Blocks] = field(default_factory=dict)
    jobs: list[_Job] = field(default_factory=list)
    queued: list[_Queued] = field(default_factory=list)
    pending_work: bool | None = None
    live: list[str] = field(default_factory=list)
    held: bool = False
    waiting: list[_Waiting] = field(default_factory=list)
    retries: dict[str, _Retries] = field(default_factory=dict)
    draws: dict[str, _Draws] = field(default_factory=dict)
    lost: list[_Lost] = field(default_factory=list)


_T = TypeVar("_T")

_ENTRIES: Final[Mapping[str, type[Struct]]] = {"jobs": _Job, "queued": _Queued, "waiting": _Waiting, "lost": _Lost}

_POLICIES: Final[Mapping[str, type[Struct]]] = {"lru": _Lru, "arc": _Arc}
_EXPECTED: Final = {
    "blocks": "an object: block → its pins, or null while pending",
    "policy": "an object, as an outcome's state has it",
    "tiers": "an object: secondary tier → its blocks",
    "jobs": "a list of running jobs",
    "queued": "a list of queued promotions",
    "live": "a list",
    "name": "the policy's name",
    "kind": "promotion or cascade",
    "target": "a number from 0",
    "pending_work": "true or false",
    "tier": "a tier's name",
    "req": "a request's id",
    "held": "true or false",
    "waiting": "a list of finished requests that wait for parked cascades",
    "parked": "an object: request-level tier → blocks",
    "retries": "an object: tier → what it remembers of lookups",
    "lookups": "an object: block → how often it was looked up",
    "asked_by": "an object: request → the blocks that it asked for",
    "draws": "an object: tier → a whole number from 0 to a billion",
    "lost": "a list of blocks that are nowhere, and why",
    "reason": "evicted or refused",
    "by": "a request's id",
    "block": "a block's name",
    **dict.fromkeys(("free", "evictable", "job", "due"), "a whole number from 0"),
}
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def check_state(state: Mapping[str, Any], path: Path, topology: Topology, source: SourceText) -> None:
    """Raises InputError for what no manager with this topology could be in, and for what a preset cannot restore."""
    _Check(state, path, topology, source).check()


class _Check:
    def __init__(self, state: Mapping[str, Any], path: Path, topology: Topology, source: SourceText) -> None:
        self.raw, self.path, self.topology, self.source = state, path, topology, source

    def fail(self, path: Path, message: str, hint: str | None = None) -> NoReturn:
        self.source.fail((*self.path, *path), message, hint)

    def check(self) -> None:
        state = self._typed()
        waiting = {entry.req for entry in state.waiting}
        unfinished = next((req_id for req_id in state.live if req_id not in waiting), None)
        if unfinished is not None:
            self.fail(
                ("live",),
                f"request {shown(unfinished)} is live, and a preset restores no live requests",
                "save the state where none is, or write the ops that make them",
            )
        self._check_waiting(state)
        self._check_remembered(state)
        for name, blocks in state.tiers.items():
            self._check_tier(name, blocks)
        for index, job in enumerate(state.jobs):
            self._check_move(job.tier, job.blocks, ("jobs", index), repeats=job.kind == "cascade")
        for index, queued in enumerate(state.queued):
            self._check_move(queued.tier, queued.blocks, ("queued", index))
        resident = self._check_policy()
        self._check_primary(state, resident)

    def _check_waiting(self, state: _State) -> None:
        """Finished requests wait for blocks that they offered while these were pending."""
        seen: set[str] = set()
        for index, entry in enumerate(state.waiting):
            if entry.req in seen:
                self.fail(("waiting", index, "req"), f"request {shown(entry.req)} waits twice")
            seen.add(entry.req)
            if not any(entry.parked.values()):
                self.fail(("waiting", index), "waits for nothing: no block of it is parked")
            for name, blocks in entry.parked.items():
                path = ("waiting", index, "parked", name)
                self._check_tier_name(name, path)
                check_blocks(blocks, (*self.path, *path), self.source)
                if not self._spec(name).request_level:
                    self.fail(path, f"tier {shown(name)} is not request_level: nothing is parked for it")

    def _check_remembered(self, state: _State) -> None:
        waiting = {entry.req for entry in state.waiting}
        for name, retries in state.retries.items():
            self._check_tier_name(name, ("retries", name))
            for req_id, blocks in retries.asked_by.items():
                path = ("retries", name, "asked_by", req_id)
                check_blocks(blocks, (*self.path, *path), self.source)
                if req_id not in waiting:
                    self.fail(path, f"request {shown(req_id)} is not waiting, and a tier forgets the others")
            asked = {block for blocks in retries.asked_by.values() for block in blocks}
            stray = next((block for block in retries.lookups if block not in asked), None)
            if stray is not None:
                self.fail(("retries", name, "lookups", stray), "no request in asked_by has asked for it")
        for name in state.draws:
            self._check_tier_name(name, ("draws", name))
            if not self._spec(name).fail_rate:
                self.fail(("draws", name), f"tier {shown(name)} has no fail_rate")
        for index, loss in enumerate(state.lost):
            check_block(loss.block, (*self.path, "lost", index, "block"), self.source)
            if loss.reason == "evicted" and loss.tier is None:
                self.fail(("lost", index), 'has no "tier"', "expected the tier that it was evicted from")
            if loss.tier is not None and loss.tier != PRIMARY_NAME:
                self._check_tier_name(loss.tier, ("lost", index, "tier"))

    def _spec(self, name: str) -> TierSpec:
        return next(tier for tier in self.topology.tiers if tier.name == name)

    def _typed(self) -> _State:
        policy = _POLICIES[self.topology.primary.policy]
        check_fields(self.raw, _State.__struct_fields__, self.path, self.source)
        for name, struct in _ENTRIES.items():
            entries = self.raw.get(name)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict):
                    check_fields(entry, struct.__struct_fields__, (*self.path, name, index), self.source)
        blocks = self.raw.get("blocks")
        for key in blocks if isinstance(blocks, dict) else ():
            check_block(key, (*self.path, "blocks", key if isinstance(key, str) else shown(key)), self.source)
        state = self._converted(self.raw, _State, ())
        check_fields(state.policy, policy.__struct_fields__, (*self.path, "policy"), self.source)
        self._converted(state.policy, policy, ("policy",))
        return state

    def _converted(self, value: Any, struct: type[_T], at: Path) -> _T:
        try:
            return msgspec.convert(value, struct)
        except msgspec.ValidationError as error:
            reason, _, place = str(error).partition(" - at `")
            # msgspec writes [...] for a key of a map, which it does not name.
            steps = _STEP.findall(place.rstrip("`"))
            path: Path = tuple(int(index) if index else name for name, index in steps if index != "...")
            if reason.startswith("Object missing required field"):
                name = reason.split("`")[1]
                self.fail((*at, *path), f'has no "{name}"', f"expected {_expected((*path, name))}")
            found: Any = value
            for step in path:
                found = found[step]
            self.fail((*at, *path), f"expected {_expected(path)}, found {shown(found)}")

    def _check_move(self, tier: str, blocks: Sequence[object], path: Path, *, repeats: bool = False) -> None:
        self._check_tier_name(tier, (*path, "tier"))
        if repeats:  # a block parked by several calls is listed, and pinned, by each
            check_blocks(blocks, (*self.path, *path, "blocks"), self.source)
        else:
            self._check_distinct(blocks, (*path, "blocks"))

    def _check_tier_name(self, name: str, path: Path) -> None:
        known = [tier.name for tier in self.topology.tiers]
        if name not in known:
            hint = did_you_mean(name, known) if known else "the topology has no secondary tiers"
            self.fail(path, f"unknown tier {shown(name)}", hint)

    def _check_tier(self, name: str, blocks: Sequence[object]) -> None:
        path = ("tiers", name)
        self._check_tier_name(name, path)
        self._check_distinct(blocks, path)
        capacity = next(tier.capacity for tier in self.topology.tiers if tier.name == name)
        if capacity is not None and len(blocks) > capacity:
            self.fail(path, f"holds {len(blocks):,} blocks, and the tier has room for {capacity:,}")

    def _check_distinct(self, blocks: Sequence[object], path: Path) -> None:
        check_blocks(blocks, (*self.path, *path), self.source)
        twice = next((block for block, count in Counter(blocks).items() if count > 1), None)
        if twice is not None:
            self.fail(path, f"block {shown(twice)} stands in it twice")

    def _check_policy(self) -> list[str]:
        """The blocks of the primary, as the policy lists them."""
        spec = self.topology.primary
        policy = policy_state(self.raw, spec.policy) or {}
        name = policy.get("name", spec.policy)
        if name != spec.policy:
            self.fail(("policy", "name"), f"the primary of this topology is {spec.policy}, not {name}")
        ghosts = [policy.get(key, []) for key in ("b1", "b2")]
        resident = [*policy.get("order", ()), *policy.get("t1", ()), *policy.get("t2", ())]
        self._check_distinct([*resident, *ghosts[0], *ghosts[1]], ("policy",))
        if len(resident) > spec.capacity or max(map(len, ghosts)) > spec.capacity:
            self.fail(("policy",), f"holds more blocks than the primary has slots: {spec.capacity:,}")
        if policy.get("target", 0) > spec.capacity:
            self.fail(("policy", "target"), f"is more than the primary has slots: {spec.capacity:,}")
        return resident

    def _check_primary(self, state: _State, resident: Sequence[str]) -> None:
        """Whether the blocks are those of the policy, and each pin and pending write is accounted for by a job."""
        pins = Counter(key for job in state.jobs if job.kind == "cascade" for key in job.blocks)
        loading = Counter(key for job in state.jobs if job.kind == "promotion" for key in job.blocks)
        loading.update(key for queued in state.queued for key in queued.blocks)
        stray = next((key for key in (*pins, *loading) if key not in resident), None)
        if stray is not None:
            self.fail(("jobs",), f"block {shown(stray)} is moved by a job and is not in the primary")
        for key in resident:
            expected = None if key in loading else pins[key]
            if loading[key] > 1 or (key in loading and pins[key]):
                self.fail(("jobs",), f"block {shown(key)} cannot be moved by all of these jobs at a time")
            if "blocks" not in self.raw:
                if expected is None:
                    self.fail((), f'block {shown(key)} is promoted, so "blocks" has to say that it is pending')
                continue
            if key not in state.blocks:
                self.fail(("blocks",), f"has no {shown(key)}, which the policy lists")
            found = state.blocks[key]
            if found != expected:
                self._fail_pins(key, found, expected)
        extra = next((key for key in state.blocks if key not in resident), None)
        if extra is not None:
            self.fail(("policy",), f"does not list {shown(extra)}, which is in blocks")
        self._check_sums(state, resident, busy=len(loading) + len(pins))

    def _fail_pins(self, key: str, found: int | None, expected: int | None) -> None:
        where: Path = ("blocks", key)
        if found is None:
            self.fail(where, "is pending, and no promotion in jobs or queued writes it", "a preset restores no stores")
        if expected is None:
            self.fail(where, "is being promoted: expected null (pending)")
        self.fail(
            where,
            f"has {found} pin{'' if found == 1 else 's'}, and the cascades in jobs hold {expected}",
            "a preset restores no loads under way",
        )

    def _check_sums(self, state: _State, resident: Sequence[str], *, busy: int) -> None:
        known = "blocks" in self.raw or "policy" in self.raw
        sums = {
            "free": self.topology.primary.capacity - len(resident),
            "evictable": len(resident) - busy,
            "pending_work": bool(state.jobs or state.waiting),
        }
        for name, value in sums.items():
            stated = getattr(state, name)
            if stated is not None and stated != value and known:
                self.fail((name,), f"is {shown(stated)}, and the rest of the state makes it {shown(value)}")


def _expected(path: Path) -> str:
    """What the field at `path` of a state holds, in words."""
    last = next((step for step in reversed(path) if isinstance(step, str)), "")
    if len(path) > 1 and last == "blocks":  # of a job
        return "a list of blocks"
    return _EXPECTED.get(last, "a list of blocks")
