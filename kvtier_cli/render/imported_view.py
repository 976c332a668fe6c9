"""What there is to say about a topology from vLLM's configuration: how its CPU tier was counted, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvtier_cli.render.console import Output, pad, plain
from kvtier_cli.render.noted_table import wrapped
from kvtier_cli.tiering.topology_write import topology_as_json
from kvtier_cli.tiering.vllm.imported import VllmTopology


def imported_lines(found: VllmTopology, out: Output) -> Iterator[str]:
    """The arithmetic of the CPU tier's blocks, and the notes. Warnings go to stderr and are not here."""
    yield "how the CPU tier's blocks are counted:"
    width = max(len(step.what) for step in found.arithmetic)
    for step in found.arithmetic:
        yield from hanging(f"  {pad(step.what, width)}  ", plain(step.how), out)
    if found.primary.capacity is None:
        yield from hanging(f"  {pad('blocks', width)}  ", "not known without the KV bytes of a token", out)
    if found.notes:
        yield ""
        yield "assumed, or not modelled:"
        for note in found.notes:
            yield from hanging("  - ", plain(note), out)


def hanging(head: str, text: str, out: Output) -> Iterator[str]:
    """`text` behind `head`, its further lines below its beginning."""
    for index, line in enumerate(wrapped(text, out, indent=len(head))):
        yield head + line[len(head) :] if not index else line


def imported_document(found: VllmTopology) -> dict[str, Any]:
    """The body of `kvtier topology import --json`, but for its warnings."""
    return {
        "name": found.name,
        "topology": topology_as_json(found),
        "arithmetic": [{"what": step.what, "how": step.how} for step in found.arithmetic],
        "notes": list(found.notes),
    }
