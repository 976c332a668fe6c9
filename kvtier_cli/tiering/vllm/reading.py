"""What stands where in vLLM's configuration, and what was noticed on the way: refusals, warnings, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from kvtier_cli.errors import InputError
from kvtier_cli.wording import did_you_mean, kind_of, nearest, shown

Step = str | int
Path = tuple[Step, ...]
Locate = Callable[[Sequence[Step]], tuple[int, int] | None]


@dataclass(slots=True)
class Reading:
    """One configuration while it is read.

    `warnings` are what vLLM swallows without a word or what comes out otherwise than it looks; `notes` are what was
    assumed, and what has no part in which blocks are served. `locate` tells line and column of the value at a path.
    """

    file: str | None = None
    locate: Locate | None = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fail(self, path: Path, message: str, hint: str | None = None) -> NoReturn:
        """Raises the InputError for the value at `path`."""
        line, column = (self.locate(path) if self.locate else None) or (None, None)
        raise InputError(message, file=self.file, line=line, column=column, path=place(path), hint=hint)

    def refuse(self, path: Path, reason: str, hint: str | None = None) -> NoReturn:
        """Raises the InputError for what vLLM refuses to start with, `reason` being what it says."""
        self.fail(path, f"vLLM refuses it: {reason}", hint)

    def not_modelled(self, path: Path, what: str, hint: str | None = None) -> NoReturn:
        """Raises the InputError for what vLLM takes and kvtier cannot stand for."""
        self.fail(path, f"{what}, which is not modelled", hint)

    def warn(self, path: Path, message: str) -> None:
        """Adds a warning about the value at `path`."""
        where = place(path)
        self.warnings.append(f"{where}: {message}" if where else message)

    def ignored(self, path: Path, why: str) -> None:
        """Adds the warning for a key that vLLM ignores without a word."""
        self.warn(path, f"vLLM ignores it: {why}")

    def unknown(self, path: Path, known: Iterable[str]) -> None:
        """Adds the warning for a key that nothing in vLLM reads."""
        near = nearest(str(path[-1]), known)
        self.ignored(path, "no such key" + (f', did you mean "{near}"?' if near else ""))

    def note(self, message: str) -> None:
        """Adds a note, once."""
        if message not in self.notes:
            self.notes.append(message)

    def without_part(self, path: Path, keys: Iterable[str]) -> None:
        """Notes the given keys of the object at `path` that do not bear on which blocks are served."""
        if names := ", ".join(keys):
            where = place(path)
            self.note(f"{where + ': ' if where else ''}left out, no part in which blocks are served: {names}")

    def object_at(self, path: Path, value: object, what: str) -> Mapping[str, object]:
        """`value` as an object; anything else is an InputError."""
        if not isinstance(value, dict):
            self.fail(path, f"expected {what}, found {told(value)}")
        return value

    def unexpected_keyword(self, path: Path, cls: str, known: Sequence[str]) -> NoReturn:
        """Raises the InputError for a key that a constructor of vLLM does not take."""
        key = str(path[-1])
        self.refuse(path, f"{cls}.__init__() got an unexpected keyword argument {shown(key)}", near(key, known))


def place(path: Path) -> str | None:
    """A path as messages write it, `secondary_tiers[1].locality`; None for the whole."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or None


def holds_more(value: object) -> bool:
    """Whether a value has parts: these are never repeated in messages, for they may hold credentials."""
    return isinstance(value, dict | list)


def told(value: object) -> str:
    """A value in a message: as it is, or only what it is where it has parts."""
    return kind_of(value) if holds_more(value) else shown(value)


def near(value: object, known: Sequence[str]) -> str:
    """The hint for a word that is not known, or for what is no word."""
    return did_you_mean(value if isinstance(value, str) else "", known)


def warn_of_repeated_keys(json_text: str, reading: Reading) -> None:
    """A warning if a key stands twice in an object of JSON that is otherwise right: vLLM takes the last."""
    from kvtier_cli.tiering.json_text import decode_unique_json

    try:
        decode_unique_json(json_text, "")
    except InputError as error:
        reading.warn((), f"{error.message}: vLLM takes the last")


def python_int(value: object) -> int | None:
    """What Python's `int(value)` gives, as vLLM calls it on numbers; None where that fails."""
    if not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None
