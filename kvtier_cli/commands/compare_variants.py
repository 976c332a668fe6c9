"""The variants of `kvtier compare`, as its repeatable options give them: what differs, what is common, their names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kvtier_cli.commands.inputs import GivenFilter, given_topology, linted, read_filter
from kvtier_cli.commands.request_options import OWN
from kvtier_cli.errors import InputError
from kvtier_cli.replay.compare import FEWEST, LETTERS, MOST
from kvtier_cli.tiering.topology import POLICIES, Topology
from kvtier_cli.units import format_count, parse_count
from kvtier_cli.wording import did_you_mean, shown

_T = TypeVar("_T")

_LONGEST_ARGUMENT = 200


@dataclass(frozen=True, slots=True)
class GivenVariant:
    """One variant. `given` is its filter, None for the requests' own; `label` what tells it from the others;
    `explain` the options with which `kvtier explain` shows it, None where it has none for it."""

    name: str
    label: str
    topology: Topology
    given: GivenFilter | None
    explain: str | None


def given_variants(options: Mapping[str, Sequence[str]]) -> tuple[list[GivenVariant], list[str]]:
    """The variants of the options `--tiers`, `--topology`, `--policy` and `--primary`, and what all have in common.

    An option that is given once, or not at all, holds for all; those that are repeated go together in their order.
    Raises InputError.
    """
    repeated = {option: len(values) for option, values in options.items() if len(values) > 1}
    number = _number(repeated)
    environment = os.environ.get("KVTIER_TOPOLOGY")
    sources: list[str | None] = [*options["--topology"]] or [environment or None]
    topologies = [given_topology(source) for source in sources]
    texts = options["--tiers"] or [OWN]
    if texts.count("-") > 1:
        raise InputError("--tiers - is there twice, and stdin can be read once", hint="Give the others as @FILE.")
    filters = [None if text == OWN else read_filter(text) for text in texts]
    policies: list[str | None] = [_policy(text) for text in options["--policy"]] or [None]
    capacities: list[int | None] = [_capacity(text) for text in options["--primary"]] or [None]
    variants = []
    told: dict[str, str] = {}
    for index in range(number):
        policy, capacity = _at(policies, index), _at(capacities, index)
        topology = _changed(_at(topologies, index), policy, capacity)
        given = _at(filters, index)
        told = {
            "--tiers": "own filters" if given is None else given.parse.filter.short(),
            "--policy": policy or "",
            "--primary": "" if capacity is None else f"cpu {format_count(capacity)}",
            "--topology": topology.name,
        }
        label = ", ".join(told[option] for option in told if option in repeated)
        same = policy is None and capacity is None
        explain = _explain(_at(texts, index), _at(sources, index)) if same else None
        variants.append(
            GivenVariant(LETTERS[index], label, topology, None if given is None else linted(given, topology), explain)
        )
    if told["--tiers"] != "own filters":
        told["--tiers"] = f"filter {told['--tiers']}"
    return variants, [text for option, text in told.items() if option not in repeated and text]


def _number(repeated: Mapping[str, int]) -> int:
    hint = "Repeat --tiers, --topology, --policy or --primary: --tiers all --tiers storage:local"
    if not repeated:
        raise InputError("there is one variant, and nothing to compare it with", hint=hint)
    numbers = set(repeated.values())
    if len(numbers) > 1:
        told = ", ".join(f"{option} {times} times" for option, times in repeated.items())
        raise InputError(
            f"{told}: what is repeated goes together, and must be there as often",
            hint="An option that is there once holds for all variants.",
        )
    number = numbers.pop()
    if number > MOST:
        raise InputError(f"there are {number:,} variants, expected {FEWEST} to {MOST}")
    return number


def _at(values: Sequence[_T], index: int) -> _T:
    return values[index] if len(values) > 1 else values[0]


def _changed(topology: Topology, policy: str | None, capacity: int | None) -> Topology:
    primary = topology.primary
    if policy is not None:
        primary = replace(primary, policy=policy)
    return replace(topology, primary=primary if capacity is None else replace(primary, capacity=capacity))


def _policy(text: str) -> str:
    if text not in POLICIES:
        raise InputError(f"unknown policy {shown(text)}", file="--policy", hint=did_you_mean(text, POLICIES))
    return text


def _capacity(text: str) -> int:
    try:
        return parse_count(text)
    except InputError as error:
        raise InputError(error.message, file="--primary", hint=error.hint) from None


def _explain(filter_text: str, topology_text: str | None) -> str | None:
    """The options that give `kvtier explain` the same filter and tiers; None where they are too long to be typed, or
    came from stdin."""
    options = []
    if filter_text != OWN:
        options += ["--tiers", filter_text]
    if topology_text is not None:
        options += ["--topology", topology_text]
    text = shlex.join(options)
    return None if filter_text == "-" or len(text) > _LONGEST_ARGUMENT else text
