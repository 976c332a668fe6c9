"""Where a replay's decision log goes: which format a name asks for, and the writer of it, fed by a recorder."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kvtier_cli.errors import EnvironmentFault, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvtier_cli.replay.decision_rows import LogShape
    from kvtier_cli.replay.trace_run import TraceRun

FORMATS: Final = (".kvlog", ".jsonl", ".csv", ".parquet")
STDOUT: Final = "-"


def log_format(out: str) -> str:
    """The one of `FORMATS` that the name `out` asks for; `-`, stdout, is JSON lines. Raises InputError for another, and
    EnvironmentFault where a package is missing that it takes."""
    if out == STDOUT:
        return ".jsonl"
    suffix = PurePath(out).suffix.lower()
    if suffix not in FORMATS:
        from kvtier_cli.wording import nearest

        near = nearest(suffix, FORMATS)
        raise InputError(
            "names no format of a decision log; expected .kvlog, .jsonl, .csv or .parquet",
            file=out,
            hint=f'did you mean "{near}"?' if near else None,
        )
    if suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401 - said before the work begins
        except ImportError:
            raise EnvironmentFault(
                f'{out}: Parquet takes the Python package "pyarrow", which is not installed',
                hint="pip install 'kvtier[formats]'; .kvlog, .jsonl and .csv need nothing more.",
            ) from None
    return suffix


class DecisionOutput:
    """Writes the decisions of `run`, from now on, to `file`; `finish` when the run is over.

    Raises what `log_format` raises.
    """

    def __init__(self, run: TraceRun, file: BinaryIO, format_: str) -> None:
        from kvtier_cli.replay.decision_recorder import DecisionRecorder

        self._run = run
        self._kvlog = None
        if format_ == ".kvlog":
            from kvtier_cli.replay.kvlog_writer import KvlogWriter

            self._kvlog = KvlogWriter(file)
            self._recorder = DecisionRecorder(run, self._kvlog.write)
        else:
            self._recorder = DecisionRecorder(run, self._write_rows)
            from kvtier_cli.replay.decision_rows import LogShape

            self._shape = LogShape(self._recorder.tiers)
            self._rows = _writer(format_)(file, self._shape)

    def _write_rows(self, part: Any) -> None:
        from kvtier_cli.replay.decision_rows import rows_of

        name = self._run.loop.table.name
        table = self._recorder.verdict_table()
        self._rows.write(rows_of(part, self._shape, table, lambda keys: list(map(name, keys))))

    def finish(self, about: dict[str, Any]) -> None:
        """Write what is left. `about`: see `KvlogWriter.finish`; formats of others have no place for it."""
        self._recorder.close()
        if self._kvlog is not None:
            self._kvlog.finish(self._run, self._recorder, about)
        else:
            self._rows.finish()


def _writer(format_: str) -> Callable[[BinaryIO, LogShape], Any]:
    if format_ == ".parquet":
        from kvtier_cli.replay.decision_parquet import Parquet

        return Parquet
    from kvtier_cli.replay.decision_text import Csv, JsonLines

    return Csv if format_ == ".csv" else JsonLines
