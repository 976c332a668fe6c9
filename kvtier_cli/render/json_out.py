"""The `--json` document: its envelope, its encoding, and the one line that says what a result stands for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from kvtier_cli import __version__

SCOPE = (
    "models vLLM 0.33.0's tiering manager, one full-attention group, requests one after another; "
    "not modelled: GPU cache, backpressure, the fs tier's verdict cache"
)
"""What every result stands for; text output ends with it, JSON carries it as `scope`."""


def document(command: str, body: Mapping[str, Any], *, version: int = 1) -> bytes:
    """The indented JSON document of a command, in UTF-8 with a line end: envelope first, then `body` in its order.

    `body` holds what msgspec encodes: dicts, lists, structs, dataclasses, enums, numbers, strings. Integers of any
    size come out exact, a float that is no number as null. Sets have no order and are to be sorted into lists before.
    """
    import msgspec

    envelope = {"kvtier": __version__, "schema": f"kvtier.{command}/{version}", "scope": SCOPE, **body}
    try:
        text = msgspec.json.encode(envelope)
    except UnicodeEncodeError:
        return _stdlib_document(msgspec.to_builtins(envelope))
    return msgspec.json.format(text, indent=2) + b"\n"


def _stdlib_document(value: Any) -> bytes:
    """For what msgspec refuses: lone surrogates, as in a file name that is no UTF-8. They come out as escapes."""
    import json

    return json.dumps(_finite(value), indent=2).encode() + b"\n"


def _finite(value: Any) -> Any:
    """`value` with None in the place of floats that JSON does not have, as msgspec writes them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0.0 else value


def write(command: str, body: Mapping[str, Any], *, version: int = 1) -> None:
    """Prints the document of `command` to stdout, as UTF-8 whatever the locale."""
    data = document(command, body, version=version)
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data.decode())
