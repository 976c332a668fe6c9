"""The options by which commands treat requests apart: by their tags, and with parameters from a log. Prints nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer._click import types

from kvtier_cli.commands.inputs import GivenFilter, linted, read_filter, warnings_before
from kvtier_cli.errors import InputError
from kvtier_cli.wording import nearest, shown

if TYPE_CHECKING:
    from kvtier_cli.render.console import Output
    from kvtier_cli.replay.groups import GroupedOutcomes
    from kvtier_cli.replay.request_rules import RequestRules
    from kvtier_cli.replay.trace_run import TraceRun
    from kvtier_cli.tiering.topology import Topology
    from kvtier_cli.traces.options import TraceOptions
    from kvtier_cli.traces.request_log import RequestLog

KNOWN_TAGS = ("tenant", "model")
"""Fields of a record that may be asked for without `--tag`."""

OWN = "own"
"""The word for the filters that the requests themselves carry."""

BY_FILTER = "filter"

TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="FIELD",
        help="A field of the trace's records that --by and --tiers-for may name, meta.tenant inside an object; tenant "
        "and model need none. Repeatable.",
        show_default=False,
    ),
]
TiersForOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tiers-for",
        metavar="TAG=VALUE FILTER",
        help="A filter for the requests with that tag, before --tiers; the first that fits counts. TAG= takes those "
        "without it, the filter own leaves them theirs. Repeatable.",
        click_type=types.Tuple([str, str]),
        show_default=False,
    ),
]
RequestsOption = Annotated[
    str | None,
    typer.Option(
        "--requests",
        metavar="LOG",
        help="A log of OpenAI-style requests, JSONL: their kv_transfer_params take the place of those in the trace, by "
        "request id.",
        show_default=False,
    ),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="TAG|filter",
        help="Show the figures by groups too: of a tag's values, or of the filters that held. Repeatable.",
        show_default=False,
    ),
]
TOP = 20
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=1, max=10_000, help="Groups shown, the largest; the others as one.")
]


class GivenRule(NamedTuple):
    """One `--tiers-for`: its condition as it was given and apart, its filter (None: their own)."""

    text: str
    tag: str
    value: str | None
    given: GivenFilter | None


@dataclass(frozen=True, slots=True)
class GivenRules:
    """What the options say. `tags`: the fields that are to be read of each record. `by`: the place of each `--by`
    among these, None for the filter."""

    tags: tuple[str, ...] = ()
    by_tag: tuple[GivenRule, ...] = ()
    log: RequestLog | None = None
    by: tuple[int | None, ...] = ()
    by_names: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """The options themselves, but for `--by`."""

    @property
    def facts(self) -> list[str]:
        """The rules in words, for the head of a result."""
        return [
            f"{rule.text}: {'own filters' if rule.given is None else f'filter {rule.given.parse.filter.short()}'}"
            for rule in self.by_tag
        ]

    def reading(self, options: TraceOptions) -> TraceOptions:
        """How traces are to be read then: with the tags too."""
        return replace(options, tags=self.tags) if self.tags else options

    def rules(self, topology: Topology) -> RequestRules:
        """For a run over these tiers."""
        from kvtier_cli.replay.request_rules import RequestRules, TagRule

        return RequestRules(
            tuple(
                TagRule(
                    rule.text,
                    self.tags.index(rule.tag),
                    rule.value,
                    None if rule.given is None else linted(rule.given, topology).parse,
                )
                for rule in self.by_tag
            ),
            self.log,
        )

    def warnings(self, topology: Topology) -> list[str]:
        """What may well make the result another one than was meant."""
        known = len(warnings_before(topology, None))
        return [
            f"--tiers-for {rule.text}: {text}"
            for rule in self.by_tag
            if rule.given is not None
            for text in warnings_before(topology, linted(rule.given, topology))[known:]
        ]


NO_GIVEN_RULES = GivenRules()


def given_rules(
    tags: Sequence[str] | None,
    tiers_for: Sequence[Sequence[str]] | None,
    requests: str | None,
    by: Sequence[str] | None = None,
    *,
    stdin: Sequence[str] = (),
    skip_bad: bool = False,
) -> GivenRules:
    """Read the options. `stdin`: what reads it already, in words. Raises InputError."""
    pairs = tiers_for or ()
    readers = [*stdin, *(f"--tiers-for {condition}" for condition, text in pairs if text == "-")]
    if requests == "-":
        readers.append("--requests")
    if len(readers) > 1:
        hint = "Give the filter as text or @FILE." if requests != "-" else "Give the one or the other as a file."
        raise InputError(f"{readers[0]} and {readers[1]} both read stdin", hint=hint)
    known = (*KNOWN_TAGS, *(tags or ()))
    if BY_FILTER in known:
        raise InputError(f"{BY_FILTER} is the filter that holds for a request, and no field", file="--tag")
    rules = [_rule(condition, text, known) for condition, text in pairs]
    names = tuple(dict.fromkeys(by or ()))
    for name in names:
        if name != BY_FILTER:
            _check_known(name, (*known, BY_FILTER), "--by")
    read = tuple(dict.fromkeys([*(rule.tag for rule in rules), *(name for name in names if name != BY_FILTER)]))
    return GivenRules(
        read,
        tuple(rules),
        None if requests is None else _log(requests, skip_bad=skip_bad),
        tuple(None if name == BY_FILTER else read.index(name) for name in names),
        names,
        tuple(
            [part for name in tags or () for part in ("--tag", name)]
            + [part for pair in pairs for part in ("--tiers-for", *pair)]
            + ([] if requests is None else ["--requests", requests])
        ),
    )


def _rule(condition: str, text: str, known: Sequence[str]) -> GivenRule:
    tag, equals, value = condition.partition("=")
    if not equals or not tag:
        raise InputError(f"expected TAG=VALUE, found {shown(condition)}", file="--tiers-for")
    _check_known(tag, known, "--tiers-for")
    return GivenRule(condition, tag, value or None, None if text == OWN else read_filter(text))


def _check_known(tag: str, known: Sequence[str], option: str) -> None:
    if tag in known:
        return
    near = nearest(tag, known)
    meant = f'Did you mean "{near}"? ' if near else ""
    raise InputError(
        f"unknown tag {shown(tag)}", file=option, hint=f"{meant}--tag names further fields of the records."
    )


def _log(path: str, *, skip_bad: bool) -> RequestLog:
    from kvtier_cli.traces.request_log import read_request_log
    from kvtier_cli.traces.source import TraceSource

    with TraceSource(path) as source:
        return read_request_log(source, skip_bad=skip_bad)


def rules_as_json(asked: GivenRules, topology: Topology) -> dict[str, Any]:
    """`tiers_for` (each rule's condition and filter, None where requests keep theirs) and `requests_log`."""
    from kvtier_cli.render.filter_json import filter_as_json

    return {
        "tiers_for": [
            {
                "when": {rule.tag: rule.value},
                "filter": None if rule.given is None else filter_as_json(linted(rule.given, topology).parse),
            }
            for rule in asked.by_tag
        ],
        "requests_log": None if asked.log is None else asked.log.name,
    }


class Groups:
    """What `--by` asks for of one run; nothing at all without it."""

    def __init__(self, grouped: GroupedOutcomes | None, by: Sequence[str], tiers: Sequence[str]) -> None:
        self._grouped = grouped
        self._by = by
        self._tiers = tiers

    def as_json(self, top: int) -> dict[str, Any] | None:
        """`groups` of the document; None without `--by`."""
        if self._grouped is None:
            return None
        from kvtier_cli.render.groups_view import groups_as_json

        return groups_as_json(self._grouped, self._by, self._tiers, top)

    def lines(self, top: int, out: Output) -> Iterator[str]:
        """The table, and an empty line behind it."""
        if self._grouped is None:
            return
        from kvtier_cli.render.groups_view import group_lines

        yield from group_lines(self._grouped, self._by, self._tiers, top, out)
        yield ""


def groups_of(run: TraceRun, asked: GivenRules) -> Groups:
    """Let `run`, which is to be replayed yet, sum up by what `--by` names."""
    grouped = None
    if asked.by:
        from kvtier_cli.replay.groups import GroupedOutcomes

        grouped = GroupedOutcomes(run, asked.by)
    return Groups(grouped, asked.by_names, [tier.name for tier in run.manager.tiers])
