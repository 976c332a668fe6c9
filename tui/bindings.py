"""Every key of the dashboard in one table: the bindings, the footer, the help and the palette are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from textual.binding import Binding

AT_ONCE: Final = ("filter",)
"""What opens a line to type in: the keys behind it may have been typed already."""


class Key(NamedTuple):
    """One thing that a key does. `keys` as Textual names them, the first is the one that is shown; `id` is what the
    user's `config.toml` remaps; `footer` the word for the last line, if it stands there."""

    id: str
    keys: str
    action: str
    words: str
    group: str
    footer: str = ""

    def binding(self) -> Binding:
        """As Textual binds it."""
        return Binding(self.keys, self.action, self.words, show=False, id=self.id, priority=self.id in AT_ONCE)


PLAY: Final = (
    Key("play", "space", "play", "play, pause", "play", "play"),
    Key("step", "full_stop", "step(1)", "step on: the next pass, then the next request", "play", "step"),
    Key("step-back", "comma", "step(-1)", "step back", "play"),
    Key("faster", "plus,equals_sign", "speed(1)", "play faster", "play"),
    Key("slower", "minus", "speed(-1)", "play slower", "play"),
    Key("previous", "left_square_bracket", "move(-1)", "previous request", "play", "request"),
    Key("next", "right_square_bracket", "move(1)", "next request", "play"),
    Key("pass", "p", "pass", "walk through the passes of the request", "play"),
)

JUMPS: Final = (
    Key("next-skip", "s", "jump('SKIP')", "next request that the filter cut short", "jump", "skip"),
    Key("previous-skip", "S", "jump('SKIP',True)", "previous one", "jump"),
    Key("next-denial", "d", "jump('DENIAL')", "next denied promotion", "jump"),
    Key("previous-denial", "D", "jump('DENIAL',True)", "previous one", "jump"),
    Key("next-promotion", "m", "jump('PROMOTION')", "next promotion", "jump"),
    Key("previous-promotion", "M", "jump('PROMOTION',True)", "previous one", "jump"),
    Key("next-eviction", "v", "jump('EVICTION')", "next eviction from the CPU tier", "jump"),
    Key("previous-eviction", "V", "jump('EVICTION',True)", "previous one", "jump"),
    Key("next-give-up", "u", "jump('GIVE_UP')", "next request that was given up", "jump"),
    Key("previous-give-up", "U", "jump('GIVE_UP',True)", "previous one", "jump"),
    Key("find", "slash", "find", "find a block or a request", "jump"),
    Key("find-next", "n", "find_again", "find the next", "jump"),
    Key("find-previous", "N", "find_again(True)", "find the previous", "jump"),
    Key("go-to", "colon", "go_to", "go to a request by its number or id", "jump"),
)

ASK: Final = (
    Key("filter", "f", "edit_filter", "edit the filter", "ask", "filter"),
    Key("presets", "F", "presets", "choose a filter: presets, and those used before", "ask"),
    Key("compare", "c", "compare", "compare with another filter", "ask", "compare"),
    Key("export", "e", "export", "export the screen (SVG, text) or the request (JSON)", "ask"),
    Key("copy", "y", "copy", "copy as a command line", "ask"),
    Key("save-fixture", "w", "save_fixture", "save the request as a scripted fixture", "ask"),
    Key("open", "o", "open", "open another trace or fixture", "ask"),
)

PANES: Final = (
    Key("blocks", "1", "pane('blocks')", "the blocks of the request, a row each", "panes"),
    Key("requests", "2", "pane('requests')", "requests", "panes"),
    Key("events", "3", "pane('events')", "events", "panes"),
    Key("jobs", "4", "pane('jobs')", "jobs in flight, slots of the CPU tier", "panes"),
    Key("plots", "5", "pane('plots')", "hit rates over time", "panes"),
    Key("next-pane", "tab", "next_pane", "next pane", "panes"),
    Key("previous-pane", "shift+tab", "next_pane(-1)", "previous pane", "panes"),
    Key("zoom", "z", "zoom", "zoom the pane, and back", "panes"),
    Key("tables", "t", "tables", "tables: requests, tiers, resident blocks, jobs, events", "panes"),
)

REST: Final = (
    Key("help", "question_mark,f1", "help", "this help", "rest", "help"),
    Key("quit", "q,ctrl+q", "quit", "quit", "rest", "quit"),
)

MAIN: Final = (*PLAY, *JUMPS, *ASK, *PANES, *REST)

MOVES: Final = (
    Key("up", "up,k", "up", "up", "move"),
    Key("down", "down,j", "down", "down", "move"),
    Key("left", "left,h", "left", "block to the left", "move"),
    Key("right", "right,l", "right", "block to the right", "move"),
    Key("page-up", "pageup", "page(-1)", "page up", "move"),
    Key("page-down", "pagedown", "page(1)", "page down", "move"),
    Key("top", "home", "top", "to the top, or the first block (also g g)", "move"),
    Key("bottom", "end,G", "bottom", "to the end, or the last block", "move"),
    Key("g", "g", "g", "", "move"),
    Key("choose", "enter", "choose", "show the request under the cursor", "move"),
)

FILTER: Final = (
    Key("filter-history", "up", "history(-1)", "the filter before", "filter", "history"),
    Key("filter-history-on", "down", "history(1)", "the filter after", "filter"),
    Key("filter-replay", "enter", "submit", "replay from the start", "filter", "replay from the start"),
    Key("filter-from-here", "ctrl+r", "from_here", "replay from this request on", "filter", "from here"),
    Key("filter-restore", "escape", "restore", "leave the filter as it was", "filter", "restore"),
)

COMPARE: Final = (
    Key("compare-next", "n", "difference(1)", "next difference", "compare", "difference"),
    Key("compare-previous", "N", "difference(-1)", "previous difference", "compare"),
    Key("compare-swap", "x", "swap", "swap A and B", "compare", "swap"),
    Key("compare-sort", "o", "sort", "sort by size of change, or by request", "compare", "sort"),
    Key("compare-filter", "f", "edit_filter", "another filter for B", "compare", "filter"),
    Key("compare-export", "e", "export", "export", "compare", "export"),
    Key("compare-back", "escape", "back", "back", "compare", "back"),
    Key("compare-help", "question_mark,f1", "help", "this help", "compare", "help"),
    Key("compare-quit", "q,ctrl+q", "quit", "quit", "compare", "quit"),
)

GROUPS: Final = {
    "play": "Play",
    "move": "Move",
    "jump": "Jump",
    "ask": "Ask",
    "panes": "Panes",
    "rest": "And",
    "filter": "While the filter is edited",
    "compare": "While comparing",
}

ALL: Final = (*MAIN, *MOVES, *FILTER, *COMPARE)

_SHOWN: Final = {
    "full_stop": ".",
    "comma": ",",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "colon": ":",
    "question_mark": "?",
    "escape": "esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


FOOTER: Final = ("play", "step", "previous", "filter", "next-skip", "compare", "help", "quit")
"""The keys of the main screen's last line, in their order."""


def bindings(keys: Iterable[Key]) -> list[Binding]:
    """As Textual takes them."""
    return [key.binding() for key in keys]


def shown(key: Key, keymap: Mapping[str, str]) -> str:
    """How the first key of a binding is written, as the user has remapped it."""
    first = keymap.get(key.id, key.keys).split(",")[0].strip()
    return "^" + first.removeprefix("ctrl+") if first.startswith("ctrl+") else _SHOWN.get(first, first)


def all_shown(key: Key, keymap: Mapping[str, str]) -> str:
    """All keys of a binding."""
    names = [name.strip() for name in keymap.get(key.id, key.keys).split(",")]
    return " ".join(_SHOWN.get(name, name) for name in names)
