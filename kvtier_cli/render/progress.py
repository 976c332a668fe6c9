"""A progress bar on stderr for what takes longer than a moment, on a terminal only. Costs nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kvtier_cli.render.console import Output, output_for, plain

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

SHOW_AFTER = 0.7
"""Seconds before the bar shows: what is done sooner needs none."""
REFRESH_EVERY = 0.1
"""Seconds between two drawings."""

Advance = Callable[[int], None]


@contextmanager
def progress(
    total: int | None, label: str, enabled: bool = True, *, unit: str = "bytes", output: Output | None = None
) -> Iterator[Advance]:
    """Yields `advance(n)`, to be told of `n` more units done; cheap, so a call every few hundred requests is fine.

    `total` in units, None where not known; `unit` is `bytes` (shown as sizes) or what is counted (`requests`).
    The bar needs both streams to be terminals, so that a piped result never mixes with it, and goes away at the end.
    """
    if not (enabled and _is_terminal()):
        yield _nothing
        return
    meter = _Meter(total, plain(label), unit, output or output_for(sys.stderr))
    try:
        yield meter.advance
    finally:
        meter.close()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and sys.stdout.isatty()
    except ValueError:  # closed
        return False


def _nothing(_: int) -> None:
    """The advance of a bar that is not shown."""


class _Meter:
    """Counts, and draws now and then from within `advance`: no thread takes time from the work."""

    def __init__(self, total: int | None, label: str, unit: str, output: Output) -> None:
        self._total, self._label, self._unit, self._output = total, label, unit, output
        self._done = 0
        self._draw_at = time.monotonic() + SHOW_AFTER
        self._started = time.monotonic()
        self._bar: Progress | None = None

    def advance(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now < self._draw_at:
            return
        self._draw_at = now + REFRESH_EVERY
        if self._bar is None:
            self._bar = self._open()
        task = self._bar.tasks[0]
        self._bar.update(task.id, completed=self._done, speed=_rate(self._done, now - self._started, self._unit))
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False)]
        if self._total is not None:
            if self._output.unicode:
                columns.append(BarColumn())
            columns.append(TaskProgressColumn())
        columns.append(TextColumn("{task.fields[speed]}", markup=False))
        if self._total is not None:
            columns += [TimeRemainingColumn(), TextColumn("left", markup=False)]
        console = Console(stderr=True, no_color=not self._output.color, highlight=False, markup=False)
        # Results that are printed meanwhile belong on stdout: rich would move them to its own console.
        bar = Progress(*columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        bar.add_task(self._label, total=self._total, speed="")
        bar.start()
        return bar


def _rate(done: int, seconds: float, unit: str) -> str:
    per_second = done / seconds if seconds > 0 else 0.0
    if unit == "bytes":
        return f"{per_second / 1e6:,.1f} MB/s"
    return f"{per_second:,.0f} {unit}/s"
