"""Makes a fixture expect what comes out now: the values it names are rewritten in its file, and nothing else is."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvtier_cli.errors import EnvironmentFault, InputError
from kvtier_cli.replay.expect import as_asked, settled
from kvtier_cli.replay.fixture import Fixture, FixtureOp, fixture_from_text, read_fixture
from kvtier_cli.replay.fixture_run import run_fixture, run_op, runner_of
from kvtier_cli.replay.outcome_shape import NOT_RESIDENT
from kvtier_cli.replay.text_edit import TextEdits

_BOM = b"\xef\xbb\xbf"


class Updated(NamedTuple):
    """The new `text` of a fixture, and at how many places it is another."""

    text: str
    changes: int


def update_fixture(path: str) -> int:
    """Rewrite what the fixture in the file at `path` expects; returns at how many places it was changed.

    The file is replaced in one go, or not touched: where nothing changes, and on any error. Raises InputError as
    `updated_text` does, and EnvironmentFault where the file cannot be written.
    """
    updated = updated_text(read_fixture(path))
    if updated.changes:
        _replace_file(path, updated.text)
    return updated.changes


def updated_text(fixture: Fixture) -> Updated:
    """The text of `fixture`, so changed that all of its expectations are met.

    A value that is right already, a range too, stays as it is; a range that is not becomes the number. Raises
    InputError as running the fixture does, and where an expectation cannot be rewritten: no value can stand for
    something that is not there.
    """
    edits = TextEdits(fixture.source)
    runner = runner_of(fixture)
    for op in fixture.ops:
        outcome = run_op(fixture, op, runner)
        if op.expect:
            expect = _settled(op, outcome, runner.manager.primary.resident)
            edits.rewrite(("ops", op.index, "expect"), op.expect, expect)
        if fixture.outcomes is not None:
            whole = fixture.outcomes[op.index]
            edits.rewrite(("outcomes", op.index), whole, as_asked(whole, outcome))
    text = edits.apply()
    if edits.changes:
        _check(fixture, text)
    return Updated(text, edits.changes)


def _settled(op: FixtureOp, outcome: Mapping[str, Any], resident: Mapping[Any, Any]) -> dict[str, Any]:
    named = {key: value for key, value in op.expect.items() if key != NOT_RESIDENT}
    try:
        expect: dict[str, Any] = settled(named, outcome)
    except KeyError as error:
        path = ("ops", op.index, "expect", *error.args[0])
        hint = f"Take it out, or name the block in {NOT_RESIDENT}." if "blocks" in path else "Take it out by hand."
        op.source.fail(path, "cannot be rewritten: there is no such thing now", hint)
    if NOT_RESIDENT in op.expect:
        expect[NOT_RESIDENT] = [block for block in op.expect[NOT_RESIDENT] if block not in resident]
    return expect


def _check(fixture: Fixture, text: str) -> None:
    """The proof: the new text is a fixture, and it passes."""
    try:
        mismatches = run_fixture(fixture_from_text(text, fixture.file, folder=fixture.folder)).mismatches
    except InputError as error:
        raise InputError(
            "cannot be rewritten in place, the values are laid out too oddly",
            file=fixture.file,
            hint=f"With the new values in their places: {error}",
        ) from error
    if mismatches:
        first = mismatches[0]
        raise InputError(
            "cannot be rewritten in place, the values are laid out too oddly",
            file=fixture.file,
            line=first.line,
            path=f"ops[{first.op}]: {first.path}",
        )


def _replace_file(path: str, text: str) -> None:
    target = Path(path)
    try:
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InputError("is no regular file and cannot be rewritten", file=path)
        target = target.resolve()  # a link stays one
        if not os.access(target, os.W_OK):
            raise EnvironmentFault(f"{path}: cannot be rewritten: it is write-protected")
        with target.open("rb") as file:
            mark = _BOM if file.read(len(_BOM)) == _BOM else b""
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(mark + text.encode())
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be rewritten: {(error.strerror or str(error)).lower()}") from error
