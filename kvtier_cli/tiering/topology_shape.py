"""A topology from plain values (as JSON, TOML or YAML give them): its fields, their types, and what they may be.

Finding and parsing the text is `topology_file.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.block_names import check_block_name
from kvtier_cli.tiering.filter_lint import WORDS, meant_value
from kvtier_cli.tiering.filter_model import LOCALITIES, MEDIA
from kvtier_cli.tiering.topology import (
    BACKENDS,
    POLICIES,
    RESERVED_NAMES,
    BlockSpec,
    PrimarySpec,
    ReplaySpec,
    TierSpec,
    Topology,
)
from kvtier_cli.units import LARGEST, parse_count, parse_rate, parse_size, parse_time
from kvtier_cli.wording import did_you_mean, nearest, one_of, shown

Step = str | int
Path = tuple[Step, ...]
Locate = Callable[[Sequence[Step]], tuple[int, int] | None]
"""Tells line and column (from 1) of the value at a path, where the text can say."""

VERSION: Final = 1
VLLM_KEYS: Final = frozenset({"kv_connector", "kv_connector_extra_config", "secondary_tiers", "cpu_bytes_to_use"})
TAILS: Final = ("keep", "drop")
IDENTITIES: Final = ("chain", "id")

_Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
_Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
_T = TypeVar("_T")


class _Block(Struct):
    tokens: _Positive | None = None
    bytes_per_token: _Positive | str | None = None


class _Primary(Struct):
    capacity: _Whole | str = 10_000
    policy: str = "lru"


class _Tier(Struct):
    name: str
    medium: str | None = None
    locality: str | None = None
    backend: str = "diskcache"
    capacity: _Whole | str | None = None
    load_latency: _Whole = 0
    store_latency: _Whole = 0
    lookup_retry: _Whole = 0
    request_level: bool = False
    fail_loads: list[Any] = field(default_factory=list)
    fail_stores: list[Any] = field(default_factory=list)
    offline: bool = False
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    seed: Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] = 0
    read_latency: str | None = None
    bandwidth: str | None = None
    about: str | None = None


class _Replay(Struct):
    max_wait_steps: _Whole = 16
    store_batch_blocks: _Whole = 0
    tail: str = "keep"
    identity: str = "chain"


class _File(Struct):
    version: int = VERSION
    block: _Block = field(default_factory=_Block)
    primary: _Primary = field(default_factory=_Primary)
    tiers: list[_Tier] = field(default_factory=list)
    replay: _Replay = field(default_factory=_Replay)


_SECTIONS: Final[Mapping[str, type[Struct]]] = {"block": _Block, "primary": _Primary, "replay": _Replay}

_EXPECTED: Final = {
    "version": "1",
    "tokens": "the tokens of a block, a number from 1",
    "bytes_per_token": 'bytes, as a number from 1 or as a size such as "128KiB"',
    "capacity": 'a number of blocks, or a size such as "8GiB"',
    "policy": one_of(POLICIES),
    "name": "a name in quotes",
    "medium": one_of(WORDS["medium"]),
    "locality": one_of(WORDS["locality"]),
    "backend": one_of(BACKENDS),
    "load_latency": "a number of steps from 0",
    "store_latency": "a number of steps from 0",
    "lookup_retry": "a number of lookups from 0",
    "request_level": "true or false",
    "fail_loads": "a list of blocks",
    "fail_stores": "a list of blocks",
    "offline": "true or false",
    "fail_rate": "a share from 0 to 1",
    "seed": "a whole number",
    "read_latency": 'a time such as "120us"',
    "bandwidth": 'a rate such as "3GB/s"',
    "about": "a text",
    "max_wait_steps": "a number of steps from 0",
    "store_batch_blocks": "a number of blocks, 0 for all in one batch",
    "tail": one_of(TAILS),
    "identity": one_of(IDENTITIES),
    "tiers": "a list of tiers",
    "block": "a table of fields",
    "primary": "a table of fields",
    "replay": "a table of fields",
}
"""What a field holds, in words; a step of a list (a tier) is a table too."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def topology_from_builtins(
    value: object, name: str, *, file: str | None = None, at: Path = (), locate: Locate | None = None
) -> Topology:
    """The topology that `value` (dicts, lists, strings, numbers) describes; `name` says in outputs where it is from.

    `file`, the path `at` which the value stands in it and `locate` serve the errors alone. Raises InputError for a
    field that is not known, a value that its field cannot hold, and for vLLM's own configuration.
    """
    return _Reader(value, file, at, locate).read(name)


def path_text(path: Path) -> str:
    """A path as messages write it: `tiers[1].capacity`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


class _Reader:
    """Reads one topology; knows where it stands, so that each error can say so."""

    def __init__(self, value: object, file: str | None, at: Path, locate: Locate | None) -> None:
        self.value, self.file, self.at, self.locate = value, file, at, locate

    def fail(self, path: Path, message: str, hint: str | None = None) -> NoReturn:
        """Raises the InputError for the value at `path`, counted from the topology."""
        line, column = (self.locate(self.at + path) if self.locate else None) or (None, None)
        where = path_text(self.at + path) or None
        raise InputError(message, file=self.file, line=line, column=column, path=where, hint=hint)

    def read(self, name: str) -> Topology:
        value = self.value
        if not isinstance(value, dict):
            self.fail((), f"expected a topology (block, primary, tiers, replay), found {shown(value)}")
        if not VLLM_KEYS.isdisjoint(value):
            self.fail(
                (),
                "this is vLLM's own configuration, expected a topology of kvtier's",
                hint="`kvtier topology import` makes one of it.",
            )
        self._check_keys((), value, _File)
        for section, struct in _SECTIONS.items():
            self._check_keys((section,), value.get(section), struct)
        tiers = value.get("tiers")
        for index, tier in enumerate(tiers if isinstance(tiers, list) else ()):
            self._check_keys(("tiers", index), tier, _Tier)
        try:
            parsed = msgspec.convert(value, _File)
        except msgspec.ValidationError as error:
            self._refuse(str(error))
        except UnicodeEncodeError as error:  # msgspec's own message could not be encoded
            self.fail((), f"{shown(error.object)} holds half a surrogate pair")
        if parsed.version != VERSION:
            self.fail(("version",), f"version {parsed.version} of a topology is not known, only {VERSION} is")
        block = BlockSpec(parsed.block.tokens, self._bytes_per_token(parsed.block.bytes_per_token))
        return Topology(
            block,
            self._primary(parsed.primary, block),
            self._tiers(parsed.tiers, block),
            self._replay(parsed.replay),
            name,
        )

    def _check_keys(self, path: Path, value: object, struct: type[Struct]) -> None:
        if not isinstance(value, dict):
            return  # the conversion says what is wrong
        known = struct.__struct_fields__
        for key in value:
            if key not in known:
                text = key if isinstance(key, str) else shown(key)
                near = nearest(text, known)
                hint = f'did you mean "{near}"?' if near else f"known are {', '.join(known)}"
                self.fail((*path, text), "unknown field", hint)

    def _refuse(self, message: str) -> NoReturn:
        """Says in words of ours what msgspec found: it names the path, and the value there is at hand."""
        reason, _, place = message.partition(" - at `")
        path: Path = tuple(int(index) if index else name for name, index in _STEP.findall(place.rstrip("`")))
        if reason.startswith("Object missing required field"):
            self.fail(path, "has no name", hint='each tier needs one, such as name = "nvme"')
        found: Any = self.value
        for step in path:
            found = found[step]
        last = path[-1] if path else ""
        expected = _EXPECTED.get(last, "a table of fields") if isinstance(last, str) else "a table of fields"
        self.fail(path, f"expected {expected}, found {shown(found)}")

    def _primary(self, primary: _Primary, block: BlockSpec) -> PrimarySpec:
        return PrimarySpec(
            self._capacity(("primary", "capacity"), primary.capacity, block),
            self._word(("primary", "policy"), primary.policy, POLICIES),
        )

    def _replay(self, replay: _Replay) -> ReplaySpec:
        return ReplaySpec(
            replay.max_wait_steps,
            replay.store_batch_blocks,
            self._word(("replay", "tail"), replay.tail, TAILS),
            self._word(("replay", "identity"), replay.identity, IDENTITIES),
        )

    def _tiers(self, tiers: Sequence[_Tier], block: BlockSpec) -> tuple[TierSpec, ...]:
        seen: dict[str, int] = {}
        for index, tier in enumerate(tiers):
            self._check_name(("tiers", index, "name"), tier.name, seen)
            seen[tier.name] = index
        return tuple(self._tier(("tiers", index), tier, block) for index, tier in enumerate(tiers))

    def _tier(self, path: Path, tier: _Tier, block: BlockSpec) -> TierSpec:
        capacity = tier.capacity
        self._check_text((*path, "about"), tier.about or "")
        return TierSpec(
            name=tier.name,
            medium=self._declared((*path, "medium"), tier.medium, MEDIA),
            locality=self._declared((*path, "locality"), tier.locality, LOCALITIES),
            backend=self._word((*path, "backend"), tier.backend, BACKENDS),
            capacity=None if capacity is None else self._capacity((*path, "capacity"), capacity, block),
            load_latency=tier.load_latency,
            store_latency=tier.store_latency,
            lookup_retry=tier.lookup_retry,
            request_level=tier.request_level,
            fail_loads=self._blocks((*path, "fail_loads"), tier.fail_loads),
            fail_stores=self._blocks((*path, "fail_stores"), tier.fail_stores),
            offline=tier.offline,
            fail_rate=tier.fail_rate,
            seed=tier.seed,
            read_latency=self._measure((*path, "read_latency"), tier.read_latency, parse_time),
            bandwidth=self._measure((*path, "bandwidth"), tier.bandwidth, parse_rate),
            about=tier.about,
        )

    def _check_name(self, path: Path, name: str, seen: Mapping[str, int]) -> None:
        if not name.strip():
            self.fail(path, "a tier's name may not be empty")
        self._check_text(path, name)
        if name in RESERVED_NAMES:
            self.fail(path, f'"{name}" is the primary\'s name, a secondary tier needs another')
        if name in seen:
            self.fail(path, f"{shown(name)} is the name of tiers[{seen[name]}] already")

    def _check_text(self, path: Path, text: str) -> None:
        # JSON can spell halves of a surrogate pair, which no file and no terminal can hold.
        if any("\ud800" <= char <= "\udfff" for char in text):
            self.fail(path, f"{shown(text)} holds half a surrogate pair")

    def _declared(self, path: Path, word: str | None, known: Mapping[str, _T]) -> _T | None:
        if word is None:
            return None
        if word.upper() not in known:
            key = str(path[-1])
            meant = meant_value(key, word)
            self.fail(
                path,
                f"unknown {key} {shown(word)}",
                f'did you mean "{meant}"?'
                if meant
                else f"known are {', '.join(WORDS[key])}; left out it is not declared",
            )
        return known[word.upper()]

    def _word(self, path: Path, word: str, known: Sequence[str]) -> str:
        if word not in known:
            self.fail(path, f"unknown {path[-1]} {shown(word)}", did_you_mean(word, known))
        return word

    def _blocks(self, path: Path, names: Sequence[object]) -> frozenset[str]:
        for index, name in enumerate(names):
            try:
                check_block_name(name)
            except InputError as error:
                self.fail((*path, index), error.message, error.hint)
        return frozenset(name for name in names if isinstance(name, str))

    def _measure(self, path: Path, text: str | None, parse: Callable[[str], _T]) -> _T | None:
        try:
            return None if text is None else parse(text)
        except InputError as error:
            self.fail(path, error.message, error.hint)

    def _bytes_per_token(self, value: int | str | None) -> int | None:
        path: Path = ("block", "bytes_per_token")
        size = self._measure(path, value, parse_size) if isinstance(value, str) else value
        if size == 0:
            self.fail(path, f"expected {_EXPECTED['bytes_per_token']}, found {shown(value)}")
        return size

    def _capacity(self, path: Path, value: int | str, block: BlockSpec) -> int:
        """Blocks: a number, a count such as `10k`, or a size divided by that of a block."""
        if isinstance(value, int):
            return value
        try:
            if value.rstrip()[-1:] not in ("b", "B"):
                return parse_count(value)
            size = parse_size(value)
        except InputError as error:
            self.fail(path, f"expected {_EXPECTED['capacity']}, found {shown(value)}", error.hint)
        missing = [f"block.{key}" for key in ("tokens", "bytes_per_token") if getattr(block, key) is None]
        if block.tokens is None or block.bytes_per_token is None:
            self.fail(
                path,
                f"blocks = {shown(value)} / (block.tokens x block.bytes_per_token), but {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not given",
                hint="Give it under [block], or the capacity in blocks.",
            )
        one = block.tokens * block.bytes_per_token
        if 0 < size < one:
            self.fail(
                path,
                f"{shown(value)} ({size:,} bytes) is less than one block: "
                f"{block.tokens:,} tokens x {block.bytes_per_token:,} bytes = {one:,} bytes",
            )
        return size // one
