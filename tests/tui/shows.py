"""Sessions on shipped data, whole and idle, for the specifications of the dashboard."""

from __future__ import annotations

from pathlib import Path

from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.shipped import shipped_fixture
from kvtier_cli.tiering.topology import Topology
from kvtier_cli.tiering.topology_file import load_topology
from kvtier_cli.traces.source import TraceSource
from tui.session.filter_draft import draft_of
from tui.session.opening import Asked, open_asked
from tui.session.session import Session
from tui.session.trace_show import TraceShow

CHAT = str(shipped_fixture("chat.jsonl"))
AGENT = str(shipped_fixture("agent.jsonl"))
SKIPPED = 284
"""A request of the chat trace whose block 13 the filter `storage:local` withholds."""


def demo_topology() -> Topology:
    """Small tiers, so that the chat trace fills them."""
    return load_topology(str(shipped_fixture("demo.toml")))


def chat_show(text: str = "storage:local", trace: str = CHAT) -> TraceShow:
    """A shipped trace under a filter; `own` leaves each request its own."""
    topology = demo_topology()
    parse = draft_of(text, topology).parse
    return TraceShow(TraceSource(trace), topology, parse, text if parse else "")


def chat_session(text: str = "storage:local", *, start: int = SKIPPED, trace: str = CHAT) -> Session:
    """A session on it that has done all its work."""
    session = Session(chat_show(text, trace), start=start)
    session.run_until_idle()
    return session


def session_on(file: str | Path) -> Session:
    """A session on whatever is in `file`, idle."""
    opened = open_asked(Asked(str(file)))
    session = Session(opened.show, start=opened.start)
    session.run_until_idle()
    return session


def plain_run(text: str = "storage:local", trace: str = CHAT) -> TraceRun:
    """The same replay without a dashboard, not begun yet."""
    topology = demo_topology()
    parse = draft_of(text, topology).parse
    return TraceRun([TraceSource(trace)], topology, parse.filter if parse else None)
