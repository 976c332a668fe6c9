"""`kv_load_tiers` as vLLM reads it, and what kvtier says beyond that."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.tiering.filter_lint import suggest
from kvtier_cli.tiering.filter_reasons import skip_reason, tier_reason
from kvtier_cli.tiering.filters import (
    ALL,
    MISSING,
    FilterParse,
    TierFilter,
    TierMatcher,
    lint_against,
    parse_tier_filter,
)
from kvtier_cli.tiering.model import Locality, Medium
from kvtier_cli.tiering.topology import BUILT_IN, TierSpec

CPU, STORAGE = Medium.CPU, Medium.STORAGE
LOCAL, REMOTE = Locality.LOCAL, Locality.REMOTE
DECLARATIONS = tuple(itertools.product((None, CPU, STORAGE), (None, LOCAL, REMOTE)))


def short(raw: object) -> str:
    return parse_tier_filter(raw).filter.short()


def codes(parse: FilterParse) -> list[tuple[int | None, str]]:
    return [(note.index, note.code) for note in (*parse.warnings, *parse.lint)]


class TestWhatVllmReads:
    @pytest.mark.parametrize("raw", [MISSING, None])
    def test_no_filter_is_all_without_a_word(self, raw: object) -> None:
        parse = parse_tier_filter(raw)
        assert parse.filter is ALL
        assert not parse.warnings
        assert not parse.fails_open

    def test_an_empty_list_admits_no_secondary_tier(self) -> None:
        parse = parse_tier_filter([])
        assert not any(parse.filter.admits(*sides) for sides in DECLARATIONS)
        assert (parse.filter.as_json(), parse.warnings, parse.fails_open) == ([], (), False)

    @pytest.mark.parametrize("raw", [{}, "", "storage", 0, 1.5, False, True, {"medium": "storage"}, float("nan")])
    def test_what_is_no_list_is_one_warning_and_all(self, raw: object) -> None:
        parse = parse_tier_filter(raw)
        assert parse.filter is ALL
        assert codes(parse) == [(None, "not_a_list"), (None, "fails_open")]

    @pytest.mark.parametrize(
        ("entry", "code"),
        [
            ("storage", "not_an_object"),
            (None, "not_an_object"),
            ([], "not_an_object"),
            ({"medium": "fs"}, "unknown_medium"),
            ({"medium": ""}, "unknown_medium"),
            ({"medium": 5}, "unknown_medium"),
            ({"medium": False}, "unknown_medium"),
            ({"medium": ["CPU"]}, "unknown_medium"),
            ({"medium": " cpu"}, "unknown_medium"),
            ({"medium": "STORAGE\n"}, "unknown_medium"),
            ({"medium": "\u015eTORAGE"}, "unknown_medium"),
            ({"medium": "LOCAL"}, "unknown_medium"),
            ({"medium": "fs", "locality": "near"}, "unknown_medium"),
            ({"locality": "near"}, "unknown_locality"),
            ({"medium": "cpu", "locality": {}}, "unknown_locality"),
        ],
    )
    def test_an_entry_that_is_wrong_is_dropped_with_one_warning(self, entry: object, code: str) -> None:
        parse = parse_tier_filter([{"medium": "storage"}, entry])
        assert [(note.index, note.code) for note in parse.warnings] == [(1, code)]
        assert parse.filter.as_json() == [{"medium": "STORAGE", "locality": None}]
        assert [entry.kept for entry in parse.entries] == [True, False]

    def test_a_filter_of_which_every_entry_is_dropped_fails_open(self) -> None:
        parse = parse_tier_filter([{"medium": "gpu"}, 3])
        assert parse.filter is ALL
        assert len(parse.warnings) == 2
        assert parse.fails_open

    @pytest.mark.parametrize(
        ("raw", "read"),
        [
            ([{"medium": "Storage", "locality": "loCAL"}], "storage:local"),
            ([{"medium": "\u017ftorage"}], "storage"),
            ([{"medium": None, "locality": "remote"}], "remote"),
            ([{"medium": "cpu", "locality": None}, {"locality": "LOCAL"}], "cpu,local"),
            ([{"medum": "storage"}], "any"),
            ([{"Medium": "cpu", "x": 1}], "any"),
            ([{}], "any"),
        ],
    )
    def test_entries_are_read_in_any_case_with_null_as_not_set_and_unknown_keys_ignored(
        self, raw: object, read: str
    ) -> None:
        assert short(raw) == read
        assert not parse_tier_filter(raw).warnings

    def test_duplicates_stay(self) -> None:
        raw = [{"locality": "LOCAL"}, {"locality": "local"}, {"medium": "CPU"}]
        assert parse_tier_filter(raw).filter.as_json() == [
            {"medium": None, "locality": "LOCAL"},
            {"medium": None, "locality": "LOCAL"},
            {"medium": "CPU", "locality": None},
        ]

    def test_every_recorded_request_comes_out_as_recorded(self, recordings: Path) -> None:
        seen = 0
        for file in sorted(recordings.glob("scenarios*/*.json")):
            scenario = json.loads(file.read_text())
            for number, (op, outcome) in enumerate(zip(scenario["ops"], scenario["outcomes"], strict=True)):
                if op["op"] == "request":
                    parse = parse_tier_filter(op.get("kv_load_tiers", MISSING))
                    found = (parse.filter.as_json(), len(parse.warnings))
                    assert found == (outcome["filter"], outcome["warnings"]), f"{file.name} op {number}"
                    seen += 1
        assert seen > 1000


class TestWhatAFilterAdmits:
    @pytest.mark.parametrize("sides", DECLARATIONS)
    @pytest.mark.parametrize("asked", DECLARATIONS)
    def test_a_matcher_is_an_and_of_its_fields_and_an_undeclared_side_passes(
        self, sides: tuple[Medium | None, Locality | None], asked: tuple[Medium | None, Locality | None]
    ) -> None:
        differs = [want for want, has in zip(asked, sides, strict=True) if want and has and want is not has]
        assert TierMatcher(*asked).matches(*sides) == (not differs)

    def test_a_tier_takes_part_if_any_matcher_matches(self) -> None:
        load_filter = parse_tier_filter([{"medium": "cpu"}, {"locality": "remote"}]).filter
        assert load_filter.admits(CPU, LOCAL)
        assert load_filter.admits(STORAGE, REMOTE)
        assert not load_filter.admits(STORAGE, LOCAL)

    def test_a_tier_that_declares_nothing_passes_every_filter_but_the_empty_one(self) -> None:
        assert parse_tier_filter([{"medium": "cpu", "locality": "remote"}]).filter.admits(None, None)
        assert not parse_tier_filter([]).filter.admits(None, None)


class TestAllIsOneObject:
    def test_a_filter_that_admits_everything_is_still_not_all(self) -> None:
        anything = parse_tier_filter([{}]).filter
        assert all(anything.admits(*sides) for sides in DECLARATIONS)
        assert anything is not ALL
        assert anything != ALL
        assert len({anything, ALL}) == 2
        assert anything.as_json() == [{"medium": None, "locality": None}]
        assert ALL.as_json() == "ALL"

    def test_all_stays_itself_when_copied_or_sent_to_another_process(self) -> None:
        assert copy.deepcopy(ALL) is ALL
        assert pickle.loads(pickle.dumps(ALL)) is ALL

    def test_equal_filters_are_one_key(self) -> None:
        one, other = (parse_tier_filter([{"medium": text}]).filter for text in ("cpu", "CPU"))
        assert {one: 1}[other] == 1
        assert pickle.loads(pickle.dumps(one)) == one
        assert one != TierFilter((TierMatcher(CPU), TierMatcher(CPU)))


class TestWhatVllmDoesNotSay:
    def test_an_unknown_key_that_leaves_an_entry_without_restriction_fails_open(self) -> None:
        parse = parse_tier_filter([{"medum": "storage"}])
        assert parse.fails_open
        assert (0, "unknown_key") in codes(parse)
        assert [note.hint for note in parse.lint if note.code == "unknown_key"] == ['did you mean "medium"?']

    def test_an_unknown_key_beside_a_known_one_leaves_the_restriction(self) -> None:
        parse = parse_tier_filter([{"medium": "storage", "tier": "nvme"}])
        assert codes(parse) == [(0, "unknown_key")]
        assert not parse.fails_open

    def test_an_entry_that_restricts_nothing_on_purpose_does_not_fail_open(self) -> None:
        parse = parse_tier_filter([{}])
        assert codes(parse) == [(0, "admits_everything")]
        assert not parse.fails_open

    def test_entries_that_together_admit_every_tier_are_told(self) -> None:
        assert (None, "admits_everything") in codes(parse_tier_filter([{"locality": "local"}, {"locality": "remote"}]))
        assert (None, "admits_everything") not in codes(
            parse_tier_filter([{"locality": "local"}, {"medium": "storage", "locality": "remote"}])
        )

    def test_an_entry_covered_by_a_wider_one_names_it_and_a_repeated_one_the_first(self) -> None:
        parse = parse_tier_filter(
            [{"medium": "storage", "locality": "local"}, 7, {"medium": "storage"}, {"medium": "STORAGE"}]
        )
        told = {(note.index, note.code): note.message for note in parse.lint}
        assert told.keys() == {(0, "covered"), (3, "duplicate")}
        assert "entry 2" in told[0, "covered"]
        assert "entry 2" in told[3, "duplicate"]

    def test_cpu_means_secondary_tiers_alone(self) -> None:
        assert codes(parse_tier_filter([{"medium": "cpu"}])) == [(0, "cpu_secondary_only")]

    @pytest.mark.parametrize(
        ("entry", "hint"),
        [
            ({"medium": "stroage"}, 'did you mean "storage"?'),
            ({"medium": "nvme"}, 'did you mean "storage"?'),
            ({"medium": " cpu "}, 'spaces count, write "cpu"'),
            ({"medium": "Local"}, '"Local" is a locality, write {"locality":"local"}'),
            ({"locality": "global"}, 'did you mean "remote"?'),
            ({"locality": 5}, 'a locality is "local" or "remote"'),
        ],
    )
    def test_a_dropped_value_gets_a_hint(self, entry: object, hint: str) -> None:
        assert parse_tier_filter([entry]).warnings[0].hint == hint

    def test_a_matcher_outside_a_list_is_told_to_be_wrapped(self) -> None:
        hint = parse_tier_filter({"medium": "storage"}).warnings[0].hint
        assert hint == 'wrap it in a list: [{"medium":"storage"}]'

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner) | st.dictionaries(st.sampled_from(["medium", "locality", "Medium", "x"]), inner)
            ),
        )
    )
    def test_any_json_value_is_read_and_an_entry_gives_one_warning_at_most(self, raw: object) -> None:
        parse = parse_tier_filter(raw)
        assert len({note.index for note in parse.warnings}) == len(parse.warnings)
        if isinstance(raw, list):
            assert [entry.index for entry in parse.entries if not entry.kept] == [n.index for n in parse.warnings]


class TestAgainstATopology:
    def test_a_matcher_that_no_tier_meets_is_a_fault(self) -> None:
        parse = parse_tier_filter([{"medium": "storage"}, {"medium": "cpu", "locality": "remote"}])
        assert not parse.faults()
        against = lint_against(parse, BUILT_IN.tiers)
        assert [(note.index, note.code) for note in against.faults()] == [(1, "unmet")]
        assert against.filter == parse.filter

    def test_a_tier_that_declares_nothing_meets_every_matcher(self) -> None:
        parse = parse_tier_filter([{"medium": "cpu", "locality": "remote"}])
        assert not lint_against(parse, [*BUILT_IN.tiers, TierSpec("peer")]).faults()

    def test_cpu_alone_is_a_note_even_where_no_secondary_tier_is_cpu(self) -> None:
        against = lint_against(parse_tier_filter([{"medium": "cpu"}]), BUILT_IN.tiers)
        assert not against.faults()
        assert (0, "primary_only") in codes(against)

    def test_every_matcher_is_unmet_where_there_is_no_secondary_tier(self) -> None:
        assert len(lint_against(parse_tier_filter([{"medium": "storage"}, {}]), []).faults()) == 2

    @pytest.mark.parametrize(
        ("raw", "tier", "reason"),
        [
            (
                [{"medium": "storage", "locality": "local"}],
                ("s3", STORAGE, REMOTE),
                "its locality REMOTE matches no entry",
            ),
            ([{"medium": "cpu"}], ("s3", STORAGE, REMOTE), "its medium STORAGE matches no entry"),
            (
                [{"medium": "storage", "locality": "local"}, {"medium": "cpu", "locality": "remote"}],
                ("s3", STORAGE, REMOTE),
                "no entry matches its medium and its locality both",
            ),
            ([], ("peer", None, None), "[] admits no secondary tier"),
            ([{"medium": "cpu"}, {"locality": "remote"}], ("s3", STORAGE, REMOTE), "by entry 1"),
            ([{"medium": "cpu"}], ("peer", None, None), "declares nothing, so only [] stops it"),
            (None, ("s3", STORAGE, REMOTE), "ALL admits every tier"),
        ],
    )
    def test_each_tier_is_admitted_or_skipped_for_a_reason(
        self, raw: object, tier: tuple[str, Medium | None, Locality | None], reason: str
    ) -> None:
        assert tier_reason(parse_tier_filter(raw), TierSpec(*tier)) == reason

    def test_a_skip_can_be_explained_from_the_filter_alone(self) -> None:
        assert skip_reason(TierFilter((TierMatcher(CPU),)), STORAGE, None) == "its medium STORAGE matches no entry"


class TestWhatStrictRefuses:
    @pytest.mark.parametrize("raw", [MISSING, None, [], [{}], [{"medium": "cpu"}], [{"medium": "storage"}] * 2])
    def test_notes_are_no_faults(self, raw: object) -> None:
        assert not lint_against(parse_tier_filter(raw), BUILT_IN.tiers).faults()

    @pytest.mark.parametrize(
        ("raw", "faults"),
        [
            ([{"medium": "fs"}, {"medium": "storage"}], ["unknown_medium"]),
            ([{"medium": "fs"}], ["unknown_medium", "fails_open"]),
            ("storage", ["not_a_list", "fails_open"]),
            ([{"medium": "storage", "tier": 1}], ["unknown_key"]),
            ([{"medum": "storage"}], ["fails_open", "unknown_key"]),
        ],
    )
    def test_faults_are_warnings_failing_open_and_unknown_keys(self, raw: object, faults: list[str]) -> None:
        assert [note.code for note in parse_tier_filter(raw).faults()] == faults


class TestWhatWasProbablyMeant:
    @pytest.mark.parametrize(
        ("raw", "meant"),
        [
            ([{"medum": "storage"}], [{"medium": "storage"}]),
            ([{"medium": "nvme"}, {"medium": "CPU"}], [{"medium": "storage"}, {"medium": "CPU"}]),
            ([{"medium": "local"}], [{"locality": "local"}]),
            ("storage", [{"medium": "storage"}]),
            ({"medium": "storage", "locality": None}, [{"medium": "storage", "locality": None}]),
            ([{"medium": "xyz"}], None),
            ([{"medium": 5}], None),
            ([{"x": 1}], None),
            ([{"medium": "cpu", "medum": "storage"}], None),
            ([{"medium": "storage"}], None),
        ],
    )
    def test_near_misses_are_put_right_or_nothing_is_suggested(self, raw: object, meant: object) -> None:
        assert suggest(parse_tier_filter(raw)) == meant


class TestHugeFilters:
    def test_a_hundred_thousand_entries_are_kept_and_noted_one_by_one(self) -> None:
        raw = [{"medium": "storage"}, {"medium": "storage", "locality": "local"}, {"medium": "x"}, {"k": 1}] * 25_000
        parse = lint_against(parse_tier_filter(raw), BUILT_IN.tiers)
        assert len(parse.entries) == 100_000
        assert len(parse.filter.matchers) == 75_000
        assert len(parse.warnings) == 25_000
        assert parse.notes_by_entry.keys() == set(range(100_000))
        assert (
            parse.filter.short()
            == "storage,storage:local,any,storage,storage:local,any,storage,storage:local and 74,992 more"
        )

    def test_one_entry_of_a_hundred_thousand_unknown_keys_is_read(self) -> None:
        parse = parse_tier_filter([{f"medium{n}": "cpu" for n in range(100_000)}])
        assert sum(note.code == "unknown_key" for note in parse.lint) == 100_000
