"""What the session hands out: frozen, whole, safe to keep. Widgets read these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.tiering.filters import FilterParse
from kvtier_cli.tiering.model import LookupResult
from kvtier_cli.tiering.topology import Topology
from tui.session.events import Event
from tui.session.rows import RequestRows


class Kind(Enum):
    """What is open."""

    TRACE = "trace"
    FIXTURE = "fixture"
    WORKSPACE = "workspace"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class TierView:
    """One tier as it stands, the primary first. Blocks; `capacity` None is unlimited. `of_asked`: its hits of the
    blocks it was asked for; `of_all`: what it served of all blocks; both None where there was nothing yet."""

    name: str
    declares: str
    resident: int
    capacity: int | None
    asked: int
    hits: int
    of_asked: float | None
    of_all: float | None
    skipped: int
    promoted: int
    offline: bool = False

    @property
    def full(self) -> float | None:
        """The share of its capacity that is taken, None where it has no limit."""
        if self.capacity is None:
            return None
        return self.resident / self.capacity if self.capacity else 1.0


@dataclass(frozen=True, slots=True)
class JobView:
    """A transfer under way. `age` and `due` in ends of steps, None where that is not known."""

    job: int
    tier: str
    kind: str
    request: str
    blocks: int
    age: int | None
    due: int | None


@dataclass(frozen=True, slots=True)
class SlotsView:
    """The primary's slots: free, ready and evictable, pinned by what reads them, pending until a write ends."""

    free: int
    evictable: int
    pinned: int
    pending: int


@dataclass(frozen=True, slots=True)
class EventView:
    """An event with its request's name."""

    event: Event
    request: str


@dataclass(frozen=True, slots=True)
class Moment:
    """How things stand when request (or op) `index` is over. `story` is None where there is no request to tell of;
    `pending` are blocks of it whose lookup goes on, with what they answered last. `figures` as `replay --json`."""

    index: int
    label: str
    story: RequestStory | None
    tiers: tuple[TierView, ...]
    jobs: tuple[JobView, ...]
    jobs_running: int
    slots: SlotsView
    events: tuple[EventView, ...]
    step: int
    figures: Mapping[str, Any]
    pending: Mapping[int, LookupResult] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    """Sentences to show where there is no story, or besides it."""


@dataclass(frozen=True, slots=True)
class RowView:
    """A line of the list. `codes` draws its blocks (see `rows.py`); where it has none, `text` stands in their place.
    `outcome` is that of the first block which was not served; `failed`: an expectation was not met."""

    index: int
    label: str
    count: str = ""
    codes: bytes = b""
    text: str = ""
    note: str = ""
    outcome: Outcome | None = None
    failed: bool = False


class Listing(Protocol):
    """The list of requests (or ops) by position; rows are made when somebody looks at them."""

    @property
    def count(self) -> int: ...

    def row(self, index: int) -> RowView: ...


@dataclass(frozen=True, slots=True)
class FilterView:
    """The filter in force: as typed or as the requests carry it. `own`: each request has its own."""

    text: str
    parse: FilterParse
    own: bool
    since: int = 0
    """The first request that it applies to."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong behind the screen. `where`: file, line and column; `intact`: what still holds; `can_skip`: the
    bad line may be left out."""

    title: str
    message: str
    where: str = ""
    hint: str = ""
    intact: str = ""
    can_skip: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the screen shows. `known`: rows there are; `total`: requests there will be, `is_total` once that is
    certain. `cursor`: the request asked for; `moment.index` is behind it for as long as the replay is on its way."""

    serial: int
    kind: Kind
    title: str
    topology: Topology
    listing: Listing
    known: int
    total: int
    is_total: bool
    cursor: int
    moment: Moment | None
    filter: FilterView
    playing: bool
    speed: int | None
    """Requests a second; None is as fast as can be."""
    seconds: float
    """How long it has been played."""
    busy: str = ""
    said: str = ""
    """The answer to the last order: a search that found nothing, a jump at the end."""
    fault: Fault | None = None
    warnings: Sequence[str] = ()
    block: int | None = None
    """The block that the last order was about, for the cursor."""
    rows: RequestRows | None = None
    """The outcomes behind the list, where it is one of requests; the first `known` of them may be read."""
