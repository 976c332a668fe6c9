"""A topology for people: its tiers in lookup order, what departs from the defaults, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, noted_table, wrapped
from kvtier_cli.tiering.topology import PRIMARY_NAME, AnyTopology, BlockSpec, ReplaySpec, TierSpec
from kvtier_cli.tiering.topology_write import tier_fields
from kvtier_cli.units import format_count, format_size

_IN_COLUMNS = ("name", "medium", "locality", "capacity")


def topology_lines(topology: AnyTopology, out: Output) -> Iterator[str]:
    """The text of `kvtier topology show`, line by line."""
    count = len(topology.tiers)
    title = f"{plain(topology.name)}: the primary and {count:,} secondary tier{'' if count == 1 else 's'}"
    yield from wrapped(title, out, style="bold")
    yield ""
    none = out.symbol("none")
    primary = topology.primary
    capacity = "not known" if primary.capacity is None else format_count(primary.capacity)
    rows = [[PRIMARY_NAME, "primary", "", capacity, f"policy {primary.policy}"]]
    for tier in topology.tiers:
        rows.append(
            [
                out.shorten(plain(tier.name), NAME_WIDTH),
                tier.medium.value.lower() if tier.medium else none,
                tier.locality.value.lower() if tier.locality else none,
                "unlimited" if tier.capacity is None else format_count(tier.capacity),
                "; ".join(_settings(tier)),
            ]
        )
    yield from noted_table(["tier", "medium", "locality", "blocks", "settings"], rows, out, align="<<<>")
    yield ""
    yield from wrapped(f"block: {_block_words(topology.block)}", out, indent=2)
    yield from wrapped(f"replay: {_replay_words(topology.replay)}", out, indent=2)


def _settings(tier: TierSpec) -> Iterator[str]:
    defaults = tier_fields(TierSpec(""))
    for key, value in tier_fields(tier).items():
        if key in _IN_COLUMNS or value == defaults[key]:
            continue
        if isinstance(value, list):
            yield f"{key} {len(value)} block{'' if len(value) == 1 else 's'}"
        else:
            yield key if value is True else plain(f"{key} {value}")


def _block_words(block: BlockSpec) -> str:
    tokens = "tokens as the trace says" if block.tokens is None else f"{block.tokens:,} tokens"
    if block.bytes_per_token is None:
        return f"{tokens}; bytes not known, so there are no byte figures"
    each = f"{tokens}, {format_size(block.bytes_per_token)} a token"
    return each if block.tokens is None else f"{each}, {format_size(block.tokens * block.bytes_per_token)} a block"


def _replay_words(replay: ReplaySpec) -> str:
    return ", ".join(f"{field.name} {getattr(replay, field.name)}" for field in fields(replay))
