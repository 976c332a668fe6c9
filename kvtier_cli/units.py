"""Sizes, times, counts and rates as people write them (`512MiB`, `250us`, `10k`, `3GB/s`), read and written.

The `parse_…` functions raise InputError and say what they expect; the `exact_…` ones write what the parser reads
back as the same number; the `format_…` ones round, for people.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from kvtier_cli.errors import InputError

LARGEST = 2**63 - 1
"""The largest count or size that is accepted: what a signed 64-bit integer holds."""

_LONGEST = 40
_EXACT = Context(prec=100)
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z\u00b5\u03bc]*)")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[,_][0-9]{3})+")
_PREFIXES = "kMGTPE"
_SIZES = (
    {"": 1, "b": 1}
    | {f"{prefix.lower()}b": 1000**power for power, prefix in enumerate(_PREFIXES, 1)}
    | {f"{prefix.lower()}ib": 1024**power for power, prefix in enumerate(_PREFIXES, 1)}
)
_COUNTS = {"": 1, "k": 1000, "m": 1_000_000}
_TIMES = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "\u00b5s": Decimal("1e-6"),
    "\u03bcs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
}

SIZE_EXPECTED = "a size in bytes such as 4096, 512MiB or 4GB"
TIME_EXPECTED = "a time such as 250us, 2ms or 1.5s"
COUNT_EXPECTED = "a count such as 10000, 10k or 1M"
RATE_EXPECTED = "a rate such as 3GB/s or 500MiB/s"


def parse_size(text: str) -> int:
    """Bytes of `512MiB`, `4GB`, `1.5KiB`, `4096`. kB is 1000 bytes, KiB 1024; a fraction must come to whole bytes.

    `4Gb` is refused: it reads as bits.
    """
    number, unit = _split(text, SIZE_EXPECTED)
    if len(unit) > 1 and unit.endswith("b") and unit[0].isupper():
        raise InputError(f"{_quoted(text)} reads as bits, expected {SIZE_EXPECTED}", hint="bytes are written with a B")
    return _whole(text, number, _SIZES.get(unit.lower()), SIZE_EXPECTED)


def parse_count(text: str) -> int:
    """The number in `10k`, `1M`, `2.5k`, `10000`, `10,000` or `10_000`; it must be whole."""
    stripped = text.strip()
    if len(stripped) <= _LONGEST and _GROUPED.fullmatch(stripped):
        text = stripped.replace(",", "").replace("_", "")
    number, unit = _split(text, COUNT_EXPECTED)
    return _whole(text, number, _COUNTS.get(unit.lower()), COUNT_EXPECTED)


def parse_time(text: str) -> float:
    """Seconds of `250us`, `2ms`, `1.5s`, `2min`, `1h`. Only 0 may go without a unit."""
    number, unit = _split(text, TIME_EXPECTED)
    factor = _TIMES.get(unit.lower())
    if factor is None:
        if number == 0 and not unit:
            return 0.0
        raise InputError(f"{_quoted(text)} has no unit of time that is known, expected {TIME_EXPECTED}")
    return _measure(text, number, factor)


def parse_rate(text: str) -> float:
    """Bytes a second of `3GB/s`."""
    size, slash, second = text.strip().rpartition("/")
    if not slash or second.strip() != "s":
        raise InputError(f"{_quoted(text)} is no rate, expected {RATE_EXPECTED}")
    number, unit = _split(size, RATE_EXPECTED)
    if len(unit) > 1 and unit.endswith("b") and unit[0].isupper():
        raise InputError(f"{_quoted(text)} reads as bits, expected {RATE_EXPECTED}", hint="bytes are written with a B")
    factor = _SIZES.get(unit.lower())
    if factor is None or not unit or number == 0:
        raise InputError(f"{_quoted(text)} is no rate, expected {RATE_EXPECTED}")
    return _measure(text, number, Decimal(factor))


def exact_size(size: int) -> str:
    """`size` bytes in the largest unit that divides it: `128KiB`, `3GB`, `1001`."""
    for base, infix in ((1024, "iB"), (1000, "B")):
        for power in range(len(_PREFIXES), 0, -1):
            if size and size % base**power == 0:
                prefix = _PREFIXES[power - 1]
                return f"{size // base**power}{prefix.upper() if base == 1024 else prefix}{infix}"
    return str(size)


def exact_time(seconds: float) -> str:
    """`seconds` in the largest unit up to s in which the number is at least 1; reads back as the same float."""
    value = Decimal(repr(seconds))
    unit = next((unit for unit in ("s", "ms", "us") if value >= _TIMES[unit]), "ns")
    return f"{_digits(value / _TIMES[unit])}{unit}" if value else "0s"


def exact_rate(rate: float) -> str:
    """`rate` bytes a second in the largest decimal unit in which the number is at least 1; reads back the same."""
    value = Decimal(repr(rate))
    unit = next((f"{prefix}B" for prefix in reversed(_PREFIXES) if value >= _SIZES[f"{prefix.lower()}b"]), "B")
    return f"{_digits(value / _SIZES[unit.lower()])}{unit}/s"


def format_size(size: float) -> str:
    """`size` bytes for people, to three digits: `1.5 GiB`, `512 MiB`, `17 B`."""
    power = next((power for power in range(len(_PREFIXES), 0, -1) if size >= 1024**power), 0)
    unit = f"{_PREFIXES[power - 1].upper()}iB" if power else "B"
    return f"{_three_digits(size / 1024**power)} {unit}"


def format_count(count: int) -> str:
    """`count` with its thousands apart: `10,000`."""
    return f"{count:,}"


def _split(text: str, expected: str) -> tuple[Decimal, str]:
    stripped = text.strip()
    match = _NUMBER.fullmatch(stripped) if len(stripped) <= _LONGEST else None
    if match is None:
        raise InputError(f"{_quoted(text)} is not understood, expected {expected}")
    digits = match[1]
    if len(digits) > 1 and digits[0] == "0" and digits[1] != ".":
        raise InputError(f"{_quoted(text)} starts with a zero, expected {expected}")
    return Decimal(digits), match[2]


def _whole(text: str, number: Decimal, factor: int | None, expected: str) -> int:
    if factor is None:
        raise InputError(f"{_quoted(text)} has a unit that is not known, expected {expected}")
    product = _EXACT.multiply(number, Decimal(factor))
    if product != int(product):
        raise InputError(f"{_quoted(text)} is no whole number, expected {expected}")
    if product > LARGEST:
        raise InputError(f"{_quoted(text)} is too large, at most {LARGEST} is accepted")
    return int(product)


def _measure(text: str, number: Decimal, factor: Decimal) -> float:
    product = _EXACT.multiply(number, factor)
    if product > LARGEST:
        raise InputError(f"{_quoted(text)} is too large")
    return float(product)


def _digits(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return _digits(Decimal(f"{value:.{1 if value >= 10 else 2}f}"))


def _quoted(text: str) -> str:
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}..."'
