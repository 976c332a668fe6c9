"""The formats that traces are written in: a row each in one table. A writer's module is imported when it is needed.

A new format is a module with its writer, a row here, and a row of the table in `docs/synth-and-convert.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kvtier_cli.errors import InputError
from kvtier_cli.wording import did_you_mean, shown

if TYPE_CHECKING:
    from kvtier_cli.traces.writer import TraceWriter


@dataclass(frozen=True, slots=True)
class WrittenFormat:
    """A format: its name on the command line, `module:class` of its writer, and what it is in a line."""

    name: str
    writer: str
    about: str

    def writer_class(self) -> type[TraceWriter]:
        """Its writer, whose class says what the format holds."""
        module, _, name = self.writer.partition(":")
        found: type[TraceWriter] = getattr(import_module(f"kvtier_cli.traces.{module}"), name)
        return found


WRITTEN: Final[dict[str, WrittenFormat]] = {
    each.name: each
    for each in (
        WrittenFormat("kvtier", "write_own:OwnWriter", "kvtier's own JSONL, with a header"),
        WrittenFormat("mooncake", "write_mooncake:MooncakeWriter", "Mooncake JSONL, with what kvtier reads besides"),
        WrittenFormat("bailian", "write_bailian:BailianWriter", "Alibaba's Bailian (Qwen) JSONL"),
        WrittenFormat(
            "kvcache-simulator",
            "write_kvcache_simulator:KvcacheSimulatorWriter",
            "KVCache.AI's kvcache-simulator JSONL",
        ),
        WrittenFormat("libcachesim-csv", "write_libcachesim:LibcachesimCsvWriter", "libCacheSim's CSV"),
    )
}


def find_writer(name: str, option: str) -> WrittenFormat:
    """The format called `name`, which `option` of the command line gave. Raises InputError."""
    found = WRITTEN.get("kvtier" if name == "own" else name)
    if found is None:
        raise InputError(f"{option}: no traces are written as {shown(name)}", hint=did_you_mean(name, WRITTEN))
    return found
