"""What a fixture expects, held against what comes out: partial matches, ranges, absences, whole outcomes, remarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.replay.fixture import fixture_from_text
from kvtier_cli.replay.fixture_run import FixtureReport, run_fixture, run_ops, runner_of

TWO_TIERS = (
    "topology: {primary: {capacity: 2}, tiers: "
    "[{name: t0, medium: storage, locality: local}, {name: t1, load_latency: 2, lookup_retry: 0}]}"
)
SCENARIO = [
    "{op: seed, tier: t0, blocks: [b1]}",
    "{op: request, id: r1}",
    "{op: lookup, id: r1, block: b1}",
]
"""Its last op's outcome: HIT_PENDING, verdicts [hit, not_reached], promotion t0, one block pending."""


def run(ops: list[str], expect: str | None = None, topology: str = TWO_TIERS, folder: Path = Path()) -> FixtureReport:
    """Runs the ops, the last of them with this `expect`."""
    if expect is not None:
        ops = [*ops[:-1], f"{ops[-1][:-1]}, expect: {expect}}}"]
    text = f"{topology}\nops:\n" + "\n".join(f"- {op}" for op in ops)
    return run_fixture(fixture_from_text(text, "bug.yaml", folder=folder))


def mismatches(ops: list[str], expect: str, topology: str = TWO_TIERS) -> list[tuple[str, Any, Any]]:
    return [(found.path, found.expected, found.found) for found in run(ops, expect, topology).mismatches]


class TestPartialMatches:
    @pytest.mark.parametrize(
        ("expect", "count"),
        [
            ("{result: HIT_PENDING}", 1),
            ("{result: HIT_PENDING, verdicts: [hit, not_reached], promotion: t0, denied: null, source: null}", 5),
            ("{evicted: [], completed: [], events: []}", 3),
            ("{state: {blocks: {b1: null}, policy: {order: [b1]}, free: 1, queued: [{tier: t0, blocks: [b1]}]}}", 5),
            ("{state: {}, result: HIT_PENDING}", 1),
            ("{state: {live: [r1], pending_work: false, jobs: [], tiers: {t1: []}}}", 4),
            ("{state: {free: {min: 1, max: 1}, evictable: {max: 0}}}", 2),
            ("{not_resident: [b2, b3], op: lookup}", 3),
        ],
    )
    def test_what_is_named_is_checked_and_counted_and_the_rest_is_free(self, expect: str, count: int) -> None:
        report = run(SCENARIO, expect)
        assert report.mismatches == ()
        assert (report.expectations, report.ops, report.verdict) == (count, 3, "ok")

    @pytest.mark.parametrize(
        ("expect", "found"),
        [
            ("{result: HIT}", ("result", "HIT", "HIT_PENDING")),
            ("{verdicts: [hit]}", ("verdicts", ["hit"], ["hit", "not_reached"])),
            ("{verdicts: [hit, miss]}", ("verdicts", ["hit", "miss"], ["hit", "not_reached"])),
            ("{promotion: null}", ("promotion", None, "t0")),
            ("{source: host}", ("source", "host", None)),
            ("{state: {blocks: {b1: 0}}}", ("state.blocks.b1", 0, None)),
            ("{state: {blocks: {b1: {min: 0}}}}", ("state.blocks.b1", {"min": 0}, None)),
            ("{state: {blocks: {b2: null}}}", ("state.blocks.b2", None, None)),
            ("{state: {queued: [{tier: t1, blocks: [b1]}]}}", ("state.queued[0].tier", "t1", "t0")),
            ("{state: {queued: []}}", ("state.queued", [], [{"tier": "t0", "req": "r1", "blocks": ["b1"]}])),
            ("{state: {free: {min: 2}}}", ("state.free", {"min": 2}, 1)),
            ("{state: {free: {max: 0}}}", ("state.free", {"max": 0}, 1)),
            ("{state: {free: 1.5}}", ("state.free", 1.5, 1)),
            ("{state: {free: true}}", ("state.free", True, 1)),
            ("{state: {pending_work: 0}}", ("state.pending_work", 0, False)),
            ("{not_resident: [b1, b2]}", ("not_resident[0]", "b1", "resident")),
        ],
    )
    def test_what_is_not_as_expected_is_told_with_its_path(self, expect: str, found: tuple[str, Any, Any]) -> None:
        assert mismatches(SCENARIO, expect) == [found]
        assert run(SCENARIO, expect).verdict == "FAIL"

    def test_a_number_is_the_same_whole_or_with_a_point(self) -> None:
        arc = "topology: {primary: {capacity: 2, policy: arc}}"
        assert run(["{op: step}"], "{state: {policy: {target: 0}, free: 2.0}}", arc).verdict == "ok"

    def test_each_mismatch_of_an_op_is_told_and_the_ops_behind_it_still_run(self) -> None:
        expect = ", expect: {result: HIT, promotion: t1}}"
        report = run([*SCENARIO[:2], SCENARIO[2][:-1] + expect, "{op: step, expect: {state: {free: 0}}}"])
        assert [(found.line, found.op, found.what, found.path) for found in report.mismatches] == [
            (5, 2, "lookup r1 b1", "result"),
            (5, 2, "lookup r1 b1", "promotion"),
            (6, 3, "step", "state.free"),
        ]
        assert (report.ops, report.expectations) == (4, 3)

    def test_a_fixture_without_expectations_is_replayed_and_not_ok(self) -> None:
        assert run(SCENARIO).verdict == run(SCENARIO, "{}").verdict == "replayed"


class TestWholeOutcomes:
    STEP: dict[str, Any] = {"op": "step", "completed": [], "tier_finished": [], "events": []}  # noqa: RUF012
    STATE: dict[str, Any] = {  # noqa: RUF012
        "blocks": {},
        "policy": {"name": "lru", "order": []},
        "free": 2,
        "evictable": 0,
        "tiers": {},
        "jobs": [],
        "queued": [],
        "pending_work": False,
        "live": [],
    }

    def report(self, outcome: dict[str, Any]) -> FixtureReport:
        import json

        fixture = {"topology": {"primary": {"capacity": 2}}, "ops": [{"op": "step"}], "outcomes": [outcome]}
        return run_fixture(fixture_from_text(json.dumps(fixture), "recording.json"))

    def test_every_field_counts(self) -> None:
        assert self.report(self.STEP | {"state": self.STATE}).verdict == "ok"
        assert self.report(self.STEP).verdict == "ok"  # the state is there where it is asked for

    def test_a_field_that_is_missing_or_too_much_is_a_mismatch(self) -> None:
        fewer = {key: value for key, value in self.STEP.items() if key != "events"}
        (found,) = self.report(fewer).mismatches
        assert (found.path, found.expected, found.found, found.remark) == ("events", None, [], "none was expected")
        (found,) = self.report(self.STEP | {"evets": []}).mismatches
        assert (found.path, found.expected, found.found, found.remark) == ("evets", [], None, "there is none")

    def test_a_block_more_in_the_state_is_a_mismatch(self) -> None:
        (found,) = self.report(self.STEP | {"state": self.STATE | {"blocks": {"b1": 0}}}).mismatches
        assert (found.path, found.remark) == ("state.blocks.b1", "it is not in the primary")

    def test_a_range_is_no_number_there(self) -> None:
        (found,) = self.report(self.STEP | {"state": self.STATE | {"free": {"min": 0}}}).mismatches
        assert found.path == "state.free"

    def test_recorded_scenarios_pass(self, recordings: Path) -> None:
        from kvtier_cli.replay.fixture import read_fixture

        files = sorted(recordings.glob("scenarios*/*.json"))[::20]
        assert files
        for file in files:
            assert run_fixture(read_fixture(str(file))).mismatches == ()


FULL = [
    "{op: request, id: r0}",
    "{op: store, id: r0, blocks: [c1, c2], defer: true}",
]
"""Both slots are pending."""


class TestRemarks:
    @pytest.mark.parametrize(
        ("ops", "expect", "remark"),
        [
            (SCENARIO, "{result: HIT}", "promotion from t0 was queued in this step; a step completes it"),
            (
                ["{op: seed, tier: t1, blocks: [b1]}", *SCENARIO[1:]],
                "{result: HIT}",
                "promotion from t1 was queued in this step; 2 steps complete it",
            ),
            (
                ["{op: seed, tier: t1, blocks: [b1]}", *SCENARIO[1:], "{op: step}", SCENARIO[2]],
                "{result: HIT}",
                "promotion from t1 is under way as job 0",
            ),
            ([*FULL, "{op: lookup, id: r0, block: c1}"], "{result: HIT}", "its store is under way"),
            (
                [*SCENARIO[:2], *FULL, SCENARIO[2]],
                "{result: HIT_PENDING}",
                "t0 holds it, but none of the 2 slots of the primary can be freed, all are pinned or pending",
            ),
            (
                [SCENARIO[0], "{op: request, id: r1, kv_load_tiers: [{medium: cpu}]}", SCENARIO[2]],
                "{result: HIT_PENDING}",
                "the filter skips t0, which holds it",
            ),
            (SCENARIO[1:], "{result: HIT_PENDING}", "no tier holds it"),
            (
                [*SCENARIO[:2], "{op: reset, hold: true}", SCENARIO[2]],
                "{result: HIT}",
                "promotions are held since the reset; {op: flushed} ends that",
            ),
            (SCENARIO, "{verdicts: [hit]}", "one verdict a secondary tier: t0, t1"),
            (SCENARIO, "{source: disk}", "the source is told of a HIT, this was HIT_PENDING"),
            (
                [*FULL, "{op: store, id: r0, blocks: [b1]}"],
                "{stored: [b1]}",
                "the store was refused: slots needed 1, free 0, evictable 0",
            ),
            ([*FULL, "{op: load, id: r0, blocks: [c1, b1]}"], "{loaded: [c1]}", "not ready in the primary: c1, b1"),
            ([*FULL, "{op: complete_load, id: r0}"], "{blocks: [c1]}", "no load of r0 was deferred"),
            ([*FULL, "{op: finish, id: r0}"], "{completed: [{job: 0}]}", "a finish does not poll for finished jobs"),
            ([*FULL, "{op: step}"], "{completed: [{job: 0}]}", "a step polls for finished jobs at its first lookup"),
            ([*FULL], "{not_resident: [c1]}", None),
        ],
    )
    def test_the_commonest_mismatches_are_explained(self, ops: list[str], expect: str, remark: str | None) -> None:
        (found,) = run(ops, expect).mismatches
        assert (found.remark or "").startswith(remark or "")
        assert (found.remark is None) == (remark is None)

    def test_a_tier_that_retries_is_named(self) -> None:
        topology = "topology: {tiers: [{name: obj, lookup_retry: 1}, {name: t0}]}"
        (found,) = run(SCENARIO[1:], "{result: MISS}", topology).mismatches
        assert found.remark == "obj has no answer yet; look it up again"


class TestRunning:
    def test_what_the_manager_cannot_do_is_an_error_with_the_line(self) -> None:
        waits = [*FULL, "{op: finish, id: r0}", "{op: request, id: r0}"]  # its store is still under way
        with pytest.raises(InputError) as raised:
            run(waits)
        assert str(raised.value) == "bug.yaml:6: ops[3]: request r0: request 'r0' is live already"

    def test_ops_can_be_run_one_by_one_with_the_state_between_them(self) -> None:
        fixture = fixture_from_text(f"{TWO_TIERS}\nops:\n" + "\n".join(f"- {op}" for op in SCENARIO), "bug.yaml")
        runner = runner_of(fixture)
        states = [runner.state()["tiers"]["t0"] for _ in run_ops(fixture, runner)]
        assert states == [["b1"]] * 3

    def test_the_state_is_in_an_outcome_only_where_it_is_asked_for(self) -> None:
        text = "ops: [{op: step}, {op: step, expect: {state: {free: 10000}}}]"
        assert ["state" in result.outcome for result in run_ops(fixture_from_text(text, "x"))] == [False, True]


class TestWholeRequests:
    RUNS = (
        "{op: seed, tier: t0, blocks: [b1]}",
        "{op: run, id: r1, blocks: [b1, b2, b3]}",
    )

    def test_a_run_tells_the_outcome_of_each_block(self) -> None:
        assert run([*self.RUNS], "{outcomes: [promoted, absent, unreached]}").verdict == "ok"
        filtered = [self.RUNS[0], "{op: run, id: r1, blocks: [b1, b2], kv_load_tiers: []}"]
        assert run(filtered, "{outcomes: [filtered, unreached]}").verdict == "ok"

    def test_requests_of_a_run_go_by_their_names(self) -> None:
        expect = "{tier_finished: [{tier: t0, req: r1}, {tier: t1, req: r1}], state: {live: []}}"
        assert run([*self.RUNS], expect).verdict == "ok"
        later = [*self.RUNS, "{op: step}"]
        assert run(later, "{completed: [{req: r1, tier: t0}, {req: r1, tier: t1}]}").verdict == "ok"

    TRACE = (
        '{"timestamp": 5, "input_length": 32, "output_length": 1, "hash_ids": [7, 8]}\n'
        '{"timestamp": 0, "input_length": 16, "output_length": 1, "hash_ids": [7]}\n'
        '{"timestamp": 9, "input_length": 16, "output_length": 1, "hash_ids": [9],'
        ' "kv_transfer_params": {"kv_load_tiers": []}}\n'
    )

    def test_a_trace_is_replayed_on_the_tiers_as_they_are(self, tmp_path: Path) -> None:
        (tmp_path / "small.jsonl").write_text(self.TRACE)
        ops = [
            "{op: seed, tier: t0, blocks: ['7', '9']}",
            "{op: replay, trace: small.jsonl}",
        ]
        topology = "topology: {block: {tokens: 16}, primary: {capacity: 4}, tiers: [{name: t0}]}"
        # In order of arrival: 7 is promoted, then ready while 8 is missed; 9 is denied by its own filter.
        expect = "{figures: {requests: 3, outcomes: {promoted: 1, primary: 1, absent: 1, filtered: 1}}}"
        assert run(ops, expect, topology, tmp_path).verdict == "ok"
        # Under a filter for all requests, 7 is not promoted either.
        ops[1] = "{op: replay, trace: small.jsonl, kv_load_tiers: []}"
        assert run(ops, "{figures: {outcomes: {filtered: 2, promoted: 0}}}", topology, tmp_path).verdict == "ok"
        # The blocks and the requests of a trace have names that other ops can use.
        ops += ["{op: request, id: mine}", "{op: lookup, id: mine, block: '8'}"]
        assert run(ops, "{result: HIT, completed: [{req: r2}]}", topology, tmp_path).verdict == "ok"

    @pytest.mark.parametrize(
        ("figures", "hint"),
        [("{requets: 3}", 'did you mean "requests"?'), ("{hits_by_tier: {t9: 1}}", "known are t0, t1")],
    )
    def test_a_figure_that_there_is_not_is_an_error(self, figures: str, hint: str, tmp_path: Path) -> None:
        (tmp_path / "small.jsonl").write_text(self.TRACE)
        with pytest.raises(InputError) as raised:
            run(["{op: replay, trace: small.jsonl}"], f"{{figures: {figures}}}", folder=tmp_path)
        assert str(raised.value).startswith("bug.yaml:3: ops[0].expect.figures.")
        assert raised.value.hint == hint

    def test_a_block_of_a_trace_whose_id_is_no_name_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "odd.jsonl").write_text('{"input_length": 16, "output_length": 1, "hash_ids": ["a~2"]}\n')
        with pytest.raises(InputError) as raised:
            run(["{op: replay, trace: odd.jsonl}"], folder=tmp_path)
        assert str(raised.value).endswith('odd.jsonl:1: "a~2" is no name of a block: ~ is reserved')
