"""The blocks that one label stands for, so that the reader can name the one that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kvtier_cli.render.console import Output, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, noted_table, wrapped
from kvtier_cli.replay.trace_lookup import BlockMatch

ROWS = 12
"""Matches of a label that the text shows; JSON has all."""


def matches_lines(
    ambiguous: Mapping[str, Sequence[BlockMatch]], trace: str, out: Output, *, wide: bool = False
) -> Iterator[str]:
    """A table for each label that stands for several blocks of `trace`."""

    def show(name: str) -> str:
        return plain(name) if wide else out.shorten(plain(name), NAME_WIDTH)

    for position, (label, matches) in enumerate(ambiguous.items()):
        if position:
            yield ""
        text = (
            f"{show(label)} stands for {len(matches):,} blocks of {plain(trace)}, behind different prompts. Name one:"
        )
        yield from wrapped(text, out, style="bold")
        yield ""
        rows = [
            [
                show(match.name),
                out.symbol("none") if match.at is None else f"{match.at:,}",
                out.symbol("none") if match.behind is None else show(match.behind),
                ", ".join(map(show, match.holders)) or "no tier",
            ]
            for match in matches[:ROWS]
        ]
        yield from noted_table(["block", "at", "behind", "held by"], rows, out, align="<>")
        if len(matches) > ROWS:
            yield from wrapped(f"and {len(matches) - ROWS:,} more (--json has them all)", out, indent=2)
