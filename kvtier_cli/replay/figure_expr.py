"""What people demand of a replay's figures: `served >= 36%`, `promoted.s3 < 10k`. Parsed before a run, judged after.

A share is one of all blocks (of requests, where these are counted); shares of counts are compared exactly.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from kvtier_cli.errors import InputError
from kvtier_cli.replay.figure_names import Figure, FigureNames, Kind, value_at
from kvtier_cli.units import parse_count, parse_size
from kvtier_cli.wording import one_of, shown

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_LONGEST = 1000
_OPERATOR = re.compile(r">=|<=|==|!=|<|>")
_NEARLY = re.compile(r"[=!~]|\u2264|\u2265|\u2260")
_SHARE = re.compile(r"([+-]?)([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(?:%|pt|points?)")
_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


class Parts(NamedTuple):
    """An expression, cut into three. `name_at` and `limit_at` are columns, from 1; `option` is where it was given."""

    text: str
    option: str
    name: str
    name_at: int
    operator: str
    limit: str
    limit_at: int

    def fault(self, message: str, column: int, hint: str | None = None) -> InputError:
        """What is wrong with the expression, and where."""
        return _fault(self.text, self.option, message, column, hint)


class Limit(NamedTuple):
    """The right side of an expression: a number, or with `share` a part of the whole (0.36 is 36 %)."""

    number: Fraction
    share: bool


class Judged(NamedTuple):
    """What came of an expression. `found` is the figure, None where there is none, `share` its part of the whole where
    it has one (or, of a difference, the difference of both parts); an unknown figure meets no demand."""

    found: int | float | None
    share: float | None
    holds: bool


class Expression(NamedTuple):
    """A demand on one figure."""

    text: str
    figure: Figure
    operator: str
    limit: Limit

    def judge(self, figures: Mapping[str, Any]) -> Judged:
        """Whether it holds of `figures`."""
        found = value_at(figures, self.figure.path)
        if self.figure.kind is Kind.RATE:
            return Judged(found, found, found is not None and self._compare(found, float(self.limit.number)))
        share = share_of(self.figure, figures)
        measure = share if self.limit.share else found
        return Judged(found, _float(share), measure is not None and self._compare(measure, self.limit.number))

    def judge_difference(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Judged:
        """Whether it holds of what `after` has more than `before`."""
        one, other = value_at(before, self.figure.path), value_at(after, self.figure.path)
        if one is None or other is None:
            return Judged(None, None, False)
        if self.figure.kind is Kind.RATE:
            difference = round(other - one, 12)  # what two floats lose in a subtraction is no difference
            return Judged(difference, difference, self._compare(difference, float(self.limit.number)))
        first, second = share_of(self.figure, before), share_of(self.figure, after)
        share = None if first is None or second is None else second - first
        measure = share if self.limit.share else other - one
        holds = measure is not None and self._compare(measure, self.limit.number)
        return Judged(other - one, _float(share), holds)

    def _compare(self, found: Any, limit: Any) -> bool:
        return OPERATORS[self.operator](found, limit)


def share_of(figure: Figure, figures: Mapping[str, Any]) -> Fraction | None:
    """The figure's part of all blocks or requests; None where it is no such part, or nothing was there."""
    found = value_at(figures, figure.path)
    whole = None if figure.whole is None else figures[figure.whole]
    return Fraction(found, whole) if whole and isinstance(found, int) else None


def parse_expression(text: str, names: FigureNames, option: str) -> Expression:
    """The demand in `text`. Raises InputError with the column for syntax, and for a figure that there is not."""
    parts = split_expression(text, option)
    figure = find_figure(parts, parts.name, names)
    return Expression(text.strip(), figure, parts.operator, read_limit(parts, figure))


def split_expression(text: str, option: str) -> Parts:
    """Name, operator and limit of `text`, none of them looked at. Raises InputError with the column."""
    expected = f"expected {one_of(OPERATORS)}"
    if len(text) > _LONGEST:
        raise InputError(f"is longer than {_LONGEST:,} characters", file=option)
    if not text.strip():
        raise InputError("is empty, expected a demand such as 'served >= 36%'", file=option)
    match = _OPERATOR.search(text)
    start = len(text) if match is None else match.start()
    nearly = _NEARLY.search(text, 0, start)
    if nearly is not None:
        found = text[nearly.start() : match.end()] if match is not None and nearly.end() == start else nearly[0]
        raise _fault(text, option, f"{expected}, found {shown(found)}", nearly.start() + 1)
    if match is None:
        raise _fault(text, option, f"{expected}, found the end", len(text.rstrip()) + 1)
    name, limit = text[: match.start()], text[match.end() :]
    name_at = len(name) - len(name.lstrip()) + 1
    if not name.strip():
        raise _fault(text, option, "expected the name of a figure", match.start() + 1)
    limit_at = match.end() + len(limit) - len(limit.lstrip()) + 1
    if not limit.strip():
        raise _fault(text, option, f'expected a number behind "{match[0]}"', match.end() + 1)
    return Parts(text, option, name.strip(), name_at, match[0], limit.strip(), limit_at)


def find_figure(parts: Parts, name: str, names: FigureNames) -> Figure:
    """The figure `name`, which stands at the end of the expression's name. Raises InputError with its column."""
    try:
        return names.find(name)
    except InputError as error:
        raise parts.fault(error.message, parts.name_at + len(parts.name) - len(name), error.hint) from None


def read_limit(parts: Parts, figure: Figure, *, signed: bool = False) -> Limit:
    """The right side, as it may stand beside `figure`; `signed` where it bounds a difference."""
    text = parts.limit
    share = _SHARE.fullmatch(text)
    if share is not None:
        if figure.whole is None and figure.kind is not Kind.RATE:
            raise parts.fault(_no_share(figure), parts.limit_at, _shares_of(figure))
        number = Fraction(Decimal(share[2])) / 100
        sign = share[1]
    else:
        sign = text[:1] if text[:1] in "+-" else ""
        try:
            number = _number(text.removeprefix(sign).strip(), figure)
        except InputError as error:
            raise parts.fault(error.message, parts.limit_at, error.hint) from None
    if sign and not signed:
        raise parts.fault(f"{shown(text)}: a figure has no sign", parts.limit_at)
    return Limit(-number if sign == "-" else number, share is not None)


def _number(text: str, figure: Figure) -> Fraction:
    if figure.kind is Kind.RATE:
        if not _PLAIN.fullmatch(text) or Decimal(text) > 1:
            raise InputError(f"{shown(text)} is no rate, expected a percentage such as 36% or 0 to 1")
        return Fraction(Decimal(text))
    if figure.kind is Kind.BYTES:
        return Fraction(parse_size(text))
    try:
        return Fraction(parse_count(text))
    except InputError as error:
        if _PLAIN.fullmatch(text) and figure.whole is not None:
            hint = f"A share of all {figure.whole} is written with a percent sign."
            raise InputError(error.message, hint=hint) from None
        also = ", or a percentage such as 36%" if figure.whole is not None else ""
        raise InputError(f"{error.message}{also}", hint=error.hint) from None


def _no_share(figure: Figure) -> str:
    return f"{shown(figure.name)} is no part of all blocks or requests, and has no percentage"


def _shares_of(figure: Figure) -> str | None:
    if figure.path[0] == "hits_by_tier":
        return f"The share of what a tier was asked is rates.{figure.path[1]}_of_asked."
    return "Compare it with a number."


def _fault(text: str, option: str, message: str, column: int, hint: str | None = None) -> InputError:
    return InputError(message, file=f"{option} {shown(text, 200)}", column=column, hint=hint)


def _float(share: Fraction | None) -> float | None:
    return None if share is None else float(share)
