"""What makes a comparison fail (`--fail-on`): a demand on a figure of one variant, or on its difference from the
first one's. Parsed before the run, judged after."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kvtier_cli.errors import InputError
from kvtier_cli.replay.compare import LETTERS
from kvtier_cli.replay.figure_expr import Expression, Judged, Parts, find_figure, read_limit, split_expression
from kvtier_cli.replay.figure_names import Figure, FigureNames
from kvtier_cli.wording import one_of, shown

DELTA = "delta"
_SCOPE = re.compile(rf"(?:({DELTA})\.)?(?:([A-Za-z])\.)?(.*)", re.DOTALL)


class FailOn(NamedTuple):
    """A demand, and what it is about: `variants` (indexes from 0) for themselves, or with `delta` what each of them
    has more than the first."""

    expression: Expression
    variants: tuple[int, ...]
    delta: bool

    def judge(self, figures: Sequence[Mapping[str, Any]]) -> list[tuple[str, Judged]]:
        """What came of it for each of its variants, each called `B` or `B - A`."""
        found = []
        for index in self.variants:
            if self.delta:
                name = f"{LETTERS[index]} - {LETTERS[0]}"
                found.append((name, self.expression.judge_difference(figures[0], figures[index])))
            else:
                found.append((LETTERS[index], self.expression.judge(figures[index])))
        return found


def parse_fail_on(text: str, names: Sequence[FigureNames]) -> FailOn:
    """The demand in `text`; `names` has the figures of each variant.

    `B.served` is a figure of B, `delta.C.served` that of C less that of A; `delta.served`, or `served` alone, is the
    difference of every variant but A from A, and holds where it holds of one. Raises InputError with the column.
    """
    parts = split_expression(text, "--fail-on")
    match = _SCOPE.fullmatch(parts.name)
    delta, letter, rest = (None, None, parts.name) if match is None else match.groups()
    known = LETTERS[: len(names)]
    if letter is not None and letter not in known:
        near = f' Did you mean "{letter.upper()}"?' if letter.upper() in known else ""
        at = parts.name_at + (len(DELTA) + 1 if delta else 0)
        raise parts.fault(f"there is no variant {shown(letter)}, expected {one_of(known)}.{near}", at)
    if letter is None or delta:
        chosen = tuple(range(1, len(names))) if letter is None else (LETTERS.index(letter),)
        if chosen == (0,):
            raise parts.fault("A does not differ from A", parts.name_at)
        figure = _find(parts, rest, [names[0], *(names[index] for index in chosen)])
        limit = read_limit(parts, figure, signed=True)
        return FailOn(Expression(text.strip(), figure, parts.operator, limit), chosen, True)
    index = LETTERS.index(letter)
    figure = find_figure(parts, rest, names[index])
    return FailOn(Expression(text.strip(), figure, parts.operator, read_limit(parts, figure)), (index,), False)


def _find(parts: Parts, name: str, several: Sequence[FigureNames]) -> Figure:
    """The figure `name` of one of several topologies; a tier that only one of them has is 0 in the others."""
    fault: InputError | None = None
    for names in several:
        try:
            return find_figure(parts, name, names)
        except InputError as error:
            fault = fault or error
    assert fault is not None  # noqa: S101 - there are two at least
    raise fault
