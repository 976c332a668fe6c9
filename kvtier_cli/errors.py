"""The error classes of kvtier and the exit status each one stands for.

KvtierError
├── InputError        2   the input or the command line is wrong
├── EnvironmentFault  3   the environment is: not writable, full, damaged, in use
└── ManagerError      70  the embedded manager was called against its protocol

`main.py` turns them into one or two lines on stderr; nothing else prints errors.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a finished command tells the shell."""

    DONE = 0
    NO = 1
    INPUT = 2
    ENVIRONMENT = 3
    FAULT = 70
    INTERRUPTED = 130


class KvtierError(Exception):
    """A failure that can be told in one or two lines: what happened, and in `hint` what to do about it."""

    exit_status: ExitStatus = ExitStatus.FAULT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class InputError(KvtierError):
    """Something read (a file, an option, a filter) is not what it should be.

    `file`, `line` and `column` (both from 1) say where; `path` is the place inside the record, as in
    `$.hash_ids[1]`. What is not known is left out.
    """

    exit_status = ExitStatus.INPUT

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.line = line
        self.column = column
        self.path = path

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        where = ": ".join(part for part in (place, self.path) if part)
        return f"{where}: {self.message}" if where else self.message


class EnvironmentFault(KvtierError):
    """The machine, not the input, stands in the way: a full disk, a folder one may not write, a foreign lock."""

    exit_status = ExitStatus.ENVIRONMENT


class ManagerError(KvtierError):
    """The embedded manager was asked for something its protocol does not allow; its state is unchanged."""

    exit_status = ExitStatus.FAULT
