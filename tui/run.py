"""Runs the dashboard in a terminal: settings, what is open, the keys where stdin was a trace, the end."""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace

from kvtier_cli.errors import EnvironmentFault, ExitStatus
from kvtier_cli.render.console import Output
from tui import themes
from tui.app import Dashboard
from tui.config import config_path, read_settings
from tui.session.opening import Asked, open_asked
from tui.session.session import Session

SWITCH = 0.0005
"""Seconds that one thread works before another has its turn."""


def run_dashboard(asked: Asked, out: Output, *, theme: str | None = None) -> int:
    """Open what was asked for and show it until the user quits. Raises as `open_asked` does, before the screen is
    taken."""
    settings = read_settings(config_path())
    opened = open_asked(asked)
    if asked.file == "-":
        _keys_from_terminal()
    chosen = theme or settings.theme or themes.DEFAULT
    session = Session(opened.show, start=opened.start)
    app = Dashboard(session, out=replace(out, quiet=False), theme=chosen, keymap=settings.keys, asked=opened.asked)
    app.remarks = (*settings.remarks, *opened.show.warnings)
    # A replay makes millions of objects and no cycles. What there is when it is through stays until the end.
    gc.disable()
    # The replay keeps the processor for that long when a key comes; and a key takes several turns.
    switch = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    app.on_replayed = _collect_what_comes
    try:
        app.run()
    finally:
        gc.enable()
        sys.setswitchinterval(switch)
        app.session.show.close()
    return app.return_code or ExitStatus.DONE


def _collect_what_comes() -> None:
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _keys_from_terminal() -> None:
    """stdin was the trace and is read: keys come from the terminal itself."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise EnvironmentFault(
            "the trace came from stdin, and there is no terminal for the keys",
            hint="Write it into a file first, or use kvtier replay -.",
        ) from error
    os.dup2(terminal, 0)
    os.close(terminal)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
