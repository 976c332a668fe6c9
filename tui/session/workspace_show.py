"""A workspace that is open: what its tiers hold, and lookups in it that change nothing.

It is opened for each look and let go of again: others can load into it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kvtier_cli.replay.story_model import RequestStory
from kvtier_cli.replay.text_keys import label_of
from kvtier_cli.tiering.filters import FilterParse, lint_against, parse_tier_filter
from kvtier_cli.workspace import Workspace, open_workspace
from kvtier_cli.workspace.holdings import Holding, faults_in_force, tier_holdings
from kvtier_cli.workspace.lookup import look_up
from kvtier_cli.workspace.stored_blocks import StoredBlocks
from tui.session.course import Stop
from tui.session.moments import declared
from tui.session.rows import CODE, PROMOTED_FROM, Mark, RequestRows
from tui.session.trace_show import Found
from tui.session.views import FilterView, Kind, Listing, Moment, RowView, SlotsView, TierView

COMMAND: Final = "kvtier dash"
_HINT: Final = "Type / and the ids of blocks, in order, to look them up. Nothing changes in the workspace."

_EMPTY: Final = ("Nothing was loaded into this workspace yet.", "kvtier load FILE fills it; o opens a trace instead.")


class WorkspaceShow:
    """Position 0 is the workspace as it stands; behind it come the lookups of this session."""

    kind = Kind.WORKSPACE
    rows: RequestRows | None = None
    is_total = True

    def __init__(self, path: Path, parse: FilterParse | None = None, text: str = "") -> None:
        self.path = path
        self.title = str(path)
        with self._opened() as space:
            self.topology = space.topology
            self.warnings: Sequence[str] = tuple(faults_in_force(space.topology))
        self._unfiltered = lint_against(parse_tier_filter(), self.topology.tiers)
        self._parse, self._text = parse or self._unfiltered, text if parse else "all"
        self._lookups: list[tuple[str, ...]] = [()]
        self._moments: dict[int, Moment] = {}

    def _opened(self) -> Workspace:
        return open_workspace(self.path, write=False, command=COMMAND)

    @property
    def count(self) -> int:
        return len(self._lookups)

    @property
    def total(self) -> int:
        return len(self._lookups)

    @property
    def listing(self) -> Listing:
        return self

    def row(self, index: int) -> RowView:
        texts, moment = self._lookups[index], self._moments.get(index)
        if not texts:
            return RowView(index, "now", text="what the tiers hold")
        story = None if moment is None else moment.story
        if story is None:
            return RowView(index, f"{index}", text=" ".join(texts))
        codes = bytes(
            PROMOTED_FROM if block.outcome.value == "promoted" else CODE[block.outcome] for block in story.blocks
        )
        stop = None if story.stop is None else story.stop.outcome
        note = "served whole" if stop is None else stop.value.replace("_", " ")
        return RowView(index, f"{index}", f"{story.served}/{len(story.blocks)}", codes, " ".join(texts), note, stop)

    def work(self, stop: Stop) -> bool:
        return False

    def moment(self, index: int, stop: Stop) -> Moment | None:
        if index >= len(self._lookups):
            raise IndexError(index)
        if index not in self._moments:
            self._moments[index] = self._look(index)
        return self._moments[index]

    def _look(self, index: int) -> Moment:
        texts = self._lookups[index]
        with self._opened() as space:
            found = tier_holdings(space)
            story: RequestStory | None = None
            loaded = space.state.requests
            said: tuple[str, ...] = (f"{loaded:,} requests were loaded into it.", _HINT) if loaded else _EMPTY
            if texts:
                answer = look_up(space, texts, self._parse)
                story = answer.story
                if story is None:
                    name = answer.blocks.name
                    said = tuple(
                        f"{text} stands for several blocks: {', '.join(name(each.key) for each in blocks)}"
                        for text, blocks in answer.resolved.ambiguous.items()
                    )
                elif answer.resolved.unknown:
                    said = (f"no tier has a block {', '.join(answer.resolved.unknown)}",)
            label = f"lookup {index}" if texts else "the workspace"
            tiers = tuple(_tier(tier, space.state.blocks) for tier in found)
            primary = found[0]
            slots = SlotsView((primary.capacity or 0) - primary.resident, primary.resident, 0, 0)
            return Moment(index, label, story, tiers, (), 0, slots, (), 0, {}, said=said)

    def run_on(self, stop: Stop) -> Moment | None:
        return None

    def filter_at(self, index: int) -> FilterView:
        return FilterView(self._text, self._parse, False)

    def set_filter(self, parse: FilterParse | None, text: str, since: int) -> None:
        self._parse, self._text = parse or self._unfiltered, text if parse else "all"
        self._moments.clear()

    def next_mark(self, mark: Mark, start: int, *, backwards: bool) -> int | None:
        return None

    def go_to(self, text: str) -> Found | None:
        number = int(text) if text.isdecimal() and len(text) < 9 else -1
        return Found(number) if 0 <= number < len(self._lookups) else None

    def find(self, text: str, start: int, *, backwards: bool = False) -> Found | None:
        """Look the blocks that `text` names up, in order."""
        texts = tuple(text.replace(",", " ").split())
        if not texts:
            return None
        self._lookups.append(texts)
        return Found(len(self._lookups) - 1)

    def compare(self, parse: FilterParse | None, text: str, cursor: int) -> None:
        return None

    def saved(self, index: int) -> None:
        return None

    def resident(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        with self._opened() as space:
            blocks = StoredBlocks(space)
            listed = blocks.listed()
            blocks.learn({label_of(block.key) for block in listed})
            return [(blocks.name(block.key), block.tiers) for block in listed]

    def close(self) -> None:
        """Nothing is kept open."""


def _tier(tier: Holding, blocks: int) -> TierView:
    totals = tier.totals
    return TierView(
        tier.name,
        "primary" if tier.is_primary else declared(tier.medium, tier.locality),
        tier.resident,
        tier.capacity,
        totals.asked,
        totals.hits,
        totals.hits / totals.asked if totals.asked else None,
        totals.served / blocks if blocks else None,
        totals.skipped,
        totals.promoted,
        tier.spec is not None and tier.spec.offline,
    )
