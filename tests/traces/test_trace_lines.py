"""How a trace's bytes become lines, however they fall into blocks."""

from __future__ import annotations

import io
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.traces import lines as lines_module
from kvtier_cli.traces.lines import BoundedLines
from kvtier_cli.traces.source import TraceSource

BOM = b"\xef\xbb\xbf"


class _Stream(io.BytesIO):
    def piece(self, count: int) -> bytes:
        return self.read(count)

    @property
    def consumed(self) -> int:
        return self.tell()


class _Bytes:
    """A source of given bytes."""

    name = "bytes"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def open(self) -> _Stream:
        return _Stream(self.content)


def lines_of(content: bytes, limit: int = 1000, block: int | None = None) -> list[bytes | None]:
    with pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(lines_module, "BLOCK_BYTES", block)
        return list(BoundedLines(cast(TraceSource, _Bytes(content)), max_line_bytes=limit))


@given(content=st.lists(st.sampled_from([b"\n", b"\r\n", b"ab", b"c", b"\x00"])).map(b"".join), block=st.integers(3, 9))
def test_lines_are_the_same_whatever_the_block_size(content: bytes, block: int) -> None:
    expected: list[bytes | None] = [*content.split(b"\n")]
    if not expected[-1]:
        expected.pop()
    assert lines_of(content, block=block) == expected


@given(lengths=st.lists(st.integers(0, 40)), block=st.integers(3, 30))
def test_a_line_over_the_limit_is_none_and_the_others_keep_their_places(lengths: list[int], block: int) -> None:
    content = b"".join(b"x" * length + b"\n" for length in lengths)
    expected = [b"x" * length if length <= 20 else None for length in lengths]
    assert lines_of(content, limit=20, block=block) == expected


def test_a_last_line_over_the_limit_without_a_newline_is_none_once() -> None:
    assert lines_of(b"ab\n" + b"x" * 100, limit=10) == [b"ab", None]


def test_an_endless_line_is_given_up_at_the_limit() -> None:
    class Endless(_Stream):
        taken = 0

        def piece(self, count: int) -> bytes:
            self.taken += count
            return b"x" * count

    endless = Endless()
    source = _Bytes(b"")
    source.open = lambda: endless  # type: ignore[method-assign]
    found = next(iter(BoundedLines(cast(TraceSource, source), max_line_bytes=1 << 20)))
    assert found is None
    assert endless.taken <= (1 << 20) + lines_module.BLOCK_BYTES


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    assert lines_of(BOM + b"a\n" + BOM + b"b\n") == [b"a", BOM + b"b"]


@pytest.mark.parametrize(("content", "unterminated"), [(b"a\nb", True), (b"a\nb\n", False)])
def test_a_last_line_without_a_newline_is_known_as_such(content: bytes, unterminated: bool) -> None:
    lines = BoundedLines(cast(TraceSource, _Bytes(content)))
    assert list(lines) == [b"a", b"b"]
    assert lines.unterminated is unterminated


def test_progress_adds_up_to_the_size_and_comes_as_the_lines_are_used() -> None:
    heard: list[int] = []
    content = b"12345\n" * 100_000
    lines = iter(BoundedLines(cast(TraceSource, _Bytes(content)), on_bytes=heard.append))
    next(lines)
    assert heard == []
    assert sum(1 for _ in lines) == 99_999
    assert sum(heard) == len(content)
    assert len(heard) > 1
