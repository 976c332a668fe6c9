"""What the dashboard asks the user for: a search, a file, a filter, a name; and what it does with the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvtier_cli.errors import KvtierError
from kvtier_cli.render.console import plain
from kvtier_cli.tiering.topology import Topology
from tui.command_line import command_of
from tui.export import comparison_json, request_json, screen_text, write_file
from tui.screens.chooser import Choice, Chooser
from tui.screens.prompt import Prompt
from tui.session.filter_draft import OWN, draft_of
from tui.session.views import Kind

if TYPE_CHECKING:
    from tui.app import Dashboard


def ask_find(app: Dashboard) -> None:
    """A block or a request; in a workspace the blocks to look up."""
    workspace = app.session.snapshot.kind is Kind.WORKSPACE
    label = "look up" if workspace else "find"
    hint = "the ids of blocks, in order: b1 b2 b3" if workspace else "a block's id, or a request: 5102, 5102~2, r1204"

    def found(text: str | None) -> None:
        if text and text.strip():
            app.sought = text.strip()
            app.session.find(app.sought)

    app.push_screen(Prompt(label, "" if workspace else app.sought, hint=hint), found)


def ask_go_to(app: Dashboard) -> None:
    """A request's number or id."""

    def told(text: str | None) -> None:
        if text and text.strip():
            app.session.go_to(text.strip())

    app.push_screen(Prompt("go to", hint="a request: its number from 0, or its id"), told)


def filter_check(app: Dashboard, text: str) -> str | None:
    """What is wrong with a filter that was typed."""
    return draft_of(text, app.session.snapshot.topology).error or None


def ask_compare(app: Dashboard) -> None:
    """The filter to compare with."""
    if app.session.snapshot.kind is not Kind.TRACE:
        app.session.compare(None, OWN)  # it says why not
        return

    def told(text: str | None) -> None:
        if text is not None:
            app.begin_comparison(text)

    hint = "the other filter: JSON as vLLM takes it, storage:local, all, deny; own: what the requests carry"
    last = app.used_filters[-1] if app.used_filters else "all"
    prompt = Prompt("compare with", last, hint=hint, check=lambda text: filter_check(app, text))
    app.push_screen(prompt, told)


def presets(topology: Topology, used: list[str]) -> list[Choice]:
    """Filters to choose from: the usual ones, one for each declaration of a tier, and those used before."""
    found = [
        Choice("all", "all", "no filter: every tier"),
        Choice("deny", "deny", "[]: only the CPU tier"),
        Choice(OWN, OWN, "each request's own"),
    ]
    for tier in topology.tiers:
        sides = [side.value.lower() for side in (tier.medium, tier.locality) if side is not None]
        for text in (":".join(sides), *sides):
            if text and all(choice.answer != text for choice in found):
                found.append(Choice(text, text, f"as {plain(tier.name)} declares"))
    found += [
        Choice(text, text, "used before") for text in reversed(used) if all(text != each.answer for each in found)
    ]
    return found


def ask_preset(app: Dashboard) -> None:
    """A filter from the list, applied from the start."""

    def told(text: str | None) -> None:
        if text is not None:
            app.apply_filter(text, "start")

    app.push_screen(Chooser("Filter", presets(app.session.snapshot.topology, app.used_filters)), told)


def ask_export(app: Dashboard) -> None:
    """What to write, then where."""
    what = "comparison" if app.session.comparison is not None else "request"
    kinds = [
        Choice("svg", "SVG", "the screen as a picture"),
        Choice("txt", "text", "the screen as text"),
        Choice("json", "JSON", f"the {what} with all figures"),
    ]

    def chosen(kind: str | None) -> None:
        if kind is not None:
            # The picture is of what was there before anything was asked.
            app.call_after_refresh(_ask_where, app, kind)

    app.push_screen(Chooser("Export", kinds), chosen)


def _ask_where(app: Dashboard, kind: str) -> None:
    snapshot, comparison = app.session.snapshot, app.session.comparison
    if kind == "svg":
        data = app.export_screenshot(title="kvtier dash").encode()
    elif kind == "txt":
        data = screen_text(app).encode()
    else:
        data = request_json(snapshot) if comparison is None else comparison_json(comparison.view)
    _ask_file(app, f"kvtier-{snapshot.cursor}.{kind}", data)


def _ask_file(app: Dashboard, name: str, data: bytes) -> None:
    def check(path: str) -> str | None:
        try:
            write_file(path, data)
        except KvtierError as error:
            return str(error)
        return None

    def written(path: str | None) -> None:
        if path is not None:
            app.notify(f"Written: {path}", markup=False)

    app.push_screen(Prompt("write to", name, hint="a new file", check=check), written)


def ask_open(app: Dashboard) -> None:
    """Another file."""

    def told(path: str | None) -> None:
        if path and path.strip():
            app.open_file(path.strip())

    app.push_screen(Prompt("open", hint="a trace, a decision log (.kvlog), a scripted fixture, or a workspace"), told)


def copy_command(app: Dashboard) -> None:
    """The command line that shows the same, into the terminal's clipboard; shown too, where that has none."""
    command = command_of(app.session.snapshot, app.asked)
    app.copy_to_clipboard(command)
    app.notify(command, title="Copied", markup=False)


def save_fixture(app: Dashboard) -> None:
    """The request on show as a fixture, tried out by the session's thread; then where to write it."""
    session, cursor = app.session, app.session.snapshot.cursor

    def work() -> None:
        try:
            text = session.show.saved(cursor)
        except KvtierError as error:
            app.from_session(_tell, app, f"{error} {error.hint or ''}".strip())
            return
        if text is None:
            app.from_session(_tell, app, "Only a request of a trace can be saved as a fixture.")
        else:
            app.from_session(_ask_file, app, f"r{cursor}.yaml", text.encode())

    app.notify("Looking for the least that comes to the same ...", markup=False, timeout=2)
    session.call(work)


def _tell(app: Dashboard, text: str) -> None:
    app.notify(text, severity="warning", markup=False)
