"""One replay of a tape under one plan of filters: ahead through the whole of it for the rows, and at the cursor.

Two runs of the same decisions: the one ahead keeps a byte a block and nothing else, at full speed; the one at the
cursor tells stories. Either is stopped whenever somebody waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from kvtier_cli.replay.loop import Served
from kvtier_cli.replay.outcomes import Outcome
from kvtier_cli.replay.story import tell_story
from kvtier_cli.replay.trace_run import TraceRun
from kvtier_cli.tiering.model import BlockKey
from tui.session.events import EventKind, EventLog
from tui.session.moments import moment_of
from tui.session.plan import Plan
from tui.session.resident import ResidentBlocks
from tui.session.rows import RequestRows
from tui.session.tape import Tape
from tui.session.views import Moment

if TYPE_CHECKING:
    from kvtier_cli.replay.checkpoint import CheckpointKeeper
    from kvtier_cli.replay.slice import Slice

Stop = Callable[[], bool]
"""Whether to stop working and come back later."""

KEPT: Final = 128
KEPT_BLOCKS: Final = 100_000
"""So many moments are kept, with so many blocks in all, that going back to them costs nothing."""

TOLD_BEFORE: Final = 12
"""So many requests before one that is gone back to are told as well: the next step back is there at once."""


class Course:
    """See the module. `rows` grows as the run ahead goes on; `is_whole` once it is through."""

    def __init__(self, tape: Tape, plan: Plan) -> None:
        self.tape = tape
        self.plan = plan
        self._only = plan.only
        self.rows = RequestRows()
        self.is_whole = False
        self._faulty = any(tier.fail_loads or tier.fail_stores for tier in tape.topology.tiers)
        self._marked: dict[int, int] = {}
        self._ahead = self._new_run()
        self.rows.watch(self._ahead)
        self._keeper: CheckpointKeeper | None = None
        self._here = self._new_run()
        self._events = EventLog(self._here.manager)
        self._here.listen(self._events)
        self._target = self._told_from = 0
        self._moments: OrderedDict[int, Moment] = OrderedDict()
        self._kept_blocks = 0

    def _new_run(self) -> TraceRun:
        return TraceRun([], self.tape.topology, table=self.tape.table)

    @property
    def _checkpoints(self) -> CheckpointKeeper:
        """Made when the run ahead sets out: the first picture needs none, nor what comes with them."""
        if self._keeper is None:
            from kvtier_cli.replay.checkpoint import CheckpointKeeper

            self._keeper = CheckpointKeeper(self._ahead)
        return self._keeper

    # Ahead

    def advance(self, stop: Stop) -> bool:
        """Replay ahead until `stop` says so or the trace ends; whether there is more to do."""
        tape, rows, run, checkpoints = self.tape, self.rows, self._ahead, self._checkpoints
        index = rows.count
        while tape.has(index):
            served = self._replay(run, index)
            rows.finished(served.loaded, served.passes)
            checkpoints.keep()
            index += 1
            if stop():
                return True
        self.is_whole = True
        return False

    def figures(self) -> dict[str, Any]:
        """The figures of what was replayed ahead so far, as `replay --json` has them."""
        return self._ahead.figures()

    def _replay(self, run: TraceRun, index: int) -> Served:
        tape, loop = self.tape, run.loop
        self._prepare(run)
        keys = tape.keys(index)
        load_filter = self._only or self.plan.filter(index, tape)
        return loop.replay(keys, load_filter, loop.first_new(keys), tape.limits(index))

    def _prepare(self, run: TraceRun) -> None:
        """Tell a run what is known of the trace only as it is read."""
        run.loop.block_tokens = self.tape.block_tokens
        if self._faulty:
            known, there = self._marked.get(id(run), 0), len(self.tape.table)
            if there > known:
                run.loop.mark_faulty(range(known, there))
                self._marked[id(run)] = there

    # At the cursor

    def moment(self, index: int, stop: Stop) -> Moment | None:
        """How things stand when request `index` is over; None where `stop` said so before, to be asked again."""
        if not self.tape.has(index):
            raise IndexError(index)
        known = self._moments.get(index)
        if known is not None:
            self._moments.move_to_end(index)
            return known
        if index != self._target:
            self._go_towards(index)
        run = self._here
        while run.loop.requests < index:
            if stop():
                return None
            if run.loop.requests >= self._told_from:
                self._tell(run, run.loop.requests)
            else:
                self._replay(run, run.loop.requests)
        return self._tell(run, index)

    def run_on(self, stop: Stop, last: int) -> Moment | None:
        """Replay on from the cursor until `stop` says so, or before request `last`, and tell of the next one."""
        run = self._here
        if run.loop.requests > last:
            return None
        while run.loop.requests < last and not stop():
            self._replay(run, run.loop.requests)
        return self._tell(run, run.loop.requests)

    def saved(self, index: int) -> Slice:
        """Request `index` as a scripted fixture that by itself comes to the same. Raises InputError where none does."""
        from kvtier_cli.replay.checkpoint import restore
        from kvtier_cli.replay.slice import save_slice
        from kvtier_cli.replay.slice_text import Origin

        tape, run = self.tape, self._new_run()
        restore(run, self._checkpoints.at_or_before(index))
        while run.loop.requests < index:
            self._replay(run, run.loop.requests)
        self._prepare(run)
        part = self.plan.part(index)
        note = None if part.parse is None else f"under the filter {part.text}"
        return save_slice(
            run,
            tape.keys(index),
            self.plan.parse(index, tape),
            label=tape.label(index),
            origin=Origin(tape.source.name, index, tape.own_id(index), note),
            request_name=self._request_name,
            limits=tape.limits(index),
        )

    def resident(self) -> ResidentBlocks:
        """The blocks that the tiers hold where the cursor's run is."""
        return ResidentBlocks(self._here.manager, self.block_name)

    def _go_towards(self, index: int) -> None:
        """Put the run at the cursor somewhere before `index`, as near as that is cheap."""
        from kvtier_cli.replay.checkpoint import restore

        self._target = index
        run, at = self._here, self._here.loop.requests
        checkpoint = self._checkpoints.at_or_before(max(0, index - TOLD_BEFORE))
        if at > index or at < checkpoint.request:
            restore(run, checkpoint)
            self._events.clear()
            self._told_from = index - TOLD_BEFORE
        elif index - at > TOLD_BEFORE:
            self._told_from = index

    def _tell(self, run: TraceRun, index: int) -> Moment:
        tape, events = self.tape, self._events
        self._prepare(run)
        parse = self.plan.parse(index, tape)
        keys = tape.keys(index)
        run.loop.first_new(keys)  # the blocks are seen from now on
        story = tell_story(
            run.loop,
            keys,
            parse,
            run.history,
            label=tape.label(index),
            block_tokens=tape.block_tokens,
            request_name=self._request_name,
            observers=[events],
            limits=tape.limits(index),
        )
        if story.stop is not None and story.stop.outcome in (Outcome.FILTERED, Outcome.DENIED):
            kind = EventKind.SKIP if story.stop.outcome is Outcome.FILTERED else EventKind.DENY
            events.add(kind, index, story.stop.tier, 1 + story.stop.held_behind, said=f"block {story.stop.at:,}")
        moment = moment_of(run.manager, index, tape.label(index), story, events, run.figures(), self._request_name)
        self._keep(index, moment)
        return moment

    def _keep(self, index: int, moment: Moment) -> None:
        moments = self._moments
        moments[index] = moment
        self._kept_blocks += _blocks(moment)
        while len(moments) > 1 and (len(moments) > KEPT or self._kept_blocks > KEPT_BLOCKS):
            self._kept_blocks -= _blocks(moments.popitem(last=False)[1])

    def _request_name(self, request: Hashable) -> str:
        return self.tape.label(request) if isinstance(request, int) else str(request)

    def block_name(self, key: BlockKey) -> str:
        """What a block is called."""
        return self.tape.table.name(key) if isinstance(key, int) else str(key)


def _blocks(moment: Moment) -> int:
    return 0 if moment.story is None else len(moment.story.blocks)
