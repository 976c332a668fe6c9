"""Foreign values in messages: safe to print, bounded, and near misses named."""

from __future__ import annotations

import datetime

import pytest

from kvtier_cli.wording import did_you_mean, kind_of, nearest, one_of, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("storage", '"storage"'),
        ({"medium": None}, '{"medium":null}'),
        (float("nan"), "NaN"),
        ("a\x1b[31m\u202eb", '"a\\u001b[31m\\u202eb"'),
        ("\ud800", '"\\ud800"'),
        (datetime.date(2024, 1, 2), "2024-01-02"),
    ],
)
def test_a_foreign_value_is_shown_as_inert_json(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("value", ["x" * 10**6, ["x" * 100] * 1000, {"k" * 1000: 1}])
def test_a_foreign_value_is_cut(value: object) -> None:
    assert len(shown(value, 48)) <= 48
    assert shown(value, 48).endswith("...")


def test_what_nests_too_deeply_or_has_too_many_digits_is_shown_as_its_kind() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert shown(nested) == "a list"
    assert shown(10**5000) == "a number"


def test_the_nearest_known_word_is_named_whatever_its_case() -> None:
    assert nearest("MEDUM", ("medium", "locality")) == "medium"
    assert nearest("tier", ("medium", "locality")) is None
    assert nearest("m" * 10**6, ("medium",)) is None
    assert did_you_mean("lfu", ("lru", "arc")) == 'did you mean "lru"?'
    assert did_you_mean("xyz", ("lru", "arc")) == "known are lru, arc"


def test_words_for_kinds_and_choices() -> None:
    assert [kind_of(value) for value in (None, True, 1.5, "", [], {})] == [
        "null",
        "true",
        "a number",
        "a string",
        "a list",
        "an object",
    ]
    assert one_of(["a", "b", "c"]) == "a, b or c"
