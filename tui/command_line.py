"""The command line that shows the same as the screen does."""

from __future__ import annotations

import shlex

from kvtier_cli.traces.options import option_words
from tui.session.opening import Asked
from tui.session.views import Kind, Snapshot


def command_of(snapshot: Snapshot, asked: Asked) -> str:
    """What to type for the request (or fixture, or lookup) on show."""
    topology = [] if asked.topology is None else ["--topology", asked.topology.name]
    view = snapshot.filter
    file = snapshot.title
    if snapshot.kind is Kind.FIXTURE:
        return _joined("replay", file)
    label = snapshot.moment.label if snapshot.moment is not None else f"r{snapshot.cursor}"
    if snapshot.kind is Kind.LOG:
        return _joined("explain", file, "--request", label)
    if snapshot.kind is Kind.WORKSPACE:
        story = None if snapshot.moment is None else snapshot.moment.story
        blocks = [] if story is None else [block.name for block in story.blocks]
        tiers = [] if view.text == "all" else ["--tiers", view.text]
        words = ["lookup", *blocks, *tiers] if blocks else ["tiers"]
        return _joined(*words, "--workspace", file)
    tiers = [] if view.own else ["--tiers", view.text]
    reading = option_words(asked.reading, skip_bad=asked.skip_bad)
    if view.since:
        # What came before has run under other filters: that is what lookup does.
        return _joined("lookup", "--trace", file, "--request", label, *tiers, *topology, *reading)
    return _joined("explain", file, "--request", label, *tiers, *topology, *reading)


def _joined(*words: str) -> str:
    return shlex.join(["kvtier", *words])
