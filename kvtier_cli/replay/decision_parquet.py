"""Decision logs as Parquet, written a part at a time: a row group each. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kvtier_cli.replay.decision_columns import Array
from kvtier_cli.replay.decision_rows import OUTCOME_WORDS, REASON_WORDS, VERDICT_WORDS, LogShape, Rows

_WORD = pa.dictionary(pa.int16(), pa.string())


class Parquet:
    """Words are dictionaries, numbers are numbers, holders a list of strings."""

    def __init__(self, file: BinaryIO, shape: LogShape) -> None:
        self._tiers = list(shape.tiers)
        kinds = {
            "request": pa.int32(),
            "request_id": pa.string(),
            "index": pa.int32(),
            "block": pa.string(),
            "outcome": _WORD,
            "tier": _WORD,
            "reason": _WORD,
            "passes": pa.int32(),
            **dict.fromkeys(shape.verdict_columns, _WORD),
            "holders": pa.list_(pa.string()),
            "evicted_by": pa.int32(),
            "step": pa.int64(),
        }
        fields = [pa.field(name, kinds[name]) for name in shape.columns]
        self._schema = pa.schema(fields, metadata={})
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Rows) -> None:
        """Write some more rows."""
        arrays = [
            pa.array(rows.request),
            pa.array(rows.request_id, pa.string()),
            pa.array(rows.index),
            pa.array(rows.block, pa.string()),
            _words(rows.outcome, OUTCOME_WORDS),
            _words(rows.tier, self._tiers),
            _words(rows.reason, REASON_WORDS),
            pa.array(rows.passes.astype(np.int32)),
            *(_words(column, VERDICT_WORDS) for column in rows.verdicts.T),
            self._holders(rows),
            pa.array(rows.evicted_by.astype(np.int32), mask=rows.evicted_by < 0),
            pa.array(rows.step),
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def _holders(self, rows: Rows) -> Any:
        offsets = np.zeros(len(rows.held) + 1, np.int32)
        np.cumsum(rows.held.sum(axis=1), out=offsets[1:])
        names = pa.array(self._tiers, pa.string()).take(pa.array(rows.held.nonzero()[1]))
        return pa.ListArray.from_arrays(pa.array(offsets), names)

    def finish(self) -> None:
        """Write what belongs at the end of the file."""
        self._writer.close()


def _words(places: Array, words: Sequence[str]) -> Any:
    return pa.DictionaryArray.from_arrays(
        pa.array(places.astype(np.int16), mask=places < 0), pa.array(words, pa.string())
    )
