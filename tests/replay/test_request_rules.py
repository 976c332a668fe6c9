"""Rules for single requests: filters by tag, parameters from a log; and the figures of groups of requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kvtier_cli.replay.groups import Group, GroupedOutcomes
from kvtier_cli.replay.request_rules import RequestRules, TagRule
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.filters import TierFilter, parse_tier_filter
from kvtier_cli.tiering.topology import BUILT_IN, Topology
from kvtier_cli.traces.model import Request
from kvtier_cli.traces.request_log import RequestLog
from tests.replay.trace_files import asks, write_trace
from tests.tiering.managers import NVME, S3

DENY, LOCAL = parse_tier_filter([]), parse_tier_filter([{"locality": "local"}])


def tagged(*tags: str | None) -> Request:
    return Request(0, 1, 512, [1], params=b'{"kv_load_tiers":[{"medium":"cpu"}]}', tags=tags)


@pytest.mark.parametrize(
    ("tenant", "holds"),
    [("acme", "local"), ("zeta", "cpu"), (None, "deny"), ("other", "all"), ("", "all")],
)
def test_the_most_specific_filter_holds(tenant: str | None, holds: str) -> None:
    rules = (
        TagRule("tenant=acme", 0, "acme", LOCAL),
        TagRule("tenant=acme", 0, "acme", DENY),
        TagRule("tenant=zeta", 0, "zeta", None),
        TagRule("tenant=", 0, None, DENY),
    )
    run = TraceRun([], BUILT_IN, parse_tier_filter().filter, rules=RequestRules(rules))
    assert run.filter_of(tagged(tenant)).short() == holds
    assert run.held_parse_of(tagged(tenant), parse_tier_filter()).filter.short() == holds


def test_a_rule_that_no_request_meets_is_told() -> None:
    run = TraceRun([], BUILT_IN, rules=RequestRules((TagRule("a=b", 0, "b", DENY), TagRule("a=c", 0, "c", DENY))))
    run.filter_of(tagged("c"))
    run.warn_of_filters()
    assert run.warnings == ["no request got the filter for a=b"]


# Parameters from a log


def joined(folder: Path, log: RequestLog, *requests: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The filters that hold for the requests, and the warnings."""
    run = TraceRun([write_trace(folder, *requests)], BUILT_IN, rules=RequestRules(log=log))
    filters = [run.filter_of(request).short() for request in run.requests()]
    return filters, run.warnings


def test_a_logs_parameters_take_the_place_of_the_traces(tmp_path: Path) -> None:
    log = RequestLog("log", {"a": b'{"kv_load_tiers":[]}', "b": None, "z": None})
    own = {"kv_load_tiers": [{"medium": "cpu"}]}
    requests = [asks(1, request_id=name, kv_transfer_params=own) for name in "abc"]
    assert joined(tmp_path, log, *requests, asks(1)) == (
        ["deny", "all", "cpu", "all"],
        [
            "log: it has 2 of the 4 requests; the others keep their own parameters",
            "log: 1 of its 3 requests is not in the trace",
        ],
    )


def test_a_log_that_fits_says_nothing(tmp_path: Path) -> None:
    log = RequestLog("log", {"7": b'{"kv_load_tiers":[]}'})
    assert joined(tmp_path, log, asks(1, id=7)) == (["deny"], [])


def test_a_log_of_other_requests_says_that_it_has_none(tmp_path: Path) -> None:
    _, warnings = joined(tmp_path, RequestLog("log", {"z": None}), asks(1, id="a"))
    assert warnings[0] == "log: it has none of the 1 request; the others keep their own parameters"


# Groups


def grouped(
    folder: Path, *requests: dict[str, Any], topology: Topology = BUILT_IN, most: int = 99
) -> tuple[GroupedOutcomes, dict[str, Any]]:
    run = TraceRun([write_trace(folder, *requests)], topology)
    groups = GroupedOutcomes(run, [None], most=most)
    return groups, run.run()


def under(filter_: object, *ids: int) -> dict[str, Any]:
    return asks(*ids, kv_transfer_params={"kv_load_tiers": filter_})


def filters_of(groups: list[Group]) -> list[str]:
    return [value.short() for group in groups for value in group.key if isinstance(value, TierFilter)]


def test_groups_add_up_to_the_figures_of_the_whole(tmp_path: Path) -> None:
    from dataclasses import replace

    small = Topology(primary=replace(BUILT_IN.primary, capacity=3), tiers=(NVME, S3))
    filters = [None, [], [{"locality": "local"}], [{"locality": "remote"}]]
    requests = [under(filters[n % 4], *range(n % 3, n % 7 + n % 3)) for n in range(60)]
    groups, figures = grouped(tmp_path, *requests, topology=small)
    found, others = groups.largest(99)
    assert (others, len(found)) == (None, 4)
    for name, total in figures["outcomes"].items():
        assert sum(group.outcomes[name] for group in found) == total, name
    for place, total in enumerate(figures["served_by_tier"].values()):
        assert sum(group.served[place] for group in found) == total
    for name in ("requests", "blocks", "lost_to_filter", "blocks_loaded"):
        assert sum(getattr(group, name) for group in found) == figures[name], name
    assert figures["outcomes"]["promoted"]
    assert figures["lost_to_filter"]


def test_the_largest_groups_come_first_and_the_rest_is_one(tmp_path: Path) -> None:
    groups, _ = grouped(tmp_path, under([], 1), under(None, 1, 2, 3), under([{"medium": "cpu"}], 1, 2), under([], 4))
    found, others = groups.largest(1)
    assert filters_of(found) == ["all"]
    assert others is not None
    assert (others.groups, others.requests, others.blocks) == (2, 3, 4)


def test_beyond_a_number_of_groups_requests_are_only_summed_up(tmp_path: Path) -> None:
    groups, figures = grouped(
        tmp_path, under([], 1), under(None, 1, 2), under([{"medium": "cpu"}], 1, 2, 3), under([], 9), most=2
    )
    found, others = groups.largest(9)
    assert filters_of(found) == ["deny", "all"]
    assert others is not None
    assert (others.groups, others.blocks) == (0, 3)
    assert not groups.is_whole
    assert sum(group.blocks for group in (*found, others)) == figures["blocks"]
