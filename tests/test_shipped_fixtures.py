"""The scripted fixtures that come with kvtier: each passes, says what it teaches, and would notice if it were wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.replay.expect import is_range
from kvtier_cli.replay.fixture import fixture_from_text, read_fixture
from kvtier_cli.replay.fixture_run import run_fixture
from kvtier_cli.replay.update import updated_text
from kvtier_cli.shipped import shipped_folder
from kvtier_cli.tiering.yaml_text import decode_yaml

FIXTURES = sorted(shipped_folder().glob("*.yaml"))
README = (shipped_folder() / "README.md").read_text(encoding="utf-8")

each_fixture = pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)


@each_fixture
def test_it_passes(path: Path) -> None:
    report = run_fixture(read_fixture(str(path)))
    assert report.mismatches == ()
    assert report.verdict == "ok"


@each_fixture
def test_it_is_short_and_says_what_it_teaches(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    fixture = fixture_from_text(text, path.name)
    assert 5 <= len(fixture.ops) <= 15
    assert text.startswith("# ")
    assert max(map(len, text.splitlines())) <= 120
    assert f"| `{path.name}` | {fixture.title} |" in README.replace("`[]`", "[]")


def test_the_list_of_fixtures_names_no_others() -> None:
    listed = [line.split("`")[1] for line in README.splitlines() if line.startswith("| `")]
    assert sorted(name for name in listed if name.endswith(".yaml")) == [path.name for path in FIXTURES]


@each_fixture
def test_each_of_its_expectations_can_fail(path: Path) -> None:
    value = decode_yaml(path.read_text(encoding="utf-8"), path.name)
    assert isinstance(value, dict)
    falsified = 0
    for index, op in enumerate(value["ops"]):
        for holder, key in _leaves(op.get("expect", {})):
            right, holder[key] = holder[key], _other(holder[key])
            report = run_fixture(fixture_from_text(json.dumps(value), "falsified.json"))
            assert [mismatch.op for mismatch in report.mismatches] == [index], key
            holder[key] = right
            falsified += 1
    assert falsified >= 3


def _leaves(expect: Any) -> Iterator[tuple[Any, Any]]:
    """Where the values of an `expect` stand: what holds them, and under which key."""
    for key, value in expect.items() if isinstance(expect, dict) else enumerate(expect):
        if (isinstance(value, dict) and not is_range(value)) or (
            isinstance(value, list) and any(isinstance(item, dict) for item in value)
        ):
            yield from _leaves(value)
        elif key != "not_resident":
            yield expect, key


def _other(value: Any) -> Any:
    if isinstance(value, list):
        return [*value, "b99"]
    if isinstance(value, bool) or not isinstance(value, int):
        return "something else"
    return value + 1


@each_fixture
def test_an_update_has_nothing_to_do(path: Path) -> None:
    assert updated_text(read_fixture(str(path))).changes == 0
