"""Sizes, times, counts and rates as people write them on the command line and in topologies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.units import (
    exact_rate,
    exact_size,
    exact_time,
    format_count,
    format_size,
    parse_count,
    parse_rate,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("512MiB", 512 * 1024**2),
        ("4GB", 4 * 1000**3),
        ("128 KiB", 128 * 1024),
        ("1.5KiB", 1536),
        ("8gib", 8 * 1024**3),
        ("2kB", 2000),
        ("0", 0),
    ],
)
def test_a_size_is_read_in_decimal_and_in_binary_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "count"), [("10000", 10_000), ("10k", 10_000), ("1M", 1_000_000), ("2.5k", 2500), ("10,000", 10_000)]
)
def test_a_count_may_be_shortened_or_grouped(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250us", 0.00025),
        ("250\u00b5s", 0.00025),
        ("2ms", 0.002),
        ("1.5s", 1.5),
        ("2min", 120.0),
        ("7ns", 7e-9),
        ("0", 0),
    ],
)
def test_a_time_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(("text", "rate"), [("3GB/s", 3e9), ("500MiB/s", 500 * 1024**2), ("1.5kB/s", 1500.0)])
def test_a_rate_is_read_in_bytes_a_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_size, "8GiBs", "unit that is not known"),
        (parse_size, "4Gb", "reads as bits"),
        (parse_size, "-1", "expected a size"),
        (parse_size, "1.5", "no whole number"),
        (parse_size, "9999999999GB", "too large"),
        (parse_size, "", "expected a size"),
        (parse_size, "\u0661\u0660", "expected a size"),
        (parse_count, "10G", "expected a count such as 10000, 10k or 1M"),
        (parse_count, "000", "starts with a zero"),
        (parse_count, "1e3", "expected a count"),
        (parse_count, "10,00", "expected a count"),
        (parse_count, "9" * 5000, "expected a count"),
        (parse_count, "1.00000000000000000000000000000001k", "no whole number"),
        (parse_time, "5", "no unit of time"),
        (parse_time, "5 parsecs", "no unit of time"),
        (parse_time, "nan", "expected a time"),
        (parse_rate, "3GB", "expected a rate such as 3GB/s"),
        (parse_rate, "3GB/h", "expected a rate"),
        (parse_rate, "3/s", "no rate"),
        (parse_rate, "0GB/s", "no rate"),
        (parse_rate, "3Gb/s", "reads as bits"),
    ],
)
def test_nonsense_is_refused_with_what_is_expected(parse: Callable[[str], object], text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse(text)


def test_a_value_of_any_length_is_shortened_in_the_message() -> None:
    with pytest.raises(InputError) as raised:
        parse_size("x" * 100_000)
    assert len(str(raised.value)) < 150


@given(st.integers(min_value=0, max_value=2**62))
def test_an_exact_size_reads_back_as_the_same_number(size: int) -> None:
    assert parse_size(exact_size(size)) == size


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_an_exact_time_or_rate_reads_back_as_the_same_float(value: float) -> None:
    assert parse_time(exact_time(value)) == value
    assert parse_rate(exact_rate(value)) == value


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (exact_size(128 * 1024), "128KiB"),
        (exact_size(3_000_000_000), "3GB"),
        (exact_size(1001), "1001"),
        (exact_time(0.00012), "120us"),
        (exact_rate(3e9), "3GB/s"),
        (format_size(1.5 * 1024**3), "1.5 GiB"),
        (format_size(17), "17 B"),
        (format_count(10_000), "10,000"),
    ],
)
def test_numbers_are_written_in_the_unit_that_suits_them(written: str, text: str) -> None:
    assert written == text
