"""One op of a scripted fixture as stepping shows it: its text, its outcome, what changed, and how things stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.flow import flow
from kvtier_cli.render.mismatch_view import mismatch_text
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.render.state_view import change_lines, labelled, most_items, state_summary, whole_state_lines
from kvtier_cli.replay.fixture import Fixture, FixtureOp
from kvtier_cli.replay.fixture_run import OpResult
from kvtier_cli.replay.state_change import State, state_change

_COMMON: Final = ("op", "completed", "tier_finished", "events", "state")
"""Fields of every outcome; they are told among the changes, or are of no news."""


def fixture_head(fixture: Fixture, out: Output) -> Iterator[str]:
    """What is stepped through: the file, its title, and its tiers."""
    yield from wrapped(f"{out.style(plain(fixture.file), 'bold')}  {plain(fixture.title)}".rstrip(), out)
    primary = fixture.topology.primary
    tiers = [f"cpu {primary.capacity:,} blocks ({primary.policy})"]
    for tier in fixture.topology.tiers:
        declared = [value.value.lower() for value in (tier.medium, tier.locality) if value is not None]
        tiers.append(" ".join([flow(tier.name), *(declared or ["(declares nothing)"])]))
    yield from labelled("tiers", ", ".join(tiers), out)


def op_lines(
    fixture: Fixture,
    result: OpResult,
    before: State,
    after: State,
    out: Output,
    *,
    reasons: Sequence[str] = (),
    whole: bool = False,
) -> Iterator[str]:
    """The op that has just run. `reasons`: the breaks that it met; `whole`: with the whole state, not just a line."""
    op = result.op
    place = fixture.file if op.line is None else f"{fixture.file}:{op.line}"
    yield ""
    yield from wrapped(f"{out.style(f'op {op.index + 1} of {len(fixture.ops)}', 'bold')}  {plain(place)}", out)
    for reason in reasons:
        yield from labelled("break", out.style(plain(reason), "warning"), out)
    yield from wrapped(_op_text(op, out), out, indent=2)
    yield from labelled("outcome", _outcome_text(op, result.outcome, out), out)
    yield from _expectation_lines(result, out)
    yield from change_lines(state_change(before, after), result.outcome, out)
    if whole:
        yield from whole_state_lines(after, out)
    else:
        yield from labelled("state", state_summary(after, fixture.topology), out)


def _op_text(op: FixtureOp, out: Output) -> str:
    return flow({key: value for key, value in op.fields.items() if key != "expect"}, most_items(out))


def _outcome_text(op: FixtureOp, outcome: Mapping[str, Any], out: Output) -> str:
    """The fields that only this kind of op has. Of a lookup those that say nothing are left out."""
    if op.name == "store" and outcome["stored"] is None:
        return "refused (stored null)"
    quiet = op.name == "lookup"
    fields = {
        key: value for key, value in outcome.items() if key not in _COMMON and not (quiet and value in (None, []))
    }
    parts = [f"{key} {flow(value, most_items(out))}" for key, value in fields.items()]
    return ", ".join(parts) or "done"


def _expectation_lines(result: OpResult, out: Output) -> Iterator[str]:
    count, failed = result.expectations, len(result.mismatches)
    if not count:
        return
    if not failed:
        yield from labelled("expected", out.style(f"{count:,} of {count:,} met", "good"), out)
        return
    yield from labelled("expected", out.style(f"{failed:,} of {count:,} not met", "bad"), out)
    for mismatch in result.mismatches:
        yield from labelled("", mismatch_text(mismatch, out), out)
