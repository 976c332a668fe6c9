"""The latest decisions before the moment on show, the latest first."""

from __future__ import annotations

from kvtier_cli.render.console import plain
from tui.lines import Line, cut, mark_of, padded
from tui.session.views import EventView
from tui.widgets.list_pane import ListPane
from tui.words import EVENT_STYLES, event_words


class EventsPane(ListPane):
    """A line an event: step, request, what, how much."""

    def pane_title(self) -> str:
        return "Events"

    @property
    def _events(self) -> tuple[EventView, ...]:
        moment = None if self.snapshot is None else self.snapshot.moment
        return () if moment is None else moment.events

    @property
    def count(self) -> int:
        return len(self._events)

    def row(self, index: int, width: int) -> Line:
        view = self._events[index]
        event = view.event
        name = padded(cut(plain(view.request), 7, mark_of(self.out)), 8)
        newest = event.request == self._events[0].event.request
        return [
            (f" {event.step:>6,} ", "muted"),
            (name, "text" if newest else "muted"),
            (padded(event.kind.value, 8), EVENT_STYLES[event.kind]),
            (
                plain(event_words(event, lambda text: self.out.shorten(text, 16), short=width < 54)),
                "text" if newest else "muted",
            ),
        ]
