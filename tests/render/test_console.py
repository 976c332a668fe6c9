"""Text for terminals and pipes: what is inert, how wide it is, when it has colours and symbols."""

from __future__ import annotations

import io
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kvtier_cli.render import console
from kvtier_cli.render.console import Output, cell_width, columns, output_for, pad, plain, shorten_middle
from tests.conftest import in_terminal

ANY_TEXT = st.text(st.characters(exclude_categories=()))
IDS = st.text(st.sampled_from("abcdef0123456789-_/:ключ块鍵🔑é")) | ANY_TEXT.map(plain)


class Terminal(io.StringIO):
    """A UTF-8 stream that says it is a terminal, of unknown size."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(io.StringIO):
    """A stream that is none."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


# --- foreign text ---


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("block-17", "block-17"),
        ("块 ключ é", "块 ключ é"),
        ("[red]b1[/red]", "[red]b1[/red]"),
        ("\x1b[31mb1", "\\x1b[31mb1"),
        ("\x9b31mb1", "\\x9b31mb1"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u2028b", "a\\u2028b"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\U000e0041"),
        ("", ""),
    ],
)
def test_foreign_text_is_shown_with_what_does_not_print_escaped(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(ANY_TEXT)
def test_no_text_keeps_a_control_code_a_line_end_or_a_surrogate(text: str) -> None:
    shown = plain(text)
    shown.encode()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


# --- width ---


def test_the_characters_measured_without_rich_take_one_cell_each() -> None:
    assert [hex(code) for code in range(0x3000) if _is_simple(chr(code)) and cell_len(chr(code)) != 1] == []


def _is_simple(char: str) -> bool:
    return console._ONE_CELL_EACH.fullmatch(char) is not None


@given(ANY_TEXT.map(plain))
def test_width_is_the_terminal_s(text: str) -> None:
    assert cell_width(text) == cell_len(text)


def test_colours_take_no_room() -> None:
    assert cell_width(Output(color=True).style("块1", "bad")) == 3
    assert pad(Output(color=True).style("ab", "bad"), 4, ">") == "  \x1b[1;31mab\x1b[0m"


def test_every_symbol_takes_one_cell_and_has_an_ascii_form_of_its_own() -> None:
    forms = list(console.SYMBOLS.values())
    assert all(cell_width(form) == 1 for pair in forms for form in pair)
    assert all(ascii_form.isascii() for _, ascii_form in forms)
    outcomes = [console.SYMBOLS[name][1] for name in console.SYMBOLS if name not in ("cut", "none")]
    assert len(set(outcomes)) == len(outcomes), "outcomes differ without colour"


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("0123456789", 10, "0123456789"),
        ("0123456789", 7, "012…789"),
        ("0123456789", 6, "012…89"),
        ("0123456789", 2, "01"),
        ("块块块块块", 7, "块…块"),
        ("0123456789", 0, ""),
    ],
)
def test_long_ids_lose_their_middle(text: str, width: int, short: str) -> None:
    assert shorten_middle(text, width) == short


def test_a_stream_without_unicode_marks_the_cut_in_ascii() -> None:
    assert Output(unicode=False).shorten("0123456789", 6) == "01..89"


@given(IDS, st.integers(0, 30))
def test_what_is_shortened_fits_and_keeps_both_ends(text: str, width: int) -> None:
    short = shorten_middle(text, width)
    assert cell_width(short) <= width
    head, mark, tail = short.partition("…")
    if "…" not in text and mark:
        assert text.startswith(head)
        assert text.endswith(tail)


def test_marks_without_end_are_cut_too() -> None:
    assert len(shorten_middle("a" + "\u0301" * 1_000_000 + "xyz" * 9, 10)) < 100


# --- tables ---


def test_columns_line_up_by_cells_and_end_without_blanks() -> None:
    rows = [["tier", "blocks"], ["nvme", "38,413"], ["块", "7"], ["cpu"]]
    assert columns(rows, "<>") == ["  tier  blocks", "  nvme  38,413", "  块         7", "  cpu"]


def test_a_coloured_cell_lines_up_with_a_plain_one() -> None:
    styled = Output(color=True).style("a", "bad")
    assert columns([[styled, "1"], ["b", "2"]], indent=0) == [f"{styled}  1", "b  2"]


def test_a_line_that_is_too_wide_shortens_the_column_named_for_it() -> None:
    styled = Output(color=True).style("x" * 40, "bad")
    lines = columns([["0", "k" * 40, "promoted"], ["1", styled, "absent"]], shrink=1, width=40)
    assert {cell_width(line) for line in lines} == {40, 38}
    assert lines[1].endswith("xxxx\x1b[0m  absent")


def test_no_rows_make_no_lines() -> None:
    assert columns([]) == []


# --- what a stream can show ---


@pytest.mark.parametrize(
    ("env", "no_color", "coloured"),
    [
        ({"TERM": "xterm"}, False, True),
        ({}, False, True),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_a_terminal_has_colours_unless_told_otherwise(env: dict[str, str], no_color: bool, coloured: bool) -> None:
    assert output_for(Terminal(), no_color=no_color, environ=env).color is coloured


def test_a_pipe_has_no_colours_unless_they_are_forced() -> None:
    assert not output_for(Pipe(), environ={"TERM": "xterm"}).color
    assert output_for(Pipe(), environ={"FORCE_COLOR": "1"}).color
    assert not output_for(Pipe(), environ={"FORCE_COLOR": "0"}).color


@pytest.mark.parametrize(
    ("encoding", "env", "unicode"),
    [
        ("utf-8", {}, True),
        ("UTF8", {"LANG": "de_DE.UTF-8"}, True),
        ("iso8859-1", {}, False),
        ("ascii", {}, False),
        ("utf-8", {"LC_ALL": "C"}, False),
        ("utf-8", {"LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, False),
        ("utf-8", {"LC_CTYPE": "C.UTF-8"}, True),
        ("utf-8", {"LC_ALL": "C", "PYTHONUTF8": "1"}, True),
    ],
)
def test_symbols_need_utf_8(encoding: str, env: dict[str, str], unicode: bool) -> None:
    output = output_for(Pipe(encoding), environ=env)
    assert output.unicode is unicode
    assert output.symbol("filtered") == ("Ø" if unicode else "%")


@pytest.mark.parametrize(
    ("value", "unicode"), [("1", False), ("true", False), ("0", True), ("", True), ("False", True), ("off", True)]
)
def test_kvtier_ascii_is_a_switch(value: str, unicode: bool) -> None:
    assert output_for(Pipe(), environ={"KVTIER_ASCII": value}).unicode is unicode


def test_ascii_can_be_asked_for_and_a_dumb_terminal_gets_it() -> None:
    assert not output_for(Terminal(), ascii_only=True, environ={}).unicode
    assert not output_for(Terminal(), environ={"TERM": "dumb"}).unicode
    assert output_for(Pipe(), environ={"TERM": "dumb"}).unicode


@pytest.mark.parametrize(
    ("columns_variable", "width"),
    [(None, 80), ("120", 120), ("20", 40), ("9999", 300), ("0", 80), ("wide", 80), ("-5", 80), ("9" * 400, 80)],
)
def test_a_pipe_is_80_columns_wide_unless_columns_says_otherwise(columns_variable: str | None, width: int) -> None:
    env = {} if columns_variable is None else {"COLUMNS": columns_variable}
    assert output_for(Pipe(), environ=env).width == width


@pytest.mark.parametrize(("size", "width"), [(132, 132), (30, 40), (500, 300), (0, 80)])
def test_a_terminal_is_as_wide_as_it_is_from_40_to_300_columns(size: int, width: int) -> None:
    code = "import sys; from kvtier_cli.render.console import output_for; print(output_for(sys.stdout).width)"
    assert in_terminal([sys.executable, "-c", code], {}, columns=size).strip() == str(width)


def test_styles_leave_text_alone_where_there_is_no_colour() -> None:
    assert Output(color=False).style("Ø", "filtered") == "Ø"
    assert Output(color=True).style("Ø", "filtered") == "\x1b[1;7;33mØ\x1b[0m"
    assert Output(color=True).style("□", "absent") == "□"
