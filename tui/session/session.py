"""The session: orders in, snapshots out, and the thread between them that does the work in slices."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

from kvtier_cli.errors import InputError, KvtierError
from kvtier_cli.tiering.filters import FilterParse
from tui.session.comparison import Comparison
from tui.session.rows import Mark
from tui.session.show import Show
from tui.session.views import Fault, Kind, Moment, Snapshot

SPEEDS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, None)
"""Requests a second; None is as fast as can be."""

_DEFAULT_SPEED: Final = 3
_SLICE: Final = 0.1
"""Seconds of work between two looks at the clock; an order ends a slice at once."""

_FAST_SLICE: Final = 0.15
"""At full speed a picture is made that often."""

_PICTURES: Final = 10
"""At the other speeds so many a second at most."""

_PAUSE: Final = 0.25
_SHORTEST_PAUSE: Final = 0.03
"""Seconds to sleep while there is nothing to do but to wait for the next request to be due."""

MARK_WORDS: Final = {
    Mark.SKIP: "skip",
    Mark.DENIAL: "denial",
    Mark.PROMOTION: "promotion",
    Mark.EVICTION: "eviction",
    Mark.GIVE_UP: "request given up",
}

_FOR_DRAWING: Final = 0.05
_FOR_THE_FIRST: Final = 1.0
"""Seconds to leave the processor to whoever draws what an order came to; the first picture takes its time."""

Order = Callable[[], None]


class Session:
    """Drives a `Show`. Orders may come from any thread; all work is done by whoever calls `turn` (or `work`).

    `snapshot` is replaced as a whole, never changed. `on_change` is called, from the working thread, when an order
    was carried out; what the replay ahead brings is for whoever looks at `snapshot` now and then.
    """

    def __init__(
        self,
        show: Show,
        *,
        start: int = 0,
        on_change: Callable[[], None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.show = show
        self.on_change = on_change
        self._clock = clock
        self._orders: deque[Order] = deque()
        self._wake = threading.Event()
        self._cursor = start
        self._playing = False
        self._speed = _DEFAULT_SPEED
        self._seconds = 0.0
        self._credit = 0.0
        self._ticked: float | None = None
        self._said = ""
        self._block: int | None = None
        self._fault: Fault | None = None
        self._told: KvtierError | None = None
        self._stopped = False
        self._searching: tuple[Mark, int, bool] | None = None
        self._more = True
        self._serial = 0
        self._undrawn = False
        self._for_drawing = _FOR_THE_FIRST
        self.comparison: Comparison | None = None
        self.snapshot = self._snapshot(None)

    # Orders

    def seek(self, index: int) -> None:
        """Show position `index`, or the nearest there is."""
        self._order(lambda: self._seek(index))

    def move(self, by: int) -> None:
        """Go so many positions on, or back."""
        self._order(lambda: self._seek(self._cursor + by))

    def toggle_play(self) -> None:
        self._order(lambda: self._play(not self._playing))

    def pause(self) -> None:
        self._order(lambda: self._play(False))

    def change_speed(self, by: int) -> None:
        self._order(lambda: self._change_speed(by))

    def jump(self, mark: Mark, *, backwards: bool = False) -> None:
        """Go to the next request with `mark`, or to the last before; one that is not replayed yet is waited for."""
        self._order(lambda: self._jump(mark, backwards))

    def find(self, text: str, *, backwards: bool = False) -> None:
        """Go to the next request that has the block `text`, or to the request of that name."""
        self._order(lambda: self._find(text, backwards))

    def go_to(self, text: str) -> None:
        """Go to a request by its id or number."""
        self._order(lambda: self._go_to(text))

    def set_filter(self, parse: FilterParse | None, text: str, *, from_here: bool = False) -> None:
        """Replay under another filter, from the start or from the request at the cursor on; None: their own."""
        self._order(lambda: self._set_filter(parse, text, from_here))

    def compare(self, parse: FilterParse | None, text: str) -> None:
        """Replay a second time, under another filter, beside the first; None: under the requests' own."""
        self._order(lambda: self._compare(parse, text))

    def end_comparison(self) -> None:
        self._order(self._end_comparison)

    def in_comparison(self, order: Callable[[Comparison], None]) -> None:
        """Carry out an order to the comparison, if there is one."""
        self._order(lambda: order(self.comparison) if self.comparison is not None else None)

    def halt(self) -> None:
        """Stop all work until something is asked for again."""
        self._order(self._halt)

    def forget_fault(self) -> None:
        self._order(self._forget_fault)

    def call(self, work: Order) -> None:
        """Have `work` done by the working thread."""
        self._order(work)

    def _order(self, order: Order) -> None:
        self._orders.append(order)
        self._wake.set()

    @property
    def has_orders(self) -> bool:
        return bool(self._orders)

    # Work

    def work(self, is_over: Callable[[], bool]) -> None:
        """Do what there is to do until `is_over`; sleeps while there is nothing, and while what an order came to is
        drawn: two threads that both work take turns, and each turn would cost the picture some milliseconds."""
        while not is_over():
            more = self.turn()
            self._wake.clear()
            if self._orders:
                continue
            if self._undrawn:
                self._wake.wait(self._for_drawing)
                self._undrawn, self._for_drawing = False, _FOR_DRAWING
            elif not more:
                self._wake.wait(self._pause())

    def drawn(self) -> None:
        """The last that `on_change` told of is on the screen."""
        if self._undrawn:
            self._undrawn = False
            self._wake.set()

    def _pause(self) -> float:
        speed = SPEEDS[self._speed]
        return max(_SHORTEST_PAUSE, min(_PAUSE, 1 / speed / 4)) if self._playing and speed else _PAUSE

    def run_until_idle(self) -> Snapshot:
        """Do all there is to do at once; for tests and for pictures. Does not play."""
        while self.turn():
            pass
        return self.snapshot

    def turn(self) -> bool:
        """One slice of work; whether there is more to do at once."""
        try:
            return self._turn()
        except KvtierError as error:
            self._told = error
            self._fail(fault_of(error, self.show, self.show.listing.count))
        except Exception as error:  # whatever it is, it must not take the screen along
            self._fail(fault_of(error, self.show, self.show.listing.count))
        return bool(self._orders)

    def _turn(self) -> bool:
        ordered = bool(self._orders)
        while self._orders:
            self._orders.popleft()()
        if self._stopped:
            self._publish(ordered)
            return False
        if self.comparison is not None:
            more = self.comparison.work(self._until(_SLICE))
            if ordered:
                self._tell()
            return more
        self._tick()
        moment = self.snapshot.moment
        if moment is None or moment.index != self._cursor:
            found = self._moment()
            if found is not None:
                moment = found
            self._publish(ordered or found is not None, moment)
            return True
        if self._playing and SPEEDS[self._speed] is None:
            found = self.show.run_on(self._until(_FAST_SLICE))
            if found is not None:
                self._cursor = found.index
            elif not self._more:  # all is replayed, and the end a step away
                last = max(self.show.listing.count - 1, 0)
                self._playing = self._cursor < last
                self._cursor = last
            self._publish(ordered, found or moment)
            if self._more:
                self._work_ahead()
            return self._playing or self._more
        if ordered:
            self._publish(True)
        if self._more:
            self._work_ahead()
            self._search_on()
            self._publish(False)
        return self._more

    def _work_ahead(self) -> None:
        try:
            self._more = self.show.work(self._until(_SLICE))
        except KvtierError as error:
            if error is not self._told:
                raise
            self._more = False  # what comes before it can be played all the same

    def _moment(self) -> Moment | None:
        try:
            return self.show.moment(self._cursor, self._until(_SLICE))
        except IndexError:
            self._cursor = max(self.show.listing.count - 1, 0)
            if self.show.listing.count:
                return None
            raise

    def _until(self, seconds: float) -> Callable[[], bool]:
        end = monotonic() + seconds
        orders = self._orders
        return lambda: bool(orders) or monotonic() > end

    def _tick(self) -> None:
        """Move the cursor by what has passed since the last look at the clock."""
        now = self._clock()
        passed = 0.0 if self._ticked is None else now - self._ticked
        self._ticked = now
        if not self._playing:
            return
        self._seconds += passed
        speed = SPEEDS[self._speed]
        if speed is None:
            return
        self._credit += passed * speed
        whole = int(self._credit)
        if whole * _PICTURES < speed:  # a picture of each request would cost the replay its speed
            whole = 0
        self._credit -= whole
        last = self.show.listing.count - 1
        if whole:
            self._cursor = min(self._cursor + whole, max(last, 0))
        if self._cursor >= last and not self._more:
            self._playing = False

    # What orders do

    def _seek(self, index: int) -> None:
        self._said, self._block, self._searching = "", None, None
        show = self.show
        # How much a trace has is not known before more of it is read; there may always be one more.
        last = show.total - 1 if show.is_total else max(show.listing.count - 1, show.total - 1, self._cursor + 1)
        self._cursor = min(max(index, 0), max(last, 0))

    def _play(self, playing: bool) -> None:
        self._said = ""
        self._playing = playing
        self._more = True
        self._ticked, self._credit = None, 0.0
        if playing and self.show.is_total and self._cursor >= self.show.listing.count - 1:
            self._cursor = 0

    def _change_speed(self, by: int) -> None:
        self._speed = min(max(self._speed + by, 0), len(SPEEDS) - 1)

    def _jump(self, mark: Mark, backwards: bool) -> None:
        self._said, self._block = "", None
        self._searching = (mark, self._cursor, backwards)
        self._search_on()

    def _search_on(self) -> None:
        if self._searching is None:
            return
        mark, start, backwards = self._searching
        found = self.show.next_mark(mark, start, backwards=backwards)
        if found is not None:
            self._cursor, self._searching = found, None
        elif backwards or not self._more:
            self._searching = None
            self._said = f"no {'earlier' if backwards else 'later'} {MARK_WORDS[mark]}"

    def _find(self, text: str, backwards: bool) -> None:
        found = self.show.find(text, self._cursor, backwards=backwards)
        if found is None:
            more = "" if self.show.is_total else " in what was read so far"
            self._said = f"no block and no request {text}{more}"
            return
        self._seek(found.position)
        self._block = found.block

    def _go_to(self, text: str) -> None:
        found = self.show.go_to(text)
        if found is None:
            more = "" if self.show.is_total else " in what was read so far"
            self._said = f"no request {text}{more}"
            return
        self._seek(found.position)

    def _set_filter(self, parse: FilterParse | None, text: str, from_here: bool) -> None:
        self._said = ""
        self.show.set_filter(parse, text, self._cursor if from_here else 0)
        self._more, self._stopped, self._fault = True, False, None
        self.snapshot = self._snapshot(None)

    def _compare(self, parse: FilterParse | None, text: str) -> None:
        self._playing = False
        self.comparison = self.show.compare(parse, text, self._cursor)
        if self.comparison is None:
            self._said = "only replays of traces can be compared"

    def _end_comparison(self) -> None:
        if self.comparison is not None:
            self._seek(self.comparison.view.cursor)
        self.comparison = None
        self._more = True

    def _halt(self) -> None:
        self._playing, self._more, self._searching = False, False, None
        self._said = "stopped"

    def _forget_fault(self) -> None:
        self._fault = None

    def _fail(self, fault: Fault) -> None:
        self._fault = fault
        self._playing, self._more, self._searching = False, False, None
        moment = self.snapshot.moment
        if moment is None or moment.index != self._cursor:
            # What was shown last stays; where nothing was, there is nothing to work on.
            if moment is not None:
                self._cursor = moment.index
            else:
                self._stopped = True
        self._publish(True)

    # Snapshots

    def _publish(self, tell: bool, moment: Moment | None = None) -> None:
        self.snapshot = self._snapshot(moment or self.snapshot.moment)
        if tell:
            self._tell()

    def _tell(self) -> None:
        if self.on_change is not None:
            self._undrawn = True
            self.on_change()

    def _snapshot(self, moment: Moment | None) -> Snapshot:
        show = self.show
        self._serial += 1
        waiting = moment is not None and moment.index != self._cursor
        busy = "searching" if self._searching else "replaying" if waiting else ""
        return Snapshot(
            self._serial,
            show.kind,
            show.title,
            show.topology,
            show.listing,
            show.listing.count,
            show.total,
            show.is_total,
            self._cursor,
            moment,
            show.filter_at(self._cursor),
            self._playing,
            SPEEDS[self._speed],
            self._seconds,
            busy,
            self._said,
            self._fault,
            tuple(show.warnings),
            self._block,
            show.rows,
        )


def fault_of(error: Exception, show: Show, known: int) -> Fault:
    """An exception of the working thread as the screen tells it."""
    noun = {Kind.TRACE: "request", Kind.FIXTURE: "op", Kind.WORKSPACE: "lookup", Kind.LOG: "request"}[show.kind]
    intact = f"The replay stopped at {noun} {known:,}; everything before it is intact." if known else ""
    if isinstance(error, InputError):
        place = ":".join(str(part) for part in (error.file, error.line, error.column) if part is not None)
        where = ": ".join(part for part in (place, error.path) if part)
        readable = show.kind is Kind.TRACE and error.line is not None
        title = "The trace has a line that cannot be read" if readable else "That cannot be read"
        return Fault(title, error.message, where, error.hint or "", intact, can_skip=readable)
    if isinstance(error, KvtierError):
        return Fault("That did not work", error.message, "", error.hint or "", intact)
    told = f"{type(error).__name__}: {error}".rstrip(": ")
    return Fault("A fault of kvtier", told, "", "", intact, trace="".join(traceback.format_exception(error)))
