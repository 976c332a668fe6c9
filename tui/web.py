"""Serves the dashboard to a browser: one `kvtier dash` of its own for each who connects. Loopback unless told."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence


def serve(arguments: Sequence[str], host: str, port: int) -> None:
    """Serve `kvtier dash ARGUMENTS` at http://host:port until interrupted. There is no password: whoever reaches the
    port can use it."""
    from textual_serve.server import Server

    command = shlex.join([sys.executable, "-m", "kvtier_cli", "dash", *arguments])
    Server(command, host=host, port=port, title="kvtier dash").serve()
