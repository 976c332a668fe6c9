"""Scripted fixtures as people write them: what is read, and what the errors about the rest say and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.replay.fixture import fixture_from_text, read_fixture
from kvtier_cli.replay.fixture_run import run_fixture
from kvtier_cli.shipped import shipped_folder
from kvtier_cli.tiering.topology import BUILT_IN
from kvtier_cli.tiering.yaml_text import decode_yaml

BUG = """\
# found on a Monday
kvtier: 1
title: a storage filter leaves the undeclared tier in
topology: {primary: {capacity: 4}, tiers: [{name: t0, medium: storage}, {name: peer}]}
ops:
  - {op: seed, tier: t0, blocks: [b1, b2]}
  - {op: request, id: r1, kv_load_tiers: [{medium: storage}]}
  - op: lookup
    id: r1
    block: b1
    expect: {result: HIT_PENDING}
"""


def ops(text: str) -> str:
    """A fixture of these ops, the first of them on line 3."""
    topology = "topology: {primary: {capacity: 4}, tiers: [{name: nvme}, {name: s3}]}"
    return f"{topology}\nops:\n" + "\n".join(f"- {op}" for op in text.splitlines())


def error(text: str, name: str = "bug.yaml") -> InputError:
    with pytest.raises(InputError) as raised:
        fixture_from_text(text, name)
    return raised.value


class TestReading:
    def test_json_and_yaml_are_read_alike(self) -> None:
        one = fixture_from_text(BUG, "bug.yaml")
        other = fixture_from_text(json.dumps(decode_yaml(BUG, "bug.yaml")), "bug.yaml")
        assert (one.title, one.topology, one.ops) == (other.title, other.topology, other.ops)
        assert [op.name for op in one.ops] == ["seed", "request", "lookup"]
        assert one.ops[2].expect == {"result": "HIT_PENDING"}

    @pytest.mark.parametrize("name", ["bug.json", "bug", "bug.yml", "bug.fixture"])
    def test_the_form_is_told_from_the_text_whatever_the_name(self, name: str) -> None:
        text = '\n{"ops": [\n\t{"op": "step"}]}'
        if name.endswith("yml"):
            text = text.replace("\t", " ")  # YAML has no tabs before a value
        assert fixture_from_text(text, name).ops[0].line == 3

    def test_each_op_knows_its_line_and_its_words(self) -> None:
        fixture = fixture_from_text(BUG, "bug.yaml")
        assert [op.line for op in fixture.ops] == [6, 7, 8]
        assert [str(op) for op in fixture.ops] == ["seed t0 b1 b2", "request r1", "lookup r1 b1"]

    def test_lines_are_counted_as_editors_do(self) -> None:
        windows = BUG.replace("\n", "\r\n").replace("Monday", "Monday\u2028")
        assert [op.line for op in fixture_from_text(windows, "bug.yaml").ops] == [6, 7, 8]

    def test_without_a_topology_the_built_in_one_holds(self) -> None:
        assert fixture_from_text("ops: [{op: seed, tier: s3, blocks: [b1]}]", "bug.yaml").topology is BUILT_IN

    def test_a_file_is_read_and_what_it_names_is_beside_it(self, tmp_path: Path) -> None:
        file = tmp_path / "bug.yaml"
        file.write_bytes(b"\xef\xbb\xbf" + BUG.encode())
        fixture = read_fixture(str(file))
        assert (fixture.file, fixture.folder, len(fixture.ops)) == (str(file), tmp_path, 3)

    def test_what_is_empty_expects_nothing(self) -> None:
        fixture = fixture_from_text("ops: [{op: step, expect: }, {op: step, expect: {}}]", "bug.yaml")
        assert [op.expect for op in fixture.ops] == [{}, {}]

    def test_an_id_may_be_used_again_when_its_request_is_over(self) -> None:
        again = ops("{op: request, id: r1}\n{op: finish, id: r1}\n{op: complete_load, id: r1}\n{op: request, id: r1}")
        assert len(fixture_from_text(again, "bug.yaml").ops) == 4


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "bug.yaml: is empty, expected a fixture", None),
        ("- op: step", 'bug.yaml:1: expected a fixture, an object with a list of ops, found [{"op":"step"}]', None),
        ("kvtier: 1", "bug.yaml:1: has no ops, the list of what is to be done", None),
        ("ops: {op: step}", 'bug.yaml:1: ops: expected a list of ops, found {"op":"step"}', None),
        ("ops: []\nkvtier: 2", "bug.yaml:2: kvtier: version 2 of a fixture is not known, only 1 is", None),
        ("ops: []\nkvtier: true", "bug.yaml:2: kvtier: version true of a fixture is not known, only 1 is", None),
        ("ops: []\ntitel: x", "bug.yaml:2: titel: unknown field", 'did you mean "title"?'),
        ("ops: []\ntitle: 7", "bug.yaml:2: title: expected a text, found 7", None),
        ("ops: [\n  op: step", "bug.yaml:2:11: not YAML: expected", None),
        (
            "ops: []\ntopology:\n  tiers: [{name: a, medum: cpu}]",
            "bug.yaml:3:28: topology.tiers[0].medum: unknown field",
            'did you mean "medium"?',
        ),
        (
            "ops: [{op: step}]\noutcomes: []",
            "bug.yaml:2: outcomes: has 0 outcomes for 1 ops, expected one an op",
            None,
        ),
        (
            "ops: [{op: step}]\noutcomes: [none]",
            'bug.yaml:2: outcomes[0]: expected an outcome, an object, found "none"',
            None,
        ),
    ],
)
def test_a_fixture_that_is_none_is_refused(text: str, message: str, hint: str | None) -> None:
    raised = error(text)
    assert str(raised).startswith(message)
    assert hint is None or raised.hint == hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('{"ops": [}', "bug.json:1:10: not JSON: expected a value", None),
        ('{"ops": [],\n"ops": []}', 'bug.json:2:1: the key "ops" stands twice in one object', None),
        ('{"ops": [\n{"op": "sted"}]}', 'bug.json:2: ops[0].op: unknown op "sted"', 'did you mean "step"?'),
    ],
)
def test_faults_of_json_have_their_place_too(text: str, message: str, hint: str | None) -> None:
    raised = error(text, "bug.json")
    assert str(raised).startswith(message)
    assert raised.hint == hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("step", 'ops[0]: expected an op such as {op: step}, found "step"', None),
        ("{id: r1}", 'ops[0]: has no "op"', None),
        ("{op: 3}", "ops[0].op: unknown op 3", None),
        ("{op: lokup, id: r1, block: b1}", 'ops[0].op: unknown op "lokup"', 'did you mean "lookup"?'),
        ("{op: seed, teir: s3, blocks: []}", "ops[0].teir: seed has no such field", 'did you mean "tier"?'),
        ("{op: step, id: r1}", "ops[0].id: step has no such field", "known are op, expect"),
        ("{op: request}", 'ops[0]: request has no "id"', "expected a request's id: a text, not empty"),
        ("{op: request, id: 1}", "ops[0].id: expected a request's id: a text, not empty, found 1", None),
        ("{op: request, id: ''}", 'ops[0].id: expected a request\'s id: a text, not empty, found ""', None),
        ("{op: seed, tier: s3}", 'ops[0]: seed has no "blocks"', "expected a list of blocks"),
        ("{op: seed, tier: s3, blocks: b1}", 'ops[0].blocks: expected a list of blocks, found "b1"', None),
        ("{op: seed, tier: s33, blocks: [b1]}", 'ops[0].tier: unknown tier "s33"', 'did you mean "s3"?'),
        (
            "{op: seed, tier: s3, blocks: [b1, 2]}",
            "ops[0].blocks[1]: expected a block's name, found 2",
            "names are texts: quote it",
        ),
        ("{op: seed, tier: s3, blocks: [b1~2]}", 'ops[0].blocks[0]: "b1~2" is no name of a block: ~ is reserved', None),
        ("{op: reset, hold: 1}", "ops[0].hold: expected true or false, found 1", None),
        ("{op: step, expect: HIT}", "ops[0].expect: expected an object, the fields of the outcome", None),
        ("{op: preset, state: {blocks: {b1: 0, b9: x}}}", "ops[0].state.blocks: expected an object", None),
    ],
)
def test_an_op_that_is_none_is_refused_with_its_place(text: str, message: str, hint: str | None) -> None:
    raised = error(ops(text))
    assert str(raised).startswith(f"bug.yaml:3: {message}")
    assert hint is None or raised.hint == hint


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("{op: lookup, id: r1}", 'ops[1]: lookup has no "block"'),
        ("{op: lookup, id: r1, block: 12}", "ops[1].block: expected a block's name, found 12"),
        (
            "{op: lookup, id: r1, block: b1, positions: [16, 32]}",
            "ops[1].positions: expected 1 tokens, one a block, found 2",
        ),
        (
            "{op: store, id: r1, blocks: [b1, b2], positions: [16]}",
            "ops[1].positions: expected 2 tokens, one a block, found 1",
        ),
        (
            "{op: store, id: r1, blocks: [b1], positions: [b1]}",
            'ops[1].positions[0]: expected a list of tokens, one a block (null where not given), found "b1"',
        ),
        ("{op: store, id: r1, blocks: [b1], positions: [-1]}", "ops[1].positions[0]: expected a list of tokens"),
        ("{op: store, id: r1, blocks: [], defer: later}", 'ops[1].defer: expected true or false, found "later"'),
        ("{op: complete_store, id: r1, success: 0}", "ops[1].success: expected true or false, found 0"),
        ("{op: complete_load, id: r1, success: true}", "ops[1].success: complete_load has no such field"),
    ],
)
def test_an_op_of_a_request_is_checked_as_well(op: str, message: str) -> None:
    assert str(error(ops("{op: request, id: r1}\n" + op))).startswith(f"bug.yaml:4: {message}")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "{op: lookup, id: r1, block: b1}",
            'bug.yaml:3: ops[0].id: request "r1" is not known here',
            "announce it: {op: request, id: r1}",
        ),
        (
            "{op: request, id: r10}\n{op: complete_store, id: r01}",
            'bug.yaml:4: ops[1].id: request "r01" is not known here',
            'did you mean "r10"?',
        ),
        (
            "{op: request, id: r1}\n{op: step}\n{op: request, id: r1}",
            'bug.yaml:5: ops[2].id: request "r1" is live already, line 3 announced it',
            None,
        ),
        (
            "{op: request, id: r1}\n{op: finish, id: r1}\n{op: finish, id: r1}",
            'bug.yaml:5: ops[2].id: request "r1" is finished, line 4 ended it',
            None,
        ),
        (
            "{op: run, id: r1, blocks: []}\n{op: touch, id: r1, blocks: []}",
            'bug.yaml:4: ops[1].id: request "r1" is finished, line 3 ended it',
            None,
        ),
    ],
)
def test_an_op_about_a_request_that_is_not_live_is_refused(text: str, message: str, hint: str | None) -> None:
    raised = error(ops(text))
    assert str(raised) == message
    assert raised.hint == hint


@pytest.mark.parametrize(
    ("op", "expect", "message", "hint"),
    [
        ("step", "{reslt: HIT}", "reslt: the outcome of step has no such field", "known are op, completed"),
        ("lookup", "{reslt: HIT}", "reslt: the outcome of lookup has no such field", 'did you mean "result"?'),
        ("lookup", "{outcomes: []}", "outcomes: the outcome of lookup has no such field", "known are"),
        ("lookup", "{state: {block: {}}}", "state.block: unknown field", 'did you mean "blocks"?'),
        ("lookup", "{state: {policy: {t1: []}}}", "state.policy.t1: unknown field", "known are name, order"),
        ("lookup", "{state: {tiers: {s33: []}}}", "state.tiers.s33: unknown field", 'did you mean "s3"?'),
        ("lookup", "{state: {jobs: [{tierr: s3}]}}", "state.jobs[0].tierr: unknown field", 'did you mean "tier"?'),
        ("lookup", "{completed: {tier: s3}}", 'completed: expected a list, found {"tier":"s3"}', None),
        ("lookup", "{evicted: [1]}", "evicted[0]: expected a block's name, found 1", "names are texts: quote it"),
        ("lookup", "{state: {blocks: {1: 0}}}", "state.blocks.1: expected a block's name, found 1", "names are texts"),
        ("lookup", "{not_resident: b1}", 'not_resident: expected a list of blocks, found "b1"', None),
        ("lookup", "{state: {free: {mn: 1}}}", "state.free.mn: expected a value or a range", 'did you mean "min"?'),
        ("lookup", "{state: {free: {}}}", "state.free: expected a value or a range", None),
        ("lookup", "{state: {free: {min: x}}}", 'state.free.min: expected a number, found "x"', None),
        ("lookup", "{state: {free: {min: 2, max: 1}}}", "state.free: nothing is at least 2 and at most 1", None),
    ],
)
def test_a_misspelt_expectation_is_refused(op: str, expect: str, message: str, hint: str | None) -> None:
    fields = "id: r1, block: b1, " if op == "lookup" else ""
    raised = error(ops(f"{{op: request, id: r1}}\n{{op: {op}, {fields}expect: {expect}}}"))
    assert str(raised).startswith(f"bug.yaml:4: ops[1].expect.{message}")
    assert hint is None or (raised.hint or "").startswith(hint)


def test_messages_show_foreign_text_cut_and_escaped() -> None:
    raised = error(ops(f'{{op: "{"x" * 1000}\\e[31m"}}'))
    assert len(str(raised)) < 150
    assert str(raised).isprintable()


SHIPPED = [path.read_text(encoding="utf-8") for path in sorted(shipped_folder().glob("*.yaml"))]
ODD_VALUES = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, -1, 2**70, 0.5, float("nan"), "", "b1", "r1", "t0", "\x1b[31m", "\ud800"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["op", "id", "blocks", "state", "min", "b1", "tier", "x"]), inner, max_size=2)
    ),
    max_leaves=3,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, item in inner for place in _places(item, (*path, key))]


@given(data=st.data())
def test_whatever_stands_somewhere_it_is_read_or_refused(data: st.DataObject) -> None:
    value: Any = decode_yaml(data.draw(st.sampled_from(SHIPPED)), "")
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(_places(value)))
        holder = value
        for step in way:
            holder = holder[step]
        if data.draw(st.booleans()):
            holder[last] = data.draw(ODD_VALUES)
        else:
            del holder[last]
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
    refusal = "odd.json"
    try:
        run_fixture(fixture_from_text(text, "odd.json"))
    except InputError as error:
        refusal = str(error)
    assert "odd.json" in refusal
    assert refusal.isprintable()
