"""Which request a text means: its own id in the trace, else its number, `1204` or `r1204`. Reads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kvtier_cli.errors import InputError
from kvtier_cli.wording import nearest, shown

IDS_COMPARED = 10_000
"""So many ids are worth comparing with one that there is not."""

_NUMBER = re.compile(r"r?([0-9]{1,18})")


def request_number(text: str, total: int, same: Sequence[int], known: Iterable[str], file: str) -> int:
    """The number of the request that `text` means, of `total` in `file`, of which those in `same` have it for their id.

    Raises InputError for one that there is not, with the nearest of the ids `known`, and for an id of several.
    """
    if len(same) > 1:
        numbers = ", ".join(f"r{number}" for number in same[:3]) + (", ..." if len(same) > 3 else "")
        raise InputError(
            f"{len(same):,} requests have the id {shown(text)}", file=file, hint=f"Give one's number: {numbers}."
        )
    if same:
        return same[0]
    number = _NUMBER.fullmatch(text)
    if number and int(number[1]) < total:
        return int(number[1])
    near = nearest(text, known)
    raise InputError(
        f"has no request {shown(text)}",
        file=file,
        hint=(f"It has {total:,}, r0 to r{total - 1}." if total else "It has none.")
        + (f' Did you mean "{near}"?' if near else ""),
    )
