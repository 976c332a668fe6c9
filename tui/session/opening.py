"""Opens what the dashboard is to show: a trace, a scripted fixture, a workspace, or else the shipped demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_cli.errors import InputError
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.tiering.filters import FilterParse, lint_against
from kvtier_cli.tiering.topology import BUILT_IN, Topology
from kvtier_cli.traces.detect import HEAD_BYTES, looks_like_fixture, read_trace
from kvtier_cli.traces.options import AS_IT_SAYS, TraceOptions
from kvtier_cli.traces.source import KVLOG_MAGIC, STDIN, TraceSource
from tui.session.show import Show

DEMO_TRACE: Final = "chat.jsonl"
DEMO_TOPOLOGY: Final = "demo.toml"
DEMO_REQUEST: Final = 284
"""The one that `kvtier demo` explains."""

DEMO_FILTER: Final = "storage:local"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for. `parse` and `text`: the filter of all requests, None for their own; `topology`
    None where none was named; `reading` what a trace leaves open."""

    file: str | None = None
    parse: FilterParse | None = None
    text: str = ""
    topology: Topology | None = None
    workspace: Path | None = None
    skip_bad: bool = False
    reading: TraceOptions = AS_IT_SAYS


@dataclass(frozen=True, slots=True)
class Opened:
    """What is open, and where to begin. `asked` opens the same again."""

    show: Show
    start: int
    asked: Asked


def open_asked(asked: Asked) -> Opened:
    """Open it. Raises InputError and EnvironmentFault as the readers do."""
    if asked.file is None:
        _refuse_reading(asked, asked.workspace or "the demo")
        if asked.workspace is not None:
            return open_workspace_at(asked.workspace, asked)
        return open_demo(asked)
    path = Path(asked.file)
    if asked.file != STDIN and path.is_dir():
        from kvtier_cli.workspace.found import is_workspace

        if is_workspace(path):
            _refuse_reading(asked, path)
            return open_workspace_at(path, asked)
    if asked.file != STDIN and _is_log(path):
        _refuse_reading(asked, path)
        return _open_log(asked)
    source = TraceSource(asked.file)
    if asked.file != STDIN and asked.reading.format is None and looks_like_fixture(source.head(HEAD_BYTES), asked.file):
        source.close()
        _refuse_reading(asked, path)
        return _open_fixture(asked)
    read_trace(source, asked.reading)  # raises for what is no trace, or not to be read so
    return _open_trace(source, asked, 0)


def _refuse_reading(asked: Asked, what: Path | str) -> None:
    if asked.reading != AS_IT_SAYS:
        raise InputError("is no trace: --format, --fields, --time-unit and --block-tokens do not apply", file=str(what))


def open_demo(asked: Asked) -> Opened:
    """The shipped trace on small tiers, at the request whose filter skips a tier that holds its blocks."""
    from kvtier_cli.tiering.topology_file import load_topology
    from tui.session.filter_draft import draft_of

    topology = asked.topology or load_topology(str(shipped_fixture(DEMO_TOPOLOGY)))
    parse, text = asked.parse, asked.text
    if parse is None:
        text = DEMO_FILTER
        parse = draft_of(text, topology).parse
    source = TraceSource(str(shipped_fixture(DEMO_TRACE)))
    return _open_trace(source, Asked(source.name, parse, text, topology), DEMO_REQUEST)


def open_workspace_at(path: Path, asked: Asked) -> Opened:
    """A workspace, under the filter that was asked for."""
    from tui.session.workspace_show import WorkspaceShow

    show = WorkspaceShow(path, asked.parse, asked.text)
    return Opened(show, 0, asked)


def _open_trace(source: TraceSource, asked: Asked, start: int) -> Opened:
    from tui.session.trace_show import TraceShow

    topology = asked.topology or BUILT_IN
    parse = None if asked.parse is None else lint_against(asked.parse, topology.tiers)
    show = TraceShow(source, topology, parse, asked.text, reading=asked.reading, skip_bad=asked.skip_bad)
    return Opened(show, start, asked)


def _open_fixture(asked: Asked) -> Opened:
    from kvtier_cli.replay.fixture import read_fixture
    from tui.session.fixture_show import FixtureShow

    file = asked.file or ""
    for given, option in ((asked.parse, "--tiers"), (asked.topology, "--topology")):
        if given is not None:
            raise InputError(f"{option} does not apply to a scripted fixture, which states its own", file=file)
    return Opened(FixtureShow(read_fixture(file)), 0, asked)


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.is_file() and file.read(len(KVLOG_MAGIC)) == KVLOG_MAGIC
    except (OSError, ValueError):
        return False  # who opens it as a trace is told what the matter is


def _open_log(asked: Asked) -> Opened:
    from kvtier_cli.replay.decision_log import open_log
    from tui.session.log_show import LogShow

    file = asked.file or ""
    for given, option in ((asked.parse, "--tiers"), (asked.topology, "--topology")):
        if given is not None:
            raise InputError(f"{option} does not apply to a log of what was replayed", file=file)
    return Opened(LogShow(open_log(file)), 0, asked)
