"""Gathers a run's decisions and writes them as a `.kvlog`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from kvtier_cli import __version__
from kvtier_cli.replay.block_labels import LABEL_TYPES, label_columns, text_columns
from kvtier_cli.replay.decision_columns import (
    OUTCOMES,
    REASONS,
    REQUEST_TYPES,
    ROW_TYPES,
    SAID_SMALLER,
    VERDICTS,
    Array,
    Part,
    holder_columns,
)
from kvtier_cli.replay.decision_recorder import DecisionRecorder
from kvtier_cli.replay.kvlog_file import LoggedFilter, LogHeader, write_kvlog
from kvtier_cli.replay.trace_run import TraceRun

_ID_TYPES = {"id_named": "|u1", "id_text": "|u1", "id_end": "<i8"}


class KvlogWriter:
    """Takes the parts of a recorder; `finish` writes them. They are kept in memory until then, some ten bytes a row."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parts: list[Part] = []

    def write(self, part: Part) -> None:
        """Keep one more part."""
        self._parts.append(part)

    def finish(self, run: TraceRun, recorder: DecisionRecorder, about: dict[str, Any]) -> None:
        """Write the log of a run that is over. `about`: the fields `scope`, `files`, `topology`, `filter`, `figures`
        and `warnings` of the header."""
        header = LogHeader(
            kvtier=__version__,
            block_tokens=run.loop.block_tokens,
            tiers=recorder.tiers,
            outcome_words=[each.value for each in OUTCOMES],
            reason_words=[each.value for each in REASONS],
            verdict_words=[each.value for each in VERDICTS],
            verdicts=recorder.verdict_table(),
            filters=[LoggedFilter(each.short(), each.as_json()) for each in recorder.filters],
            **about,
        )
        write_kvlog(self._file, header, self._columns(run, recorder))

    def _columns(self, run: TraceRun, recorder: DecisionRecorder) -> dict[str, tuple[str, Sequence[Array]]]:
        parts = self._parts
        kinds = max(len(recorder.verdict_table()) - 1, 0)
        said = next(name for name in SAID_SMALLER if kinds <= np.iinfo(name).max)
        types = {**ROW_TYPES, "said": said, **dict.fromkeys(holder_columns(len(recorder.tiers)), "|u1")}
        types |= {name: type_ for name, type_ in REQUEST_TYPES.items() if name != "start"}
        columns: dict[str, tuple[str, Sequence[Array]]] = {
            name: (type_, [part.columns[name] for part in parts]) for name, type_ in types.items()
        }
        columns["start"] = (REQUEST_TYPES["start"], [_starts(parts)])
        ids = [each for part in parts for each in part.ids]
        if any(each is not None for each in ids):
            text, end = text_columns(each or "" for each in ids)
            named = np.array([each is not None for each in ids], np.uint8)
            for name, array in (("id_named", named), ("id_text", text), ("id_end", end)):
                columns[name] = (_ID_TYPES[name], [array])
        for name, array in label_columns(run.loop.table).items():
            columns[name] = (LABEL_TYPES[name], [array])
        return columns


def _starts(parts: Sequence[Part]) -> Array:
    """Where each request starts, counted over all parts."""
    starts = [np.zeros(1, np.int64)]
    for part in parts:
        starts.append(part.columns["start"][1:] + starts[-1][-1])
    return np.concatenate(starts)
