"""The checks of `kvtier doctor` for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvtier_cli.render.console import Output, pad, plain
from kvtier_cli.render.noted_table import NAME_WIDTH, wrapped
from kvtier_cli.workspace.checks import Check


def doctor_as_json(path: Path | None, checks: Sequence[Check]) -> dict[str, Any]:
    """The body of `kvtier.doctor/1`. `workspace` is None where there is none."""
    return {
        "workspace": None if path is None else str(path),
        "checks": [
            {"name": check.name, "ok": check.ok, "found": check.found or None, "repair": check.repair or None}
            for check in checks
        ],
        "ok": all(check.ok for check in checks),
    }


def doctor_lines(path: Path | None, checks: Sequence[Check], out: Output, *, repair: bool) -> Iterator[str]:
    """The text of `kvtier doctor`, line by line: a line or more a check."""
    wrong = [check for check in checks if not check.ok]
    where = "no workspace was found" if path is None else f"workspace {plain(str(path))}"
    said = "all is well" if not wrong else f"{len(wrong)} of {len(checks)} checks found something wrong"
    yield from wrapped(f"{said}; {where}", out, style="bold")
    yield ""
    names = [out.shorten(plain(check.name), NAME_WIDTH) for check in checks]
    width = max(map(len, names), default=0)
    for name, check in zip(names, checks, strict=True):
        word = out.style("ok   ", "good") if check.ok else out.style("wrong", "bad")
        lines = list(wrapped(plain(check.found), out, indent=width + 11))
        first = lines[0].lstrip() if lines else ""
        yield f"  {word}  {pad(name, width)}  {first}".rstrip()
        yield from lines[1:]
        if check.repair:
            prefix = "" if check.ok or repair else "repair: "
            yield from wrapped(prefix + plain(check.repair), out, indent=width + 11, style="muted")
    if wrong and path is not None and not repair:
        yield ""
        yield from wrapped("kvtier doctor --repair mends what can be mended.", out)
