"""What the session needs of whatever is open: a trace, a scripted fixture or a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.topology import Topology
from tui.session.comparison import Comparison
from tui.session.course import Stop
from tui.session.rows import Mark, RequestRows
from tui.session.trace_show import Found
from tui.session.views import FilterView, Kind, Listing, Moment


class Show(Protocol):
    """Positions count requests, ops or lookups from 0. Only the session's thread calls these."""

    @property
    def kind(self) -> Kind: ...

    title: str
    topology: Topology

    @property
    def listing(self) -> Listing: ...

    @property
    def rows(self) -> RequestRows | None: ...

    @property
    def total(self) -> int: ...

    @property
    def is_total(self) -> bool: ...

    @property
    def warnings(self) -> Sequence[str]: ...

    def work(self, stop: Stop) -> bool:
        """Do what there is to do behind the screen until `stop` says so; whether there is more."""

    def moment(self, index: int, stop: Stop) -> Moment | None:
        """How things stand after position `index`; None: not there yet, ask again. IndexError where there is none."""

    def run_on(self, stop: Stop) -> Moment | None:
        """Go on from the last moment as far as possible before `stop`; None at the end."""

    def filter_at(self, index: int) -> FilterView: ...

    def set_filter(self, parse: FilterParse | None, text: str, since: int) -> None: ...

    def next_mark(self, mark: Mark, start: int, *, backwards: bool) -> int | None: ...

    def go_to(self, text: str) -> Found | None: ...

    def find(self, text: str, start: int, *, backwards: bool = False) -> Found | None: ...

    def compare(self, parse: FilterParse | None, text: str, cursor: int) -> Comparison | None:
        """The same trace under two filters; None where there is nothing to replay."""

    def saved(self, index: int) -> str | None:
        """A position as the text of a scripted fixture; None where there is no request of a trace to save."""

    def resident(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        """The blocks that the tiers hold at the moment on show, each with the tiers that do."""

    def close(self) -> None: ...
