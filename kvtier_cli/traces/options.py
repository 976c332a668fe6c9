"""What a caller may say about how a trace is to be read: what the trace itself leaves open. Reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from kvtier_cli.errors import InputError
from kvtier_cli.wording import nearest, shown

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
    record whose values are wanted as `Request.tags`. `fields`: what the trace calls our fields, pairs of our name and
    its own, for formats that leave that open.

    Raises InputError for values that cannot be; names of formats are checked when a trace is read.
    """

    format: str | None = None
    block_tokens: int | None = None
    time_unit: TimeUnit | None = None
    tags: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.block_tokens is not None and not 1 <= self.block_tokens <= MAX_TOKENS:
            raise InputError(f"blocks of {self.block_tokens:,} tokens; expected 1 or more")
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            raise InputError(f"there is no time unit {shown(self.time_unit)}", hint="There are s, ms and us.")
        if len(set(self.tags)) < len(self.tags):
            object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))
        names = self.field_names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"--fields names {twice} twice")

    @property
    def field_names(self) -> tuple[str, ...]:
        """Our names of the `fields`."""
        return tuple(ours for ours, _ in self.fields)


FIELD_NAMES: Final = ("hash_ids", "input_length", "output_length", "timestamp", "request_id", "session_id")
"""The fields of a request that a trace may call otherwise."""


def option_words(options: TraceOptions, *, skip_bad: bool = False) -> list[str]:
    """The words of a command line that say of a trace what `options` says, but for tags, for others to repeat."""
    fields = ",".join(f"{ours}={theirs}" for ours, theirs in options.fields)
    given = {
        "--format": options.format,
        "--block-tokens": options.block_tokens,
        "--time-unit": options.time_unit,
        "--fields": fields or None,
    }
    told = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    return [*told, *["--skip-bad"] * skip_bad]


def parse_fields(text: str) -> tuple[tuple[str, str], ...]:
    """What `--fields hash_ids=ids,timestamp=ts` says: our name, and the trace's own. Raises InputError."""
    found = []
    for pair in text.split(","):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not equals or not theirs:
            raise InputError(
                f"--fields: expected NAME=FIELD, got {shown(pair.strip())}",
                hint="Like this: --fields hash_ids=ids,timestamp=ts,input_length=n",
            )
        if ours not in FIELD_NAMES:
            near = nearest(ours, FIELD_NAMES)
            hint = f'Did you mean "{near}"?' if near else f"There are {', '.join(FIELD_NAMES)}."
            raise InputError(f"--fields: there is no field {shown(ours)}", hint=hint)
        found.append((ours, theirs))
    return tuple(found)


AS_IT_SAYS: Final = TraceOptions()
"""Everything as the trace says it."""
