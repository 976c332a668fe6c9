"""`--update`: a fixture expects what comes out now, and its text is otherwise the same, byte for byte."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_fixture, runner_of
from kvtier_cli.replay.update import update_fixture, updated_text
from kvtier_cli.shipped import shipped_folder
from kvtier_cli.tiering.yaml_text import decode_yaml

HEAD = """\
# Remarks stay.
topology: {primary: {capacity: 2}, tiers: [{name: t0, medium: storage}, {name: t1}]}   # and spaces, too

ops:
  - {op: seed, tier: t0, blocks: [b1]}
  - {op: request, id: r1}
"""


def lookup(expect: str) -> str:
    """A fixture whose last op answers HIT_PENDING from t0, with verdicts [hit, not_reached]."""
    return f"{HEAD}  - op: lookup\n    id: r1\n    block: b1\n    expect:{expect}\n  # the end\n"


def step(expect: str) -> str:
    """A fixture in whose last op two cascades end, of b1 and b2 each."""
    ops = "{op: store, id: r1, blocks: [b2, b3]}", "{op: step}"
    return HEAD + "".join(f"  - {op}\n" for op in ops) + f"  - op: step\n    expect:{expect}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lookup(" {result: HIT}"), lookup(" {result: HIT_PENDING}")),
        (lookup(" { result:   HIT }   # why"), lookup(" { result:   HIT_PENDING }   # why")),
        (lookup(' {"result": "HIT"}'), lookup(' {"result": "HIT_PENDING"}')),
        (lookup(" {result: 'HIT'}"), lookup(" {result: 'HIT_PENDING'}")),
        (lookup("\n      result: HIT  # why"), lookup("\n      result: HIT_PENDING  # why")),
        (
            lookup("\n      # why\n      result:\n        HIT"),
            lookup("\n      # why\n      result:\n        HIT_PENDING"),
        ),
        (
            lookup("\n      result: |\n        HIT\n      denied: t1"),
            lookup("\n      result: HIT_PENDING\n      denied: null"),
        ),
        (lookup("\n      promotion:  # none\n      source:"), lookup("\n      promotion: t0  # none\n      source:")),
        (lookup(" {promotion:, source: ~}"), lookup(" {promotion: t0, source: ~}")),
        (lookup(" {verdicts: [hit]}"), lookup(" {verdicts: [hit, not_reached]}")),
        (lookup(" {verdicts: []}"), lookup(" {verdicts: [hit, not_reached]}")),
        (lookup(" {verdicts: [ miss , miss , miss ]}"), lookup(" {verdicts: [ hit , not_reached ]}")),
        (lookup(" {verdicts: [hit, miss, ]}"), lookup(" {verdicts: [hit, not_reached, ]}")),
        (lookup(" {evicted: [b7, b8, ]}"), lookup(" {evicted: []}")),
        (lookup(" {verdicts: null}"), lookup(" {verdicts: [hit, not_reached]}")),
        (
            lookup("\n      verdicts:  # one a tier\n      - hit   # t0\n      - hit   # t1\n      - hit   # t2"),
            lookup("\n      verdicts:  # one a tier\n      - hit   # t0\n      - not_reached   # t1"),
        ),
        (
            lookup("\n      verdicts:\n        - hit   # t0\n      # behind it"),
            lookup("\n      verdicts:\n        - hit   # t0\n        - not_reached\n      # behind it"),
        ),
        (
            lookup("\n      evicted:\n      - b7\n      denied: null"),
            lookup("\n      evicted:\n       []\n      denied: null"),
        ),
        (lookup(" {not_resident: [b1, b2]}"), lookup(" {not_resident: [b2]}")),
        (lookup(" {state: {free: {min: 1, max: 5}}}"), lookup(" {state: {free: {min: 1, max: 5}}}")),
        (lookup(" {state: {free: {min: 2}}}"), lookup(" {state: {free: 1}}")),
        (
            lookup("\n      state:\n        free:\n          min: 2"),
            lookup("\n      state:\n        free:\n           1"),
        ),
        (lookup(" {state: {free: 1.0, blocks: {b1: 0}}}"), lookup(" {state: {free: 1.0, blocks: {b1: null}}}")),
        (lookup(" {state: {pending_work: yes}}"), lookup(" {state: {pending_work: false}}")),
        (
            step(" {completed: [{tier: t9}]}"),
            step(" {completed: [{tier: t0}, {tier: t1}]}"),
        ),
        (
            step("\n      completed:\n        - tier: t9   # one\n          job: {min: 0}"),
            step(
                "\n      completed:\n        - tier: t0   # one\n          job: {min: 0}\n        - {job: 1, tier: t1}"
            ),
        ),
    ],
)
def test_only_what_is_named_and_wrong_is_rewritten(before: str, after: str) -> None:
    assert updated_text(fixture_from_text(before, "bug.yaml")).text == after
    windows = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
    assert updated_text(fixture_from_text(windows[0], "bug.yaml")).text == windows[1]


JSON_OPS = '{"op": "seed", "tier": "nvme", "blocks": ["b\u00e91"]}, {"op": "request", "id": "r1"}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"result": "MISS",\t"verdicts": []}', '{"result": "HIT_PENDING",\t"verdicts": ["hit", "not_reached"]}'),
        ('{\n "evicted": [\n  "b7"\n ]\n}', '{\n "evicted": [\n  \n ]\n}'),
        (
            '{"state": {"queued": null}}',
            '{"state": {"queued": [{"tier": "nvme", "req": "r1", "blocks": ["b\u00e91"]}]}}',
        ),
    ],
)
def test_json_stays_json(before: str, after: str) -> None:
    text = '{"ops": [' + JSON_OPS + ', {"op": "lookup", "id": "r1", "block": "b\u00e91",\n "expect": %s}]}'
    assert updated_text(fixture_from_text(text % before, "bug.json")).text == text % after


def test_whole_outcomes_are_rewritten_as_they_are_laid_out() -> None:
    right = {"op": "step", "completed": [], "tier_finished": [], "events": []}
    text = '{"topology":{"primary":{"capacity":1}},"ops":[{"op":"step"}],"outcomes":[%s]}'
    wrong = json.dumps({"op": "stop", "completed": [1], "odd": 1, "events": []}, separators=(",", ":"))
    updated = updated_text(fixture_from_text(text % wrong, "recording.json")).text
    assert json.loads(updated)["outcomes"] == [right]
    assert updated == text % '{"op":"step","completed":[],"events":[],"tier_finished":[]}'


def test_whole_outcomes_may_stand_in_blocks_of_yaml() -> None:
    text = (
        "ops:\n- op: step\noutcomes:\n- op: step   # it is\n  odd: 1\n  events: []   # none\n  more:\n    x: 1\n# end\n"
    )
    updated = updated_text(fixture_from_text(text, "recording.yaml")).text
    assert updated == (
        "ops:\n- op: step\noutcomes:\n- op: step   # it is\n  events: []   # none\n"
        "  completed: []\n  tier_finished: []\n# end\n"
    )


class TestRefusals:
    @pytest.mark.parametrize(
        ("before", "message"),
        [
            (
                lookup(" {result: HIT, state: {blocks: {b7: 0}}}"),
                "bug.yaml:10: ops[2].expect.state.blocks.b7: cannot be rewritten: there is no such thing now",
            ),
            (
                lookup(" {promotion: &x t1, denied: *x}"),
                "bug.yaml:10: ops[2].expect.promotion: cannot be rewritten: by an alias (*)",
            ),
            (
                lookup(" {verdicts: !!seq [hit]}"),
                "bug.yaml:10: ops[2].expect.verdicts: cannot be rewritten behind an anchor or a tag",
            ),
            (lookup(" {promotion, result: HIT}"), "bug.yaml: cannot be rewritten in place"),
        ],
    )
    def test_what_cannot_be_rewritten_is_said_and_nothing_changed(
        self, before: str, message: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "bug.yaml"
        file.write_text(before)
        with pytest.raises(InputError) as raised:
            update_fixture(str(file))
        assert str(raised.value).removeprefix(f"{tmp_path}/").startswith(message)
        assert file.read_text() == before
        assert list(tmp_path.iterdir()) == [file]


class TestFiles:
    WRONG = lookup(" {result: HIT}")
    RIGHT = lookup(" {result: HIT_PENDING}")

    def test_the_file_is_replaced_and_keeps_its_marks_and_rights(self, tmp_path: Path) -> None:
        file = tmp_path / "bug.yaml"
        file.write_bytes(b"\xef\xbb\xbf" + self.WRONG.replace("\n", "\r\n").encode())
        file.chmod(0o640)
        assert update_fixture(str(file)) == 1
        assert file.read_bytes() == b"\xef\xbb\xbf" + self.RIGHT.replace("\n", "\r\n").encode()
        assert file.stat().st_mode & 0o777 == 0o640
        assert list(tmp_path.iterdir()) == [file]

    def test_a_file_that_is_right_is_not_touched(self, tmp_path: Path) -> None:
        file = tmp_path / "bug.yaml"
        file.write_text(self.RIGHT)
        before = file.stat()
        assert update_fixture(str(file)) == 0
        assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        file, link = tmp_path / "bug.yaml", tmp_path / "link.yaml"
        file.write_text(self.WRONG)
        link.symlink_to(file)
        assert update_fixture(str(link)) == 1
        assert link.is_symlink()
        assert file.read_text() == self.RIGHT

    def test_what_is_no_file_is_refused(self) -> None:
        reader, writer = os.pipe()
        os.write(writer, self.WRONG.encode())
        os.close(writer)
        with pytest.raises(InputError, match="is no regular file and cannot be rewritten"):
            update_fixture(f"/dev/fd/{reader}")
        os.close(reader)

    def test_a_failure_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "bug.yaml"
        file.write_text(self.WRONG)

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(EnvironmentFault, match="cannot be rewritten: no space left on device"):
            update_fixture(str(file))
        assert file.read_text() == self.WRONG
        assert list(tmp_path.iterdir()) == [file]


def _with_remarks(text: str) -> str:
    return "".join(f"{line}   # remark {number}\n" for number, line in enumerate(text.splitlines()))


def _yaml(flow: bool | None, width: int = 1000) -> Callable[[Any], str]:
    def dump(value: Any) -> str:
        text: str = yaml.safe_dump(value, default_flow_style=flow, sort_keys=False, width=width)
        return text

    return dump


LAYOUTS: dict[str, Callable[[Any], str]] = {
    "x.json": json.dumps,
    "compact.json": lambda value: json.dumps(value, separators=(",", ":")),
    "pretty.json": lambda value: json.dumps(value, indent=2),
    "windows.json": lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n"),
    "json.yaml": json.dumps,
    "flow.yaml": _yaml(True),
    "narrow.yaml": lambda value: _with_remarks(_yaml(True, 40)(value)),
    "block.yaml": lambda value: _with_remarks(_yaml(False)(value)),
    "mixed.yaml": lambda value: _with_remarks(_yaml(None)(value)),
    "windows.yaml": lambda value: _yaml(False)(value).replace("\n", "\r\n"),
}
SCENARIOS = {
    path.stem: {key: value for key, value in decode_yaml(path.read_text(), "").items() if key != "title"}
    for path in sorted(shipped_folder().glob("*.yaml"))
}


@st.composite
def altered(draw: st.DrawFn, value: Any) -> Any:
    """A value of the same kind that is right in some parts and wrong in others."""
    if isinstance(value, dict):
        return {key: draw(altered(item)) for key, item in value.items()}
    if isinstance(value, list):
        kept = value[: draw(st.integers(0, len(value)))]
        if all(isinstance(item, str) for item in value):
            wrong = st.sampled_from(["b98", "b99"])
            return [draw(st.one_of(st.just(item), wrong)) for item in kept] + draw(st.lists(wrong, max_size=2))
        return [draw(altered(item)) for item in kept]
    if isinstance(value, int) and not isinstance(value, bool):
        return draw(st.sampled_from([value, value + 1, {"min": value}, {"max": value - 1}]))
    return draw(st.sampled_from([value, value, "b97", None]))


@st.composite
def fixtures(draw: st.DrawFn) -> dict[str, Any]:
    """A shipped fixture with other expectations: some fields of the outcomes, altered."""
    scenario = json.loads(json.dumps(SCENARIOS[draw(st.sampled_from(sorted(SCENARIOS)))]))
    for op in scenario["ops"]:
        op.pop("expect", None)
    runner = runner_of(fixture_from_text(json.dumps(scenario), "x"))
    for op in scenario["ops"]:
        outcome = json.loads(json.dumps(runner.run(op) | {"state": runner.state()}))
        if op["op"] == "preset":  # its own state is no expectation
            continue
        names = draw(st.lists(st.sampled_from(sorted(outcome)), unique=True, max_size=4))
        op["expect"] = {name: draw(altered(outcome[name])) for name in names}
        if draw(st.booleans()):
            op["expect"]["not_resident"] = draw(st.lists(st.sampled_from(["b1", "b2", "b99"]), unique=True))
    return scenario


def outside_expectations(text: str) -> list[str]:
    """The lines of a fixture in block style that belong to no `expect`."""
    lines: list[str] = []
    inside: int | None = None
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        if inside is not None and depth > inside:
            continue
        inside = depth if line.lstrip(" -").startswith("expect:") else None
        lines.append(line if inside is None else line.partition("expect:")[0])
    return lines


@given(scenario=fixtures(), name=st.sampled_from(sorted(LAYOUTS)))
def test_after_an_update_a_fixture_passes_and_a_second_one_changes_nothing(scenario: Any, name: str) -> None:
    fixture = fixture_from_text(LAYOUTS[name](scenario), name)
    was_right = not run_fixture(fixture).mismatches
    updated = updated_text(fixture)
    again = fixture_from_text(updated.text, name)
    assert run_fixture(again).mismatches == ()
    assert updated_text(again) == (updated.text, 0)
    assert was_right == (updated.changes == 0) == (updated.text == fixture.source.text)
    assert [{**op.fields, "expect": None} for op in again.ops] == [{**op.fields, "expect": None} for op in fixture.ops]
    # What is named stays named, but for the items of lists.
    for old, new in zip(fixture.ops, again.ops, strict=True):
        assert list(old.expect) == list(new.expect)
    if name in ("block.yaml", "windows.yaml"):
        assert outside_expectations(updated.text) == outside_expectations(fixture.source.text)
    assert ("\r\n" in updated.text) == name.startswith("windows")
    assert updated.text.count("\r\n") in (0, updated.text.count("\n"))
