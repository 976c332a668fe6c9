"""An earlier `kvtier replay --json` as the baseline of a new one: which figures differ by more than is tolerated.

Judges figures alone; that something else differs too (tiers, filter, files) is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeGuard

from kvtier_cli.errors import InputError
from kvtier_cli.replay.figure_expr import share_of
from kvtier_cli.replay.figure_names import Figure, Kind, Path, kind_of, leaves, value_at
from kvtier_cli.tiering.json_text import decode_json
from kvtier_cli.tiering.text_file import read_text_file
from kvtier_cli.units import parse_count
from kvtier_cli.wording import kind_of as kind_of_value
from kvtier_cli.wording import shown

SCHEMA = "kvtier.replay/1"
TOLERANCE_EXPECTED = "0.5pt (points of all blocks or requests), 1% (of the baseline's figure) or a count such as 100"

_BY_TIER = ("_by_tier", "_by_source", "_by_reason", "resident")
_TOLERANCE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(%|pt|points?)")


class Unit(Enum):
    """In what a tolerance is measured, and so which figures it can judge."""

    POINTS = "points"
    """Of all blocks, requests or, for a rate, of its whole: what is no share is not judged."""
    RELATIVE = "relative"
    """Parts of the baseline's figure: judges every figure."""
    COUNT = "count"
    """Judges counts: rates and bytes follow from them. A tolerance of 0 judges every figure."""


class Tolerance(NamedTuple):
    """How far a figure may be from the baseline's; `limit` is a part of one for points and relative ones."""

    text: str
    unit: Unit
    limit: Fraction

    def judges(self, figure: Figure) -> bool:
        """Whether it says anything about `figure`."""
        if self.unit is Unit.POINTS:
            return figure.whole is not None or figure.kind is Kind.RATE
        if self.unit is Unit.COUNT and self.limit:
            return figure.kind not in (Kind.RATE, Kind.BYTES)
        return True


class BaselineRun(NamedTuple):
    """One run of the document: the files that were read, the filter of all requests, and the figures."""

    files: list[Any]
    filter: Any
    figures: Mapping[str, Any]


class Baseline(NamedTuple):
    """The document, validated as far as it is used."""

    file: str
    topology: Any
    runs: list[BaselineRun]


class Compared(NamedTuple):
    """One figure beside the baseline's. `points`: the difference of the shares, where it has any."""

    figure: Figure
    baseline: int | float | None
    found: int | float | None
    points: float | None
    differs: bool

    @property
    def delta(self) -> int | float | None:
        """What was found more than in the baseline."""
        return None if self.baseline is None or self.found is None else self.found - self.baseline


class BaselineResult(NamedTuple):
    """All figures that were judged, and what else there is to say."""

    compared: list[Compared]
    notes: list[str]

    @property
    def differences(self) -> list[Compared]:
        """Those that are further from the baseline than is tolerated."""
        return [each for each in self.compared if each.differs]


def read_tolerance(text: str) -> Tolerance:
    """The tolerance in `text`. Raises InputError for anything else than `TOLERANCE_EXPECTED`."""
    stripped = text.strip()
    match = _TOLERANCE.fullmatch(stripped)
    if match is not None:
        unit = Unit.RELATIVE if match[2] == "%" else Unit.POINTS
        return Tolerance(stripped, unit, Fraction(Decimal(match[1])) / 100)
    try:
        return Tolerance(stripped, Unit.COUNT, Fraction(parse_count(stripped)))
    except InputError:
        raise InputError(f"{shown(text)} is no tolerance, expected {TOLERANCE_EXPECTED}", file="--tolerance") from None


def read_baseline(path: str) -> Baseline:
    """The document at `path`. Raises InputError for what is no JSON, or not what `kvtier replay --json` prints."""
    document = decode_json(read_text_file(path, "what kvtier replay --json printed"), path)
    hint = "Write one with kvtier replay TRACE --json > run.json."
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = shown(document["schema"]) if isinstance(document, dict) and "schema" in document else None
        words = kind_of_value(document) if found is None else f"one of schema {found}"
        raise InputError(f"expected a document of schema {shown(SCHEMA)}, found {words}", file=path, hint=hint)
    several = document.get("runs")
    if several is not None and not isinstance(several, list):
        raise InputError(f"expected a list, found {kind_of_value(several)}", file=path, path="$.runs")
    if several is None:
        runs = [_run(document, path, "$")]
    else:
        runs = [_run(run, path, f"$.runs[{index}]") for index, run in enumerate(several)]
    return Baseline(path, document.get("topology"), runs)


def _run(value: Any, file: str, path: str) -> BaselineRun:
    figures = value.get("figures") if isinstance(value, dict) else None
    if not isinstance(figures, dict):
        raise InputError(f"expected an object, found {kind_of_value(figures)}", file=file, path=f"{path}.figures")
    for place, leaf in leaves(figures):
        if leaf is not None and not _is_number(leaf):
            where = ".".join((f"{path}.figures", *place))
            found = str(leaf) if isinstance(leaf, float) else kind_of_value(leaf)  # nan, inf
            raise InputError(f"expected a number, found {found}", file=file, path=where)
    for whole in ("blocks", "requests"):
        if not isinstance(figures.get(whole), int):
            message = f"expected a number, found {kind_of_value(figures.get(whole))}"
            raise InputError(message, file=file, path=f"{path}.figures.{whole}")
    files = value.get("files")
    return BaselineRun(files if isinstance(files, list) else [], value.get("filter"), figures)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def run_for(baseline: Baseline, files: Sequence[str], position: int, runs: int) -> BaselineRun:
    """The run of the baseline that stands for ours, number `position` of `runs`: the one of the same files, else the
    one in the same place. Raises InputError where their numbers differ."""
    same = [run for run in baseline.runs if run.files == list(files)]
    if len(same) == 1:
        return same[0]
    if len(baseline.runs) != runs:
        theirs = len(baseline.runs)
        raise InputError(
            f"holds {theirs:,} {'run' if theirs == 1 else 'runs'}, where there {'is' if runs == 1 else 'are'} {runs:,}"
            " now",
            file=baseline.file,
            hint="The baseline of several traces is one --json of the same traces.",
        )
    return baseline.runs[position]


def against_baseline(run: BaselineRun, figures: Mapping[str, Any], tolerance: Tolerance) -> BaselineResult:
    """Every figure of `figures` beside the baseline's."""
    compared = []
    missing = []
    for path in _paths(run.figures, figures):
        figure = Figure(path, kind_of(path))
        if not _is_there(run.figures, path) or not _is_there(figures, path):
            missing.append(figure.name)
        elif tolerance.judges(figure):
            compared.append(_compare(figure, run.figures, figures, tolerance))
    notes = []
    if missing:
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        notes.append(f"only one of both has {', '.join(missing[:3])}{more}: not compared")
    return BaselineResult(compared, notes)


def differing_settings(
    baseline: Baseline, run: BaselineRun, topology: Any, load_filter: Any, files: Sequence[str]
) -> Iterator[str]:
    """What else than the figures is not as it was, a sentence each: the tiers, the filter, the files."""
    if _without_name(baseline.topology) != _without_name(topology):
        yield "its topology is another one"
    theirs, ours = _effective(run.filter), _effective(load_filter)
    if theirs != ours:
        yield "its requests had another filter"
    if run.files != list(files):
        yield f"it replayed {', '.join(shown(file) for file in run.files[:3]) or 'other files'}"


def _without_name(topology: Any) -> Any:
    return {key: value for key, value in topology.items() if key != "name"} if isinstance(topology, dict) else topology


def _effective(load_filter: Any) -> Any:
    return load_filter.get("effective") if isinstance(load_filter, dict) else load_filter


def _paths(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[Path]:
    """Where figures are: ours in their order, then those that only the baseline has."""
    found = dict.fromkeys(path for path, _ in leaves(ours))
    return list(found | dict.fromkeys(path for path, _ in leaves(theirs)))


def _is_there(figures: Mapping[str, Any], path: Path) -> bool:
    """Whether `figures` say anything about `path`; a tier that a map leaves out is 0 there."""
    if any(path[0].endswith(ending) for ending in _BY_TIER):
        return isinstance(figures.get(path[0]), Mapping)
    value: Any = figures
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return not isinstance(value, Mapping)


def _compare(figure: Figure, theirs: Mapping[str, Any], ours: Mapping[str, Any], tolerance: Tolerance) -> Compared:
    before, now = value_at(theirs, figure.path), value_at(ours, figure.path)
    if figure.kind is Kind.RATE:
        points = None if before is None or now is None else round(now - before, 12)
        exact = None if points is None else Fraction(Decimal(repr(points)))
    else:
        first, second = share_of(figure, theirs), share_of(figure, ours)
        exact = None if first is None or second is None else second - first
        points = None if exact is None else float(exact)
    if before is None or now is None:
        differs = before is not now
    elif tolerance.unit is Unit.POINTS:
        differs = exact is not None and abs(exact) > tolerance.limit
    elif tolerance.unit is Unit.RELATIVE:
        differs = abs(Fraction(now) - Fraction(before)) > tolerance.limit * abs(Fraction(before))
    else:
        differs = abs(Fraction(now) - Fraction(before)) > tolerance.limit
    return Compared(figure, before, now, points, differs)
