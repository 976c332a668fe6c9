"""The filter: what holds, what it admits and skips, and a line to type another with the answer below it."""

from __future__ import annotations

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from kvtier_cli.render.console import plain
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.topology import TierSpec
from tui.bindings import FILTER, bindings
from tui.lines import Line
from tui.session.filter_draft import Draft, changes, draft_of, remarks
from tui.session.views import Snapshot
from tui.widgets.pane import Pane

_LABEL = " kv_load_tiers  "


class FilterTitle(Pane):
    """The rule above."""

    editing = False

    def pane_title(self) -> str:
        return "Filter"

    @property
    def is_lit(self) -> bool:
        return self.editing

    def line(self, y: int, width: int) -> Line:
        return []


class FilterText(Pane):
    """The filter as it was given."""

    HAS_TITLE = False

    def line(self, y: int, width: int) -> Line:
        view = None if self.snapshot is None else self.snapshot.filter
        line: Line = [(_LABEL, "muted")]
        if view is None or self.dashboard.screen_is_editing:
            return line
        if view.own:
            raw = view.parse.raw
            text = "none" if not isinstance(raw, list | dict | str | int) else json.dumps(raw, ensure_ascii=False)
            return [*line, (plain(text), "text"), ("   the request's own", "muted")]
        since = f"   from request {view.since:,} on" if view.since else ""
        return [*line, (plain(view.text), "text"), (since, "muted")]


class FilterAnswer(Pane):
    """What it comes to: below the filter that holds, or below the one that is being typed."""

    HAS_TITLE = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.draft: Draft | None = None

    def line(self, y: int, width: int) -> Line:
        snapshot = self.snapshot
        if snapshot is None:
            return []
        if self.draft is None:
            return self._verdicts(snapshot, width) if y == 0 else []
        return self._draft_line(self.draft, snapshot, y)

    def _verdicts(self, snapshot: Snapshot, width: int) -> Line:
        parse, tiers = snapshot.filter.parse, snapshot.topology.tiers
        admitted = [tier for tier in tiers if parse.filter.admits(tier.medium, tier.locality)]
        skipped = [tier for tier in tiers if tier not in admitted]
        line: Line = [(" admits ", "muted")]
        if not admitted:
            line.append(("no secondary tier", "bold"))
        for at, tier in enumerate(admitted):
            line += [(", " if at else "", "muted"), (self.short_name(tier), "good_bold")]
            if tier.medium is None and tier.locality is None:
                line.append((" (declares nothing: only [] skips it)" if width >= 100 else " (undeclared)", "muted"))
        if parse.fails_open:
            return [*line, ("   ! ", "alarm"), ("it fails open: vLLM admits every tier, without a word", "text")]
        if skipped:
            line.append(("   skips ", "muted"))
        for at, tier in enumerate(skipped):
            line += [(", " if at else "", "muted"), (self.short_name(tier), "alarm")]
            line.append((f": {_why(parse, tier)}", "text"))
        return line

    def short_name(self, tier: TierSpec) -> str:
        return self.out.shorten(plain(tier.name), 16)

    def _draft_line(self, draft: Draft, snapshot: Snapshot, y: int) -> Line:
        if y == 0:
            if draft.error:
                return [(" ! ", "bad_fill"), (f" {plain(draft.error)}", "text")]
            if draft.parse is None:
                return [("   each request under the filter that it carries itself", "text")]
            said = remarks(draft.parse)
            warned = len(draft.parse.warnings)
            if draft.parse.faults():
                logs = f"   vLLM logs {warned}." if warned else "   vLLM says nothing."
                return [(" ! ", "filtered"), (f" {plain(said[0])}", "text"), (logs, "muted")]
            return [("   ", ""), (plain(said[0]) if said else "read without a remark", "muted")]
        if draft.parse is None:
            return [("   own", "bold"), (" stands for the requests' own filters", "muted")] if draft.error else []
        story = None if snapshot.moment is None else snapshot.moment.story
        before = snapshot.filter.parse if story is None else story.filter
        found = changes(draft.parse, before, snapshot.topology, story)
        if not found:
            return [("   changes no tier's verdict", "muted")]
        arrow = "→" if self.out.unicode else "->"
        line: Line = [("   changes ", "muted")]
        for at, change in enumerate(found):
            was, will = ("skipped", "admitted") if change.admitted else ("admitted", "skipped")
            line += [(", " if at else "", "muted"), (self.short_name(change.tier), "text"), (": ", "muted")]
            line += [(was, "alarm" if change.admitted else "good"), (f" {arrow} ", "muted")]
            line.append((will, "good_bold" if change.admitted else "alarm"))
        held = next((change for change in found if change.holds), None)
        if held is not None:
            blocks = "1 block" if held.holds == 1 else f"{held.holds:,} blocks"
            line += [("    of this request ", "muted"), (f"{self.short_name(held.tier)} holds {blocks} more", "bold")]
        return [*line, (f"    {self.dashboard.key_names('filter-replay')} to replay and see", "muted")]


def _why(parse: FilterParse, tier: TierSpec) -> str:
    from kvtier_cli.tiering.filter_reasons import tier_reason

    return tier_reason(parse, tier)


class FilterInput(Input):
    """The line that is typed in. Its keys stand before all others while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(key for key in FILTER if key.id != "filter-replay")]

    class Ended(Message):
        """The user is done: `replay` says from where, None leaves the filter as it was."""

        def __init__(self, draft: str, replay: str | None) -> None:
            self.draft = draft
            self.replay = replay
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, compact=True, select_on_focus=False)
        self.past: list[str] = []
        self._at = 0

    def begin(self, text: str, past: list[str]) -> None:
        """Edit `text`; `past` are the filters that were used before, the oldest first."""
        self.past = [*past, text]
        self._at = len(self.past) - 1
        self.value = text
        self.cursor_position = len(text)

    def action_history(self, by: int) -> None:
        at = self._at + by
        if 0 <= at < len(self.past):
            self._at = at
            self.value = self.past[at]
            self.cursor_position = len(self.value)

    async def action_submit(self) -> None:
        self.post_message(self.Ended(self.value, "start"))

    def action_from_here(self) -> None:
        self.post_message(self.Ended(self.value, "here"))

    def action_restore(self) -> None:
        self.post_message(self.Ended(self.value, None))


class FilterPane(Vertical):
    """All of it. While it is edited, `draft` is what was typed so far."""

    class Drafted(Message):
        """Another character was typed."""

        def __init__(self, draft: Draft | None) -> None:
            self.draft = draft
            super().__init__()

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.snapshot: Snapshot | None = None
        self.editing = False

    def compose(self) -> ComposeResult:
        yield FilterTitle(id="filter-title")
        with Horizontal(id="filter-row"):
            yield FilterText(id="filter-text")
            box = FilterInput(id="filter-input")
            box.display = False
            yield box
        yield FilterAnswer(id="filter-answer")

    def edit(self, text: str, past: list[str]) -> None:
        """Begin to edit."""
        self._set_editing(True)
        box = self.query_one(FilterInput)
        box.begin(text, past)
        self.screen.set_focus(box)  # at once: the next key may be on its way
        self._draft(text)

    def leave(self) -> None:
        """The editing is over."""
        self._set_editing(False)
        self.query_one(FilterAnswer).draft = None
        self.post_message(self.Drafted(None))
        self.query_one(FilterAnswer).refresh()

    def _set_editing(self, editing: bool) -> None:
        self.editing = editing
        self.set_class(editing, "-editing")
        self.query_one(FilterInput).display = editing
        title = self.query_one(FilterTitle)
        title.editing = editing
        title.refresh()
        self.query_one(FilterText).refresh()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.editing:
            self._draft(event.value)

    def _draft(self, text: str) -> None:
        if self.snapshot is None:
            return
        answer = self.query_one(FilterAnswer)
        answer.draft = draft_of(text, self.snapshot.topology)
        answer.refresh()
        self.post_message(self.Drafted(answer.draft))
