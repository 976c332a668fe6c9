"""A scripted fixture that is open: its ops one by one, what each came to, and which expectations were not met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvtier_cli.replay.fixture import Fixture, FixtureOp
from kvtier_cli.replay.fixture_run import OpResult, run_ops, runner_of
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.tiering.filters import MISSING, FilterParse, lint_against, parse_tier_filter
from kvtier_cli.wording import shown
from tui.session.course import Stop
from tui.session.events import EventLog
from tui.session.moments import moment_of
from tui.session.op_stories import OpStories, Told
from tui.session.resident import ResidentBlocks
from tui.session.rows import CODE, PROMOTED_FROM, Mark, RequestRows
from tui.session.trace_show import Found
from tui.session.views import FilterView, Kind, Listing, Moment, RowView


class FixtureShow:
    """All ops are run, in slices, and what stood after each is kept: fixtures are small."""

    kind = Kind.FIXTURE
    warnings: Sequence[str] = ()
    rows: RequestRows | None = None

    def __init__(self, fixture: Fixture) -> None:
        self.title = fixture.file
        self.topology = fixture.topology
        self._fixture = fixture
        self._runner = runner_of(fixture)
        self._events = EventLog(self._runner.manager)
        self._stories = OpStories(self._runner.manager, self._runner.history)
        self._runner.listen(self._events, self._stories)
        self._runner.watch(self._stories)
        self._results = run_ops(fixture, self._runner)
        self._moments: list[Moment] = []
        self._list: list[RowView] = []
        self._marks: list[Mark] = []
        self._told: dict[str, Told] = {}
        self._last = ""

    @property
    def count(self) -> int:
        return len(self._list)

    def row(self, index: int) -> RowView:
        return self._list[index]

    @property
    def listing(self) -> Listing:
        return self

    @property
    def total(self) -> int:
        return len(self._fixture.ops)

    @property
    def is_total(self) -> bool:
        return True

    def work(self, stop: Stop) -> bool:
        while len(self._moments) < self.total:
            self._run_one()
            if stop():
                return True
        return False

    def _run_one(self) -> None:
        op = self._fixture.ops[len(self._moments)]
        self._stories.expect(op.fields.get("kv_load_tiers", MISSING))
        before = self._counted()
        result = next(self._results)
        self._marks.append(self._mark(before))
        told = self._story(result)
        story, pending = (None, {}) if told is None else told
        said = (f"op {op.index}: {op}", _short(result.outcome), *map(_mismatch_words, result.mismatches))
        figures = result.outcome.get("figures", {})
        manager, label = self._runner.manager, f"op {op.index}: {op}"
        moment = moment_of(manager, op.index, label, story, self._events, figures, str, pending, said)
        self._moments.append(moment)
        self._list.append(_row(result))

    def _story(self, result: OpResult) -> Told | None:
        """What is known of the request that the op is about, or of the one before it: a step ends what that waits for.

        Told anew when something was looked up; what comes after that changes no answer.
        """
        op = result.op
        name = op.fields.get("id")
        if op.name in ("lookup", "run"):
            asked = result.outcome if op.name == "run" else None
            req_id = self._stories.last if op.name == "run" else name
            told = self._stories.story(req_id, str(name), op.fields.get("blocks"), asked)
            if told is not None:
                self._told[str(name)] = told
        elif op.name == "request":
            self._told.pop(str(name), None)
        if name is not None:
            self._last = str(name)
        return self._told.get(self._last)

    def _counted(self) -> tuple[int, int, int, int]:
        counters = self._runner.manager.counters
        evicted = counters.evicted_by_promotions + counters.evicted_by_stores
        return counters.denied, sum(counters.promoted), evicted, sum(counters.skipped)

    def _mark(self, before: tuple[int, int, int, int]) -> Mark:
        kinds = (Mark.DENIAL, Mark.PROMOTION, Mark.EVICTION, Mark.SKIP)
        mark = Mark(0)
        for kind, was, now in zip(kinds, before, self._counted(), strict=True):
            mark |= kind if now != was else Mark(0)
        return mark

    def moment(self, index: int, stop: Stop) -> Moment | None:
        if index >= self.total:
            raise IndexError(index)
        while len(self._moments) <= index:
            self._run_one()
            if stop() and len(self._moments) <= index:
                return None
        return self._moments[index]

    def run_on(self, stop: Stop) -> Moment | None:
        return None

    def filter_at(self, index: int) -> FilterView:
        """That of the request which the op is about."""
        raw: object = MISSING
        ops = self._fixture.ops
        name = ops[index].fields.get("id") if index < len(ops) else None
        for op in reversed(ops[: index + 1]):
            if op.name in ("request", "run") and op.fields.get("id") == name:
                raw = op.fields.get("kv_load_tiers", MISSING)
                break
        parse = lint_against(parse_tier_filter(raw), self.topology.tiers)
        return FilterView("", parse, True)

    def set_filter(self, parse: FilterParse | None, text: str, since: int) -> None:
        """A fixture states its own."""

    def next_mark(self, mark: Mark, start: int, *, backwards: bool) -> int | None:
        places = range(start - 1, -1, -1) if backwards else range(start + 1, len(self._marks))
        return next((at for at in places if self._marks[at] & mark), None)

    def go_to(self, text: str) -> Found | None:
        digits = text.removeprefix("op").strip()
        if digits.isdecimal() and len(digits) < 9 and int(digits) < self.total:
            return Found(int(digits))
        return None

    def find(self, text: str, start: int, *, backwards: bool = False) -> Found | None:
        """The next op that names a request, a block or a tier like that, round the end."""
        ops = self._fixture.ops
        order = [*range(start + 1, len(ops)), *range(start + 1)]
        if backwards:
            order = [*range(start - 1, -1, -1), *range(len(ops) - 1, start - 1, -1)]
        return next((Found(at) for at in order if text in _named(ops[at])), None) or self.go_to(text)

    def compare(self, parse: FilterParse | None, text: str, cursor: int) -> None:
        return None

    def saved(self, index: int) -> None:
        return None

    def resident(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        return ResidentBlocks(self._runner.manager, str)

    def close(self) -> None:
        """Nothing is open."""


def _named(op: FixtureOp) -> list[str]:
    fields = op.fields
    names = [str(fields[key]) for key in ("op", "tier", "id", "block", "trace") if key in fields]
    return [*names, *map(str, fields.get("blocks", ()))]


def _row(result: OpResult) -> RowView:
    op = result.op
    line = f"line {op.line}" if op.line is not None else f"op {op.index}"
    if result.mismatches:
        note = f"FAIL: {result.mismatches[0].path}"
    elif result.expectations:
        note = f"ok, {result.expectations} met"
    else:
        note = ""
    codes = bytes(map(_code, result.outcome.get("outcomes", ())))
    served = sum(code in (0, PROMOTED_FROM) for code in codes)
    count = f"{served}/{len(codes)}" if codes else ""
    short = _short(result.outcome)
    return RowView(
        op.index, line, count, codes, f"{op}{f'   {short}' if short else ''}", note, None, bool(result.mismatches)
    )


def _code(word: str) -> int:
    outcome = Outcome(word)
    return PROMOTED_FROM if outcome is Outcome.PROMOTED else CODE[outcome]


def _short(outcome: Mapping[str, Any]) -> str:
    """What an op came to, in a few words."""
    said = []
    if outcome.get("result") is not None:
        said.append(str(outcome["result"]))
        for key, words in (("promotion", "from"), ("denied", "denied:")):
            if outcome.get(key) is not None:
                said.append(f"{words} {outcome[key]}")
    for key in ("stored", "loaded", "evicted"):
        value = outcome.get(key)
        if key == "stored" and key in outcome and value is None:
            said.append("refused")
        elif value:
            said.append(f"{key} {' '.join(map(str, value))}")
    if outcome.get("completed"):
        jobs = (f"{job['kind']} of {' '.join(map(str, job['ok'] or job['failed']))}" for job in outcome["completed"])
        said.append(f"done: {', '.join(jobs)}")
    return "  ".join(said)


def _mismatch_words(mismatch: Any) -> str:
    found = mismatch.remark or ""
    return f"expected {mismatch.path} {shown(mismatch.expected)}, found {shown(mismatch.found)}" + (
        f" ({found})" if found else ""
    )
