"""A saved state as the beginning of a fixture: what is restored goes on as it would have, the rest is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvtier_cli.errors import InputError
from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import run_fixture, run_ops, runner_of
from kvtier_cli.replay.ops import OpRunner
from kvtier_cli.replay.preset import state_to_restore
from kvtier_cli.tiering.topology_shape import topology_from_builtins

TOPOLOGY = (
    "topology: {primary: {capacity: 3},"
    " tiers: [{name: t0, capacity: 2, store_latency: 2}, {name: t1, load_latency: 2}]}"
)


def fixture_text(state: str, *ops: str, topology: str = TOPOLOGY) -> str:
    """A fixture that starts from `state`, on line 3."""
    return f"{topology}\nops:\n- {{op: preset, state: {state}}}\n" + "\n".join(f"- {op}" for op in ops)


def expect_after(state: str, expect: str, *ops: str, topology: str = TOPOLOGY) -> None:
    """Runs ops from `state`, and checks that the last step's outcome is as expected."""
    text = fixture_text(state, *ops, f"{{op: step, expect: {expect}}}", topology=topology)
    report = run_fixture(fixture_from_text(text, "slice.yaml"))
    assert report.mismatches == ()
    assert report.verdict == "ok"


class TestRestoring:
    def test_blocks_are_there_in_their_order_and_ready(self) -> None:
        state = "{policy: {order: [b2, b1]}, tiers: {t0: [b9, b8]}}"
        expect_after(
            state, "{state: {blocks: {b1: 0, b2: 0}, policy: {order: [b2, b1]}, tiers: {t0: [b9, b8], t1: []}}}"
        )

    def test_without_the_policys_lists_the_blocks_stand_in_their_order(self) -> None:
        expect_after("{blocks: {b2: 0, b1: 0}}", "{state: {policy: {order: [b2, b1]}, free: 1, evictable: 2}}")
        arc = "topology: {primary: {capacity: 3, policy: arc}}"
        expect_after("{blocks: {b2: 0, b1: 0}}", "{state: {policy: {t1: [b2, b1], t2: []}}}", topology=arc)

    def test_arcs_ghosts_and_target_are_restored(self) -> None:
        arc = "topology: {primary: {capacity: 3, policy: arc}}"
        state = "{policy: {name: arc, t1: [b1], t2: [b2, b3], b1: [b4], target: 0.5}}"
        # b4's ghost moves the target by one, and then T1 has what it is meant to have: b1 goes.
        ops = ("{op: request, id: r1}", "{op: store, id: r1, blocks: [b4], expect: {evicted: [b1]}}")
        expect_after(state, "{state: {policy: {t1: [b4], t2: [b2, b3], b1: [b1], target: 1.5}}}", *ops, topology=arc)

    def test_a_running_cascade_pins_its_blocks_until_it_is_due(self) -> None:
        job = "{tier: t0, kind: cascade, req: r9, blocks: [b1], due: 1}"
        state = f"{{blocks: {{b1: 1, b2: 0}}, jobs: [{job}]}}"
        expect_after(state, "{completed: [], state: {blocks: {b1: 1}, tiers: {t0: []}}}")
        expect_after(
            state, "{completed: [{job: 0, req: r9}], state: {blocks: {b1: 0}, tiers: {t0: [b1]}}}", "{op: step}"
        )

    def test_a_job_that_does_not_say_when_it_is_due_starts_anew(self) -> None:
        state = "{blocks: {b1: 1}, jobs: [{tier: t0, kind: cascade, req: r9, blocks: [b1]}]}"
        expect_after(state, "{completed: []}", "{op: step}")
        expect_after(state, "{completed: [{job: 0}]}", "{op: step}", "{op: step}")

    def test_promotions_running_and_queued_come_to_their_end(self) -> None:
        state = (
            "{blocks: {b1: null, b2: null}, tiers: {t1: [b1, b2]},"
            " jobs: [{tier: t1, kind: promotion, req: r9, blocks: [b1], due: 1}],"
            " queued: [{tier: t1, req: r9, blocks: [b2]}]}"
        )
        expect_after(state, "{state: {blocks: {b1: 0, b2: null}, jobs: [{job: 1, blocks: [b2]}]}}", "{op: step}")

    def test_a_part_that_is_not_named_stays_as_it_is(self) -> None:
        text = fixture_text("{tiers: {t1: [b2]}}", "{op: step, expect: {state: {tiers: {t0: [b1], t1: [b2]}}}}")
        seeded = text.replace(
            "ops:\n", "ops:\n- {op: seed, tier: t0, blocks: [b1]}\n- {op: seed, tier: t1, blocks: [b1]}\n"
        )
        assert run_fixture(fixture_from_text(seeded, "slice.yaml")).verdict == "ok"

    def test_what_it_replaces_is_gone(self) -> None:
        text = fixture_text("{blocks: {b2: 0}, tiers: {t0: []}}", "{op: step, expect: {not_resident: [b1]}}")
        before = (
            "- {op: request, id: r1}\n- {op: store, id: r1, blocks: [b1]}\n- {op: finish, id: r1}\n"
            + "- {op: step}\n" * 3
        )
        report = run_fixture(fixture_from_text(text.replace("ops:\n", "ops:\n" + before), "slice.yaml"))
        assert report.verdict == "ok"

    def test_promotions_stay_held_until_the_flush(self) -> None:
        state = "{held: true, tiers: {t0: [b1]}}"
        run = "{op: run, id: r1, blocks: [b1], expect: {outcomes: [held]}}"
        flushed = "{op: run, id: r2, blocks: [b2], expect: {outcomes: [absent]}}"
        expect_after(state, "{state: {evictable: 2}}", run, "{op: flushed}", flushed, *(["{op: step}"] * 3))

    def test_a_finished_request_goes_on_waiting_for_its_parked_cascade(self) -> None:
        topology = "topology: {primary: {capacity: 3}, tiers: [{name: t0, request_level: true, lookup_retry: 2}]}"
        state = (
            "{blocks: {b1: null}, tiers: {t0: [b1, b2]}, queued: [{tier: t0, req: r8, blocks: [b1]}],"
            " waiting: [{req: r9, parked: {t0: [b1]}}],"
            " retries: {t0: {lookups: {b2: 1}, asked_by: {r9: [b2]}}}}"
        )
        asked = "{op: request, id: r1}", "{op: lookup, id: r1, block: b2, expect: {result: RETRY}}"
        again = "{op: lookup, id: r1, block: b2, expect: {result: HIT_PENDING}}"
        over = "{op: step, expect: {state: {live: [r9, r1]}}}"
        expect_after(state, "{tier_finished: [{tier: t0, req: r9}]}", *asked, again, over, topology=topology)

    def test_chance_goes_on_where_it_was(self) -> None:
        """Of two loads the second fails under this seed; a state after the first draw begins with that one."""
        topology = (
            "topology: {primary: {capacity: 3}, replay: {max_wait_steps: 1},"
            " tiers: [{name: t0, fail_rate: 0.3, seed: 7}]}"
        )
        run = "{{op: run, id: r1, blocks: [b1], expect: {{outcomes: [{0}]}}}}"
        expect_after("{tiers: {t0: [b1]}}", "{}", run.format("promoted"), topology=topology)
        expect_after("{tiers: {t0: [b1]}, draws: {t0: 1}}", "{}", run.format("failed"), topology=topology)

    @pytest.mark.parametrize(
        ("lost", "why"),
        [
            ("reason: evicted, by: r7, tier: t0", "{reason: evicted, by: r7}"),
            ("reason: refused, by: r7", "{reason: refused, by: r7}"),
        ],
    )
    def test_losses_are_remembered(self, lost: str, why: str) -> None:
        run = f"{{op: run, id: r1, blocks: [b1], expect: {{outcomes: [absent], tiers: [null], why: {why}}}}}"
        expect_after(f"{{lost: [{{block: b1, {lost}}}]}}", "{}", run)


BLOCKS = st.sampled_from(["b1", "b2", "b3", "b4", "b5"])
RUNS = st.lists(
    st.tuples(
        st.lists(BLOCKS, min_size=1, max_size=4, unique=True),
        st.sampled_from([None, [], [{"locality": "local"}], [{"medium": "cpu"}]]),
    ),
    min_size=1,
    max_size=5,
)
TIERS = st.fixed_dictionaries(
    {
        "medium": st.sampled_from([None, "cpu", "storage"]),
        "locality": st.sampled_from([None, "local", "remote"]),
        "capacity": st.sampled_from([None, 2, 4]),
        "load_latency": st.integers(0, 3),
        "store_latency": st.integers(0, 3),
        "lookup_retry": st.integers(0, 1),
        "fail_loads": st.lists(BLOCKS, max_size=1),
    }
)
TOPOLOGIES = st.fixed_dictionaries(
    {
        "primary": st.fixed_dictionaries(
            {"capacity": st.integers(2, 5), "policy": st.sampled_from(["lru", "arc"])},
        ),
        "tiers": st.lists(TIERS, max_size=2).map(
            lambda tiers: [{"name": f"t{index}", **tier} for index, tier in enumerate(tiers)]
        ),
        "replay": st.just({"max_wait_steps": 2}),
    }
)


def runs(requests: Any, first: int) -> list[dict[str, Any]]:
    return [
        {"op": "run", "id": f"r{first + index}", "blocks": blocks, "kv_load_tiers": load_filter}
        for index, (blocks, load_filter) in enumerate(requests)
    ]


def without_job_ids(value: Any) -> Any:
    """Without what a state does not hold: the ids of jobs, and what once happened to a block that is nowhere now."""
    if isinstance(value, dict):
        return {key: without_job_ids(item) for key, item in value.items() if key not in ("job", "why")}
    return [without_job_ids(item) for item in value] if isinstance(value, list) else value


@given(topology=TOPOLOGIES, before=RUNS, after=RUNS)
def test_a_saved_state_goes_on_as_its_manager_does(topology: Any, before: Any, after: Any) -> None:
    original = OpRunner(topology_from_builtins(topology, "x"))
    for op in runs(before, 0):
        original.run(op)
    saved = json.loads(json.dumps({**state_to_restore(original.manager), **_names_of(original)}))
    assume(not saved["live"])
    ops = [{"op": "preset", "state": saved}, *runs(after, len(before))]
    fixture = fixture_from_text(json.dumps({"topology": topology, "ops": ops}), "slice.json")
    runner = runner_of(fixture)
    results = run_ops(fixture, runner)
    next(results)
    assert without_job_ids(runner.state()) == without_job_ids(original.state())
    for result in results:
        expected = original.run(result.op.fields)
        assert without_job_ids(result.outcome) == without_job_ids(expected)
        assert without_job_ids(runner.state()) == without_job_ids(original.state())


def _names_of(runner: OpRunner) -> dict[str, Any]:
    """The jobs with the requests' names: the loop has numbered them."""
    named = runner.state()
    jobs = zip(state_to_restore(runner.manager)["jobs"], named["jobs"], strict=True)
    return {"jobs": [{**job, "req": shown["req"]} for job, shown in jobs]}


def test_a_state_with_other_keys_is_saved_under_names() -> None:
    runner = OpRunner(topology_from_builtins({"tiers": [{"name": "t0"}]}, "x"))
    manager = runner.manager
    manager.on_new_request(0)
    prepared = manager.prepare_store(0, [17, 18])
    assert prepared is not None
    manager.complete_store(0, prepared.keys)
    manager.on_request_finished(0)
    state = state_to_restore(manager, lambda key: f"b{key}")
    assert state["blocks"] == {"b17": 1, "b18": 1}
    assert state["policy"] == {"name": "lru", "order": ["b18", "b17"]}
    assert state["jobs"] == [
        {"job": 0, "tier": "t0", "kind": "cascade", "req": "0", "blocks": ["b17", "b18"], "due": 0}
    ]


@pytest.mark.parametrize(
    ("state", "message", "hint"),
    [
        ("{block: {}}", "block: unknown field", 'did you mean "blocks"?'),
        ("{blocks: [b1]}", "blocks: expected an object: block → its pins", None),
        ("{blocks: {1: 0}}", "blocks.1: expected a block's name, found 1", "names are texts: quote it"),
        ("{policy: {t1: [b1]}}", "policy.t1: unknown field", "known are name, order"),
        ("{policy: {name: arc}}", "policy.name: the primary of this topology is lru, not arc", None),
        ("{policy: {order: b1}}", 'policy.order: expected a list of blocks, found "b1"', None),
        ("{policy: {order: [b1, b1]}}", 'policy: block "b1" stands in it twice', None),
        ("{policy: {order: [b1, b2, b3, b4]}}", "policy: holds more blocks than the primary has slots: 3", None),
        ("{policy: {order: [b1]}, blocks: {}}", 'blocks: has no "b1", which the policy lists', None),
        ("{policy: {order: []}, blocks: {b1: 0}}", 'policy: does not list "b1", which is in blocks', None),
        ("{tiers: {t9: []}}", 'tiers.t9: unknown tier "t9"', None),
        ("{tiers: {t0: [b1, b2, b3]}}", "tiers.t0: holds 3 blocks, and the tier has room for 2", None),
        ("{tiers: {t0: [b1, b1]}}", 'tiers.t0: block "b1" stands in it twice', None),
        ("{tiers: {t0: [1]}}", "tiers.t0[0]: expected a block's name, found 1", "names are texts: quote it"),
        (
            "{blocks: {b1: 2}}",
            "blocks.b1: has 2 pins, and the cascades in jobs hold 0",
            "a preset restores no loads under way",
        ),
        (
            "{blocks: {b1: null}}",
            "blocks.b1: is pending, and no promotion in jobs or queued writes it",
            "a preset restores no stores",
        ),
        (
            "{blocks: {b1: 0}, queued: [{tier: t0, req: r1, blocks: [b1]}]}",
            "blocks.b1: is being promoted: expected null (pending)",
            None,
        ),
        ("{jobs: [{tier: t0, kind: cascade, req: r1}]}", 'jobs[0]: has no "blocks"', "expected a list of blocks"),
        (
            "{jobs: [{tier: t0, kind: cascade, req: r1, blocks: [b1]}]}",
            'jobs: block "b1" is moved by a job and is not in the primary',
            None,
        ),
        (
            "{jobs: [{tier: t0, kind: copy, req: r1, blocks: []}]}",
            'jobs[0].kind: expected promotion or cascade, found "copy"',
            None,
        ),
        ("{jobs: [{tier: t9, kind: cascade, req: r1, blocks: []}]}", 'jobs[0].tier: unknown tier "t9"', None),
        ("{jobs: [{tier: t0, due: -1, kind: cascade, req: r1, blocks: []}]}", "jobs[0].due: expected a whole", None),
        (
            "{blocks: {b1: null}, queued: [{tier: t0, req: r1, blocks: [b1]}, {tier: t1, req: r1, blocks: [b1]}]}",
            'jobs: block "b1" cannot be moved by all of these jobs at a time',
            None,
        ),
        ("{live: [r1]}", 'live: request "r1" is live, and a preset restores no live requests', "save the state where"),
        ("{blocks: {b1: 0}, free: 3}", "free: is 3, and the rest of the state makes it 2", None),
        ("{blocks: {b1: 0}, evictable: 0}", "evictable: is 0, and the rest of the state makes it 1", None),
        ("{held: 1}", "held: expected true or false, found 1", None),
        (
            "{waiting: [{req: r1, parked: {t0: [b1]}}]}",
            'waiting[0].parked.t0: tier "t0" is not request_level: nothing is parked for it',
            None,
        ),
        ("{waiting: [{req: r1, parked: {}}]}", "waiting[0]: waits for nothing: no block of it is parked", None),
        ("{waiting: [{req: r1}]}", 'waiting[0]: has no "parked"', "expected an object: request-level tier"),
        (
            "{retries: {t0: {lookups: {b1: 1}, asked_by: {r1: [b1]}}}}",
            'retries.t0.asked_by.r1: request "r1" is not waiting, and a tier forgets the others',
            None,
        ),
        ("{retries: {t0: {lookups: {b1: 1}}}}", "retries.t0.lookups.b1: no request in asked_by has asked for it", None),
        ("{draws: {t0: 3}}", 'draws.t0: tier "t0" has no fail_rate', None),
        ("{draws: {t0: 99999999999}}", "draws: expected an object: tier → a whole number from 0 to a billion", None),
        ("{lost: [{block: b1, reason: evicted, by: r1}]}", 'lost[0]: has no "tier"', "expected the tier that it was"),
        (
            "{lost: [{block: b1, reason: cold, by: r1}]}",
            'lost[0].reason: expected evicted or refused, found "cold"',
            None,
        ),
        ("{lost: [{block: b1, reason: evicted, by: r1, tier: t9}]}", 'lost[0].tier: unknown tier "t9"', None),
        ("{blocks: {}, pending_work: true}", "pending_work: is true, and the rest of the state makes it false", None),
    ],
)
def test_a_state_that_cannot_be_is_refused(state: str, message: str, hint: str | None) -> None:
    with pytest.raises(InputError) as raised:
        fixture_from_text(fixture_text(state), "slice.yaml")
    assert str(raised.value).startswith(f"slice.yaml:3: ops[0].state.{message}")
    assert hint is None or (raised.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{policy: {target: 4}}", "policy.target: is more than the primary has slots: 3"),
        ("{policy: {b1: [b1, b2, b3, b4]}}", "policy: holds more blocks than the primary has slots: 3"),
        ("{policy: {t1: [b1], b2: [b1]}}", 'policy: block "b1" stands in it twice'),
    ],
)
def test_ghosts_and_the_target_have_their_bounds(state: str, message: str) -> None:
    topology = "topology: {primary: {capacity: 3, policy: arc}}"
    with pytest.raises(InputError) as raised:
        fixture_from_text(fixture_text(state, topology=topology), "slice.yaml")
    assert str(raised.value) == f"slice.yaml:3: ops[0].state.{message}"


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("{op: request, id: r1}", "preset: the state cannot be set while requests are live: r1"),
        ("{op: run, id: r1, blocks: [b1]}", "preset: the state cannot be set while jobs run"),
    ],
)
def test_the_state_of_a_manager_at_work_is_not_replaced(before: str, message: str) -> None:
    text = f"{TOPOLOGY}\nops:\n- {before}\n- {{op: preset, state: {{}}}}"
    with pytest.raises(InputError) as raised:
        run_fixture(fixture_from_text(text, "slice.yaml"))
    assert str(raised.value) == f"slice.yaml:4: ops[1]: {message}"
