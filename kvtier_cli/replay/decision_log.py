"""A decision log, for reading: what a replay decided about every block, request by request, from a `.kvlog` or a run.

Whoever explains, compares or shows a replay that is over reads it here. Words and docs: docs/decision-log.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from kvtier_cli.replay.block_labels import LABEL_TYPES, BlockNames, text_at
from kvtier_cli.replay.decision_columns import (
    OUTCOMES,
    REASONS,
    REQUEST_TYPES,
    ROW_TYPES,
    SAID_SMALLER,
    VERDICTS,
    Array,
    Bools,
    holder_columns,
    unpack_holders,
    verdict_array,
)
from kvtier_cli.replay.kvlog_file import KvlogFile, LoggedFilter, LogHeader
from kvtier_cli.replay.outcomes import AbsentReason, Outcome
from kvtier_cli.replay.request_names import IDS_COMPARED, request_number
from kvtier_cli.tiering.model import Verdict
from kvtier_cli.wording import shown

_ID_TYPES: Final = {"id_named": "|u1", "id_text": "|u1", "id_end": "<i8"}


class LogRows(NamedTuple):
    """Some rows of a log as arrays, one entry a block. `keys`: the blocks' numbers; `outcomes`: places in `OUTCOMES`;
    `tiers`: places in the log's `tiers`, -1 for none; `verdicts`: places in `VERDICTS`, (rows, secondary tiers);
    `held`: whether each tier holds the block, (rows, tiers)."""

    keys: Array
    outcomes: Array
    tiers: Array
    verdicts: Array
    held: Bools


@dataclass(frozen=True, slots=True)
class LoggedBlock:
    """One block of a request, as the request's last pass left it. `tier`, `verdicts` (one a secondary tier; all
    `not_reached` where it was never looked up) and `holders` are those of `StoryBlock`."""

    index: int
    key: int
    name: str
    outcome: Outcome
    tier: str | None
    verdicts: tuple[Verdict, ...]
    holders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request. `number` counts from 0; `label` is its own id in the trace. `passes`: how often its prefix was
    looked up; `step`: how many steps had ended when the last pass did. `reason`, `by` (a request's number) and
    `evicted_from` are about its absent block."""

    number: int
    label: str | None
    filter: LoggedFilter
    passes: int
    step: int
    gave_up: bool
    blocks: tuple[LoggedBlock, ...]
    reason: AbsentReason | None
    by: int | None
    evicted_from: str | None

    @property
    def served(self) -> int:
        """How many blocks were served: the leading ones."""
        return sum(block.outcome in (Outcome.PRIMARY, Outcome.PROMOTED) for block in self.blocks)


class DecisionLog:
    """What a replay decided. `header` says of which traces, tiers and filter.

    Columns are arrays, mapped from the file and checked when they are first used: only then damage in them shows, as
    an InputError.
    """

    def __init__(self, file: KvlogFile) -> None:
        self._file = file
        self.header: LogHeader = file.header
        self.tiers: Sequence[str] = file.header.tiers
        """The tiers by place, the primary first."""
        self.names = BlockNames(self._labels, as_numbers=file.has("label"))
        """What its blocks are called."""
        self._check_header()

    @property
    def path(self) -> str:
        """The file's path, as it was given."""
        return self._file.path

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return self._file.count("passes")

    @property
    def blocks(self) -> int:
        """How many rows there are: blocks of requests, one that is asked for twice counted twice."""
        return self._file.count("key")

    @property
    def figures(self) -> Mapping[str, Any]:
        """The figures of the whole replay, under the names of `kvtier replay --json`."""
        return self.header.figures

    def span(self, request: int) -> slice:
        """The rows of a request."""
        start = self.of_requests("start")
        return slice(int(start[request]), int(start[request + 1]))

    def rows(self, request: int) -> LogRows:
        """The blocks of a request as arrays. Raises IndexError for one that there is not."""
        if not 0 <= request < self.requests:
            raise IndexError(request)
        return self.rows_in(self.span(request))

    def rows_in(self, rows: slice | Array) -> LogRows:
        """Any rows as arrays."""
        places = len(self.tiers)
        held = [self._column(name, ("|u1",)) for name in holder_columns(places)]
        return LogRows(
            self.of_rows("key")[rows],
            self.of_rows("outcome")[rows],
            self.of_rows("tier")[rows],
            self._verdict_table[self.of_rows("said")[rows]],
            unpack_holders([column[rows] for column in held], places),
        )

    def of_rows(self, name: str) -> Array:
        """A whole column of `ROW_TYPES`."""
        return self._column(name, SAID_SMALLER if name == "said" else (ROW_TYPES[name],))

    def of_requests(self, name: str) -> Array:
        """A whole column of `REQUEST_TYPES`."""
        return self._column(name, (REQUEST_TYPES[name],))

    def request(self, number: int) -> LoggedRequest:
        """One request with its blocks. Raises IndexError for one that there is not."""
        rows = self.rows(number)
        names = self.block_names(rows.keys)
        tiers = self.tiers
        reason, by, left = (int(self.of_requests(name)[number]) for name in ("reason", "by", "left"))
        return LoggedRequest(
            number,
            self.request_label(number),
            self.header.filters[self.of_requests("filter")[number]],
            int(self.of_requests("passes")[number]),
            int(self.of_requests("step")[number]),
            bool(self.of_requests("gave_up")[number]),
            tuple(
                LoggedBlock(
                    index,
                    int(key),
                    name,
                    OUTCOMES[outcome],
                    None if tier < 0 else tiers[tier],
                    tuple(VERDICTS[verdict] for verdict in verdicts),
                    tuple(name for name, holds in zip(tiers, held, strict=True) if holds),
                )
                for index, (key, name, outcome, tier, verdicts, held) in enumerate(
                    zip(rows.keys, names, rows.outcomes, rows.tiers, rows.verdicts, rows.held, strict=True)
                )
            ),
            REASONS[reason - 1] if reason else None,
            None if by < 0 else by,
            None if left < 0 else tiers[left],
        )

    def request_label(self, number: int) -> str | None:
        """A request's own id in its trace, None where it has none."""
        if not self._file.has("id_named") or not self._column("id_named", ("|u1",))[number]:
            return None
        return text_at(self._column("id_text", ("|u1",)), self._column("id_end", ("<i8",)), number)

    def request_name(self, number: int) -> str:
        """What a request is called: its own id in its trace, else `r1204`."""
        label = self.request_label(number)
        return f"r{number}" if label is None else label

    def find_request(self, text: str) -> int:
        """The number of the request that `text` means: its own id in the trace, else `1204` or `r1204`. Raises
        InputError for one that there is not."""
        same = [number for number, label in enumerate(self._own_ids) if label == text]
        known = [label for label in self._own_ids if label is not None][:IDS_COMPARED]
        return request_number(text, self.requests, same, known, self.path)

    def id_columns(self) -> list[Array]:
        """The requests' own ids as they are stored: equal columns are equal ids. Empty where no request has one."""
        if not self._file.has("id_named"):
            return []
        return [self._column(name, (type_,)) for name, type_ in _ID_TYPES.items()]

    @cached_property
    def _own_ids(self) -> list[str | None]:
        return [self.request_label(number) for number in range(self.requests)] if self._file.has("id_named") else []

    def block_name(self, key: int) -> str:
        """What a block is called: its label in the trace, `label~2` for the second block with that label."""
        return self.names.name(key)

    def block_names(self, keys: Array) -> list[str]:
        """What many blocks are called."""
        return self.names.names(keys)

    def find_blocks(self, text: str) -> Sequence[int]:
        """The numbers of the blocks that `text` means: all with that label, or the one with that name."""
        return self.names.find(text)

    # What a file says is checked here; `KvlogFile` checks only that it is as it was written.

    @cached_property
    def _verdict_table(self) -> Array:
        return self._own_places["verdict"][verdict_array(self.header.verdicts, len(self.tiers))]

    def _check_header(self) -> None:
        header = self.header
        self._own_places  # noqa: B018 - raises where a word is not known
        secondary = len(header.tiers) - 1
        if secondary < 0 or not all(
            len(codes) == secondary and all(0 <= code < len(header.verdict_words) for code in codes)
            for codes in header.verdicts
        ):
            raise self._file.damaged("its verdicts are not one a tier")
        requests, blocks = self.requests, self.blocks
        lengths = {name: requests + (name == "start") for name in REQUEST_TYPES}
        lengths |= dict.fromkeys((*ROW_TYPES, *holder_columns(len(header.tiers))), blocks)
        if self._file.has("id_named"):
            lengths |= {"id_named": requests, "id_end": requests}
        labelled = self._file.count("parent")
        lengths |= {"label": labelled} if self._file.has("label") else {"label_end": labelled}
        lengths["again_number"] = self._file.count("again_key")
        for name, length in lengths.items():
            if not self._file.has(name) or self._file.count(name) != length:
                raise self._file.damaged(f"column {name} has not {length:,} entries")

    @cached_property
    def _own_places(self) -> dict[str, Array]:
        """By column: the places of the file's words in our own lists, which may have got more of them since."""
        header = self.header
        return {
            "outcome": self._places(header.outcome_words, [each.value for each in OUTCOMES]),
            "reason": np.concatenate([[0], self._places(header.reason_words, [each.value for each in REASONS]) + 1]),
            "verdict": self._places(header.verdict_words, [each.value for each in VERDICTS]),
        }

    def _places(self, words: Sequence[str], known: Sequence[str]) -> Array:
        for word in words:
            if word not in known:
                raise self._file.damaged(f"it has the word {shown(word)}, which this kvtier does not know")
        return np.array([known.index(word) for word in words], np.uint8)

    def _labels(self, name: str) -> Array:
        return self._column(name, (LABEL_TYPES[name],))

    def _column(self, name: str, types: Sequence[str]) -> Array:
        known = self._sound.get(name)
        if known is None:
            known = self._file.column(name, types)
            check = self._checks.get(name)
            if check is not None and len(known) and not check(known):
                raise self._file.damaged(f"column {name} has entries that cannot be")
            if name in self._own_places:
                known = self._own_places[name][known]
            self._sound[name] = known
        return known

    @cached_property
    def _sound(self) -> dict[str, Array]:
        return {}

    @cached_property
    def _checks(self) -> dict[str, Callable[[Array], bool]]:
        header, tiers, blocks = self.header, len(self.tiers), self._file.count("parent")

        def within(least: int, most: int) -> Callable[[Array], bool]:
            return lambda array: bool(array.min() >= least and array.max() <= most)

        def spans(count: int, first: int | None = None) -> Callable[[Array], bool]:
            """Rising places, from `first` (any: None) up to `count`."""
            return lambda array: bool(
                (array[0] >= 0 if first is None else array[0] == first)
                and array[-1] == count
                and (array[1:] >= array[:-1]).all()
            )

        return {
            "key": within(0, blocks - 1),
            "outcome": within(0, len(header.outcome_words) - 1),
            "tier": within(-1, tiers - 1),
            "said": within(0, len(header.verdicts) - 1),
            "start": spans(self.blocks, 0),
            "reason": within(0, len(header.reason_words)),
            "by": within(-1, self.requests - 1),
            "left": within(-1, tiers - 1),
            "filter": within(0, len(header.filters) - 1),
            "parent": within(-1, blocks - 1),
            "label_end": spans(self._file.count("label_text")),
            "id_end": spans(self._file.count("id_text")),
            "again_key": lambda array: bool(array[0] >= 0 and array[-1] < blocks and (array[1:] > array[:-1]).all()),
        }


def open_log(path: str) -> DecisionLog:
    """Open a `.kvlog`, at once whatever its size. Raises InputError for what is missing, foreign, of a newer format,
    cut short or damaged."""
    return DecisionLog(KvlogFile(path))
