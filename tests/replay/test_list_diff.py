"""Two lists in one: which items were expected and are missing, which are there and were not expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.replay.list_diff import diff_lists, diff_places

SIGNS = {"same": "", "missing": "-", "extra": "+"}


def signed(expected: list[Any], found: list[Any]) -> str:
    return " ".join(f"{SIGNS[item.kind]}{item.value}" for item in diff_lists(expected, found))


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        ("b1 b2", "b1 b2", "b1 b2"),
        ("b1 b2 b3", "b1 b3", "b1 -b2 b3"),
        ("b1 b3", "b1 b2 b3", "b1 +b2 b3"),
        ("b1 b2 b3", "b1 b4 b3", "b1 -b2 +b4 b3"),
        ("b1 b2 b3", "b2 b3 b1", "-b1 b2 b3 +b1"),
        ("b1 b1", "b1", "b1 -b1"),
        ("", "b1", "+b1"),
        ("b1", "", "-b1"),
    ],
)
def test_only_what_differs_is_marked(expected: str, found: str, said: str) -> None:
    assert signed(expected.split(), found.split()) == said


def test_an_object_is_as_expected_where_the_named_fields_are() -> None:
    jobs = [{"tier": "t0", "req": "r1", "job": 0}, {"tier": "t1", "req": "r1", "job": 1}]
    kinds = [item.kind for item in diff_lists([{"tier": "t1", "job": {"max": 4}}], jobs)]
    assert kinds == ["extra", "same"]


def test_items_whose_place_counts_are_compared_place_by_place() -> None:
    items = diff_places(["primary", "promoted", "absent"], ["promoted", "absent", "absent"])
    assert [f"{SIGNS[item.kind]}{item.value}" for item in items] == [
        *("-primary", "+promoted", "-promoted", "+absent", "absent"),
    ]


BLOCKS = st.lists(st.sampled_from(["b1", "b2", "b3", "b4"]), max_size=8)


@given(BLOCKS, BLOCKS)
def test_both_lists_can_be_read_from_it(expected: list[str], found: list[str]) -> None:
    items = diff_lists(expected, found)
    assert [item.value for item in items if item.kind != "extra"] == expected
    assert [item.value for item in items if item.kind != "missing"] == found


def test_lists_of_thousands_that_have_little_in_common_differ_as_a_whole() -> None:
    items = diff_lists(["head", *map(str, range(0, 4_000, 2))], ["head", *map(str, range(4_000))])
    assert [item.kind for item in items[:2]] == ["same", "same"]
    assert sum(item.kind == "missing" for item in items) == 1_999
