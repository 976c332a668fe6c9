"""What a caller may say about how a trace is to be read: what the trace itself leaves open. Reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from kvtier_cli.errors import InputError
from kvtier_cli.wording import shown

TimeUnit = Literal["s", "ms", "us"]

TIME_UNITS: Final[tuple[TimeUnit, ...]] = get_args(TimeUnit)

BLOCK_TOKENS: Final = 512
"""Tokens a block where nobody says: Mooncake's."""

MAX_TOKENS: Final = 1 << 53
"""The largest length that is believed; sums and shares of lengths stay exact below it."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How to read traces. What is None is left to the trace, or to its format.

    `format`: the name of one, instead of looking at the content. `block_tokens`: tokens a block, where the trace does
    not state them itself. `time_unit`: of the timestamps, where the format leaves it open. `tags`: fields of each
    record whose values are wanted as `Request.tags`.

    Raises InputError for values that cannot be; names of formats are checked when a trace is read.
    """

    format: str | None = None
    block_tokens: int | None = None
    time_unit: TimeUnit | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.block_tokens is not None and not 1 <= self.block_tokens <= MAX_TOKENS:
            raise InputError(f"blocks of {self.block_tokens:,} tokens; expected 1 or more")
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            raise InputError(f"there is no time unit {shown(self.time_unit)}", hint="There are s, ms and us.")
        if len(set(self.tags)) < len(self.tags):
            object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))


AS_IT_SAYS: Final = TraceOptions()
"""Everything as the trace says it."""
