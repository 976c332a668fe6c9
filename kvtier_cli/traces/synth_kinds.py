"""What the kinds of made traces are like: sizes in tokens, pauses in milliseconds, how long sessions are. Tables alone.

Sizes and pauses are quantiles, evenly apart (see `Draws.size`). They follow what is published of such traffic: many
short questions and a few very long ones, system prompts that all share, tools that answer within seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_PROMPT_TOKENS: Final = 200_000
"""A session whose next prompt would be longer is over."""

LONG_TOKENS: Final = 6_000
"""From here on a first prompt is one with a long text in it."""

DOCUMENTS: Final = 4_000
"""Documents of a tenant's collection; which one is asked about follows Zipf's law."""

REWRITTEN_AFTER: Final = 128
"""Uses of a document, on average, until another text takes its place."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of sessions. `turns` are equally likely; `fan_out` is how many helpers a call sends out, if it does,
    which one call in `fan_out_every` does (0: none), and `helper_turns` how many calls each of them makes."""

    assistants: int
    """System prompts of a tenant; which one a session has follows Zipf's law."""
    system: tuple[int, ...]
    document: tuple[int, ...]
    """A document of the tenant's collection in front of the first question; () for none."""
    first: tuple[int, ...]
    """What the first prompt has of its own, behind all that is shared."""
    later: tuple[int, ...]
    """What a further turn adds to the prompt and the answer before it."""
    answer: tuple[int, ...]
    turns: tuple[int, ...]
    turns_if_long: tuple[int, ...]
    """The same for sessions whose first prompt has `LONG_TOKENS` or more of its own: few ask much about a long text."""
    pause: tuple[int, ...]
    """From an answer's end to the next turn."""
    fan_out: tuple[int, ...] = ()
    fan_out_every: int = 0
    helper_turns: tuple[int, ...] = ()


KINDS: Final[dict[str, Kind]] = {
    "chat": Kind(
        assistants=12,
        system=(200, 500, 900, 1_500, 2_500, 6_000),
        document=(),
        first=(12, 100, 600, 3_000, 8_000, 14_000, 22_000, 36_000, 110_000),
        later=(8, 40, 120, 400, 1_500, 5_000, 20_000),
        answer=(8, 60, 160, 280, 420, 600, 900, 1_800),
        turns=(1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 8),
        turns_if_long=(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3),
        pause=(3_000, 8_000, 15_000, 30_000, 60_000, 120_000, 300_000, 1_800_000),
    ),
    "agent": Kind(
        assistants=4,
        system=(5_000, 8_000, 11_000, 16_000),
        document=(),
        first=(80, 250, 600, 1_500, 6_000),
        later=(40, 120, 300, 700, 1_500, 3_500, 12_000),
        answer=(20, 50, 90, 150, 260, 700),
        turns=(2, 3, 5, 8, 12, 18, 30),
        turns_if_long=(2, 3, 5, 8, 12, 18, 30),
        pause=(300, 800, 1_500, 2_500, 4_000, 8_000, 25_000, 240_000),
        fan_out=(2, 2, 3, 4, 6),
        fan_out_every=16,
        helper_turns=(1, 2, 3, 4, 6),
    ),
    "rag": Kind(
        assistants=4,
        system=(300, 800, 1_400, 2_500),
        document=(600, 1_200, 2_000, 4_000, 10_000),
        first=(1_500, 4_000, 6_000, 8_000, 12_000, 20_000),
        later=(300, 1_200, 2_500, 4_500),
        answer=(20, 80, 180, 300, 600),
        turns=(1, 1, 1, 1, 1, 1, 1, 2, 2, 3),
        turns_if_long=(1, 1, 1, 1, 1, 1, 1, 1, 2),
        pause=(6_000, 15_000, 30_000, 60_000, 180_000),
    ),
}
"""The kinds of sessions by name."""

MIXED: Final = "mixed"
MIXTURE: Final = ("chat",) * 240 + ("rag",) * 159 + ("agent",)
"""Sessions of a mixed trace, equally likely. An agent's has a thousand and more references to blocks where a question
has some dozens: with one in 400 they make some six in a hundred of all."""

KIND_NAMES: Final = (*KINDS, MIXED)
