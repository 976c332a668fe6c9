"""YAML by the core rules of 1.2: nothing silently converted, nothing executed, faults with their place."""

from __future__ import annotations

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.yaml_text import decode_yaml, locate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0123", 123),
        ("0o17", 15),
        ("0x1F", 31),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("True", True),
        ("~", None),
        ("1e3", 1000.0),
        ("-.5", -0.5),
        ("=", "="),
        ("!!str 5", "5"),
        ("{<<: {a: 1}}", {"<<": {"a": 1}}),
        ("[&x {a: 1}, *x]", [{"a": 1}, {"a": 1}]),
        ("", None),
    ],
)
def test_values_are_those_of_the_core_schema(text: str, value: object) -> None:
    found = decode_yaml(text, "f")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1\n", "f:2:1: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: b: c", "f:1:5: not YAML: mapping values are not allowed here"),
        ("a: 1\nb: 2\na: 3", 'f:3:1: not YAML: the key "a" stands twice'),
        (
            "{a: 1}\n---\n{b: 2}",
            "f:2:1: not YAML: expected a single document in the stream, but found another document",
        ),
        ("a: *b", "f:1:4: not YAML: found undefined alias 'b'"),
        ("? [1]\n: 2", "f:1:3: not YAML: found unhashable key"),
        ('a:\n  "\x01"', 'f:2:4: not YAML: the character "\\u0001" may not stand in it'),
        ("a: &a [*a]", "f:1:4: an alias stands within what it repeats"),
        ("!!int x", 'f:1:1: not YAML: "x" is no whole number that can be read'),
        ("!!bool yes", 'f:1:1: not YAML: "yes" is neither true nor false'),
        ("!!map [1]", "f:1:1: not YAML: expected a mapping node, but found sequence"),
        ("[" * 100_000, "f: not YAML: nested too deeply"),
    ],
)
def test_a_fault_says_where_and_what(text: str, fault: str) -> None:
    with pytest.raises(InputError) as raised:
        decode_yaml(text, "f")
    assert str(raised.value) == fault


@pytest.mark.parametrize(
    "text",
    [
        '!!python/object/apply:os.system ["true"]',
        "!!python/name:os.system",
        "!!binary aGk=",
        "!!timestamp 2024-01-01",
        "!!set {a, b}",
        "!own 5",
    ],
)
def test_tags_of_anything_but_plain_values_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="only plain values are read"):
        decode_yaml(text, "f")


def test_a_few_aliases_that_stand_for_billions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InputError, match="more than 1,000,000 values"):
        decode_yaml("\n".join(lines), "f")


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("a:\n  - b: 1\n    c: 2\n", ["a", 0, "c"], (3, 8)),
        ('{"a": [\n\t{"c": 5}]}', ["a", 0, "c"], (2, 8)),
        ("a: {b: 1}", ["a", "missing"], (1, 4)),
        ("[1", ["a"], None),
        ("", ["a"], None),
    ],
)
def test_a_value_is_found_by_its_path_in_yaml_and_in_json(
    text: str, path: list[str | int], place: tuple[int, int] | None
) -> None:
    assert locate(text, path) == place
