"""Makes realistic traces of any size from a seed: sessions arrive, ask, pause and ask again. Writes nothing.

The stream has no end, takes no more memory than the live sessions and the shared texts, and is the same for a seed on
every machine and Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, islice
from typing import Final, Literal

from kvtier_cli.errors import InputError
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.options import BLOCK_TOKENS, MAX_TOKENS
from kvtier_cli.traces.synth_draws import Draws, Popularity
from kvtier_cli.traces.synth_kinds import KIND_NAMES, KINDS, LONG_TOKENS, MAX_PROMPT_TOKENS, MIXED, MIXTURE, Kind
from kvtier_cli.traces.synth_prompts import Ids, Libraries, Prompt
from kvtier_cli.wording import did_you_mean, shown

Arrivals = Literal["bursts", "poisson"]
ARRIVALS: Final = ("bursts", "poisson")

MAX_TENANTS: Final = 100_000
MAX_BETWEEN_MS: Final = 360_000_000

_TOKEN_MS: Final = 15
"""Milliseconds a generated token takes."""

# Of bursts: between two of them come 40 sessions on average, in one 8 to 40 (24), 20 times as close together. The calm
# ones are as far apart as keeps the mean over all: (40 + 24) / (40 + 24 / 20).
_CALM: Final = 40
_BURST: Final = (8, 40)
_CLOSER: Final = 20
_CALM_WAIT: Final = (640, 412)


@dataclass(frozen=True, slots=True)
class SynthSpec:
    """What a made trace is like. `kind`: chat, agent, rag or mixed. `block_tokens`: tokens a block. `tenants`: how many
    customers with prompts and documents of their own, named in the tag `tenant`; None for one that is not named.
    `between_ms`: milliseconds between new sessions on average, which come in `arrivals` "bursts" or "poisson".

    Raises InputError for values that cannot be.
    """

    kind: str = MIXED
    seed: int = 1
    block_tokens: int = BLOCK_TOKENS
    tenants: int | None = None
    between_ms: int = 1_000
    arrivals: str = "bursts"

    def __post_init__(self) -> None:
        if self.kind not in KIND_NAMES:
            raise InputError(f"there is no kind {shown(self.kind)}", hint=did_you_mean(self.kind, KIND_NAMES))
        if self.arrivals not in ARRIVALS:
            raise InputError(
                f"there are no arrivals {shown(self.arrivals)}", hint=did_you_mean(self.arrivals, ARRIVALS)
            )
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed:,}; expected 0 or more")
        if not 1 <= self.block_tokens <= MAX_TOKENS:
            raise InputError(f"blocks of {self.block_tokens:,} tokens; expected 1 or more")
        if self.tenants is not None and not 1 <= self.tenants <= MAX_TENANTS:
            raise InputError(f"{self.tenants:,} tenants; expected 1 to {MAX_TENANTS:,}")
        if not 1 <= self.between_ms <= MAX_BETWEEN_MS:
            raise InputError("expected 1 millisecond to 100 hours between two sessions")


def requests(spec: SynthSpec, *, limit: int | None = None, references: int | None = None) -> Iterator[Request]:
    """The requests of a made trace, in order of arrival: the first `limit` of them, or as many as have at least
    `references` blocks together. Without either there is no end to them."""
    blocks = 0
    for request in islice(_Maker(spec).requests(), limit):
        yield request
        blocks += len(request.hash_ids)
        if references is not None and blocks >= references:
            return


class _Session:
    """A session under way: of its `turns` so many are done; `adds` tokens come with the next."""

    __slots__ = ("adds", "done", "kind", "name", "parent", "prompt", "tags", "turns", "waits_for")

    def __init__(self, kind: Kind, name: str, prompt: Prompt, turns: int, adds: int) -> None:
        self.kind = kind
        self.name = name
        self.prompt = prompt
        self.turns = turns
        self.adds = adds
        self.done = 0
        self.tags: tuple[str | None, ...] | None = None
        self.parent: _Session | None = None
        self.waits_for = 0
        """Helpers that are still at work."""


class _Maker:
    def __init__(self, spec: SynthSpec) -> None:
        self._spec = spec
        self._draws = Draws(spec.seed)
        self._ids = Ids(spec.block_tokens)
        self._libraries = Libraries(self._draws, self._ids)
        self._tenants = Popularity(spec.tenants or 1)
        self._due: list[tuple[int, int, _Session]] = []  # by time; of equal times as they were put in
        self._order = count()
        self._burst = 0

    def requests(self) -> Iterator[Request]:
        """All requests, in order of arrival."""
        due, sessions = self._due, self._sessions()
        made = 0
        arrival, newest = next(sessions)
        while True:
            if due and due[0][0] <= arrival:
                now, _, session = heappop(due)
            else:
                now, session = arrival, newest
                arrival, newest = next(sessions)
            yield self._turn(session, now, made)
            made += 1

    def _sessions(self) -> Iterator[tuple[int, _Session]]:
        """New sessions, each with the time it begins. Its prompt is none yet: ids are handed out when they are used."""
        spec, draws = self._spec, self._draws
        kind = None if spec.kind == MIXED else KINDS[spec.kind]
        now = 0
        for number in count():
            chosen = KINDS[draws.one_of(MIXTURE)] if kind is None else kind
            adds = draws.size(chosen.first)
            turns = draws.one_of(chosen.turns_if_long if adds >= LONG_TOKENS else chosen.turns)
            session = _Session(chosen, f"s{number}", _NO_PROMPT, turns, adds)
            yield now, session
            now += self._wait()

    def _wait(self) -> int:
        """Milliseconds to the next new session."""
        draws, mean = self._draws, self._spec.between_ms
        if self._spec.arrivals == "poisson":
            return draws.wait(mean)
        if self._burst:
            self._burst -= 1
            return draws.wait(mean) // _CLOSER
        if not draws.below(_CALM):
            self._burst = draws.size(_BURST)
        return draws.wait(mean * _CALM_WAIT[0] // _CALM_WAIT[1])

    def _turn(self, session: _Session, now: int, index: int) -> Request:
        """The next request of a session that is due; puts down when the one after it will be."""
        draws = self._draws
        if session.prompt is _NO_PROMPT:
            tenant = self._tenants.draw(draws)
            session.prompt = self._libraries.of(tenant, session.kind).start()
            if self._spec.tenants is not None:
                session.tags = (f"t{tenant}",)
        ids = session.prompt.ask(session.adds, self._ids)
        length = session.prompt.tokens
        answer = draws.size(session.kind.answer)
        name = session.name
        blocks: list[int | str] = ids  # type: ignore[assignment]
        request = Request(index, 0, length, blocks, answer, now, f"{name}.{session.done}", None, name, session.tags)
        session.done += 1
        self._go_on(session, now + answer * _TOKEN_MS, answer)
        return request

    def _go_on(self, session: _Session, now: int, answer: int) -> None:
        """An answer of so many tokens is there: another turn, helpers before it, or the end."""
        kind, draws = session.kind, self._draws
        if session.done >= session.turns:
            self._over(session, now, answer)
            return
        if session.parent is None and kind.fan_out_every and not draws.below(kind.fan_out_every):
            self._send_helpers(session, now)
        session.prompt.tokens += answer
        session.adds = draws.size(kind.later)
        if session.prompt.tokens + session.adds > MAX_PROMPT_TOKENS:
            session.turns = session.done
            self._over(session, now, answer)
        elif not session.waits_for:
            self._put(session, now + draws.size(kind.pause))

    def _send_helpers(self, session: _Session, now: int) -> None:
        """Helpers begin with the prompt of the call that sends them, and its answer is what they are told."""
        kind, draws = session.kind, self._draws
        session.waits_for = draws.one_of(kind.fan_out)
        for number in range(session.waits_for):
            name = f"{session.name}-{session.done}{'abcdefgh'[number]}"
            helper = _Session(
                kind, name, session.prompt.fork(), draws.one_of(kind.helper_turns), draws.size(kind.first)
            )
            helper.parent, helper.tags = session, session.tags
            self._put(helper, now)

    def _over(self, session: _Session, now: int, answer: int) -> None:
        """A session has ended. The last helper's answer wakes the one that sent it, which reads what all said."""
        parent = session.parent
        if parent is None:
            return
        parent.waits_for -= 1
        parent.adds += answer
        if not parent.waits_for and parent.done < parent.turns:
            self._put(parent, now)

    def _put(self, session: _Session, time: int) -> None:
        heappush(self._due, (time, next(self._order), session))


_NO_PROMPT: Final = Prompt([], 0)
