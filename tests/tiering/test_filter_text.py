"""The FILTER argument: JSON as vLLM reads it, whole request bodies, files, stdin, and the short form."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kvtier_cli.errors import InputError
from kvtier_cli.tiering.filter_text import FilterSource, read_filter_argument
from kvtier_cli.tiering.filters import MISSING

STORAGE = [{"medium": "storage"}]


def read(argument: str) -> FilterSource:
    return read_filter_argument(argument)


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("storage", [{"medium": "storage"}]),
        ("storage:local,cpu", [{"medium": "storage", "locality": "local"}, {"medium": "cpu"}]),
        ("local:storage", [{"medium": "storage", "locality": "local"}]),
        ("remote", [{"locality": "remote"}]),
        (" Storage , CPU ", [{"medium": "storage"}, {"medium": "cpu"}]),
        ("any", [{}]),
        ("deny", []),
        ("all", MISSING),
    ],
)
def test_the_short_form_stands_for_a_filter(text: str, raw: object) -> None:
    assert read(text) == FilterSource(raw, "filter", "short form")


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("stroage", 'unknown word "stroage"', 'did you mean "storage"?'),
        ("storage:lokal", 'unknown word "lokal"', 'did you mean "local"?'),
        ("fs", 'unknown word "fs"', 'did you mean "storage"?'),
        ("none", 'unknown word "none"', 'did you mean "deny"?'),
        ("xyz", 'unknown word "xyz"', "known are cpu, storage, local, remote, all, deny, any"),
        ('"storage', "unknown word", 'did you mean "storage"?'),
        ("all,cpu", '"all" stands alone', None),
        ("storage:cpu", "names a medium twice", "a comma stands between entries"),
        ("storage,,cpu", "an empty entry", "such as storage:local,cpu or local or all or deny"),
        ("", "there is no filter", "such as storage:local,cpu or local or all or deny"),
        (" \n", "there is no filter", "such as storage:local,cpu or local or all or deny"),
    ],
)
def test_a_short_form_that_is_wrong_is_refused_with_the_nearest_word(text: str, said: str, hint: str | None) -> None:
    with pytest.raises(InputError) as raised:
        read(text)
    assert said in str(raised.value)
    assert raised.value.hint == hint


@pytest.mark.parametrize("raw", [None, 0, False, "storage", {}, [], {"medium": "storage"}, [None, 1, "x", {"a": []}]])
def test_valid_json_of_any_kind_is_the_filter_itself(raw: object) -> None:
    assert read(json.dumps(raw)) == FilterSource(raw, "filter", "json")


def test_json_is_read_as_python_reads_it() -> None:
    found = read('[NaN, {"medium": "cpu", "medium": "storage"}, 12345678901234567890123]').raw
    assert isinstance(found, list)
    assert math.isnan(found[0])
    assert found[1:] == [{"medium": "storage"}, 12345678901234567890123]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('[{"medium":"storage"]', "filter:1:21", 'expected "," or the closing bracket, found "]"'),
        ('[\n {"medium" "storage"}]', "filter:2:12", 'expected ":"'),
        ("[{'medium':'storage'}]", "filter:1:3", "expected a key in double quotes"),
        ("{medium:storage}", "filter:1:2", "expected a key in double quotes"),
        ("[", "filter:1:2", "found the end of the text"),
        ('["abc', "filter:1:2", "no closing quote"),
        ("[] []", "filter:1:4", "expected the end"),
    ],
)
def test_text_that_starts_with_a_bracket_and_is_no_json_is_a_syntax_error(text: str, place: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read(text)
    assert str(raised.value).startswith(f"{place}: not JSON: ")
    assert said in str(raised.value)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, f"[{'9' * 5000}]", '{"a":' * 100_000])
def test_what_python_refuses_to_read_is_an_error_of_the_input(text: str) -> None:
    with pytest.raises(InputError, match=r"nested too deeply|more than 4,300 digits"):
        read(text)


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ({"kv_load_tiers": STORAGE}, "kv_transfer_params"),
        ({"kv_load_tiers": STORAGE, "max_load_tokens": 512}, "kv_transfer_params"),
        ({"model": "m", "prompt": "p", "kv_transfer_params": {"kv_load_tiers": STORAGE}}, "request body"),
        ({"kv_transfer_params": {"kv_load_tiers": STORAGE}}, "request body"),
        ({"model": "m", "extra_body": {"kv_transfer_params": {"kv_load_tiers": STORAGE}}}, "request body"),
    ],
)
def test_a_request_body_and_its_parameters_are_unwrapped(body: object, form: str) -> None:
    assert read(json.dumps(body)) == FilterSource(STORAGE, "filter", form)


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "messages": []},
        {"model": "m", "kv_transfer_params": None},
        {"model": "m", "kv_transfer_params": {"do_remote_prefill": True}},
        {"extra_body": {}},
    ],
)
def test_a_body_without_a_filter_carries_none(body: object) -> None:
    assert read(json.dumps(body)) == FilterSource(MISSING, "filter", "request body")


def test_a_null_in_a_body_is_null() -> None:
    assert read('{"kv_transfer_params":{"kv_load_tiers":null}}').raw is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"model": "m", "kv_load_tiers": STORAGE}, "stands beside kv_transfer_params"),
        ({"model": "m", "extra_body": {"kv_load_tiers": STORAGE}}, "stands beside kv_transfer_params"),
        ({"kv_transfer_params": {"kv_load_tier": STORAGE}}, 'unknown key "kv_load_tier"'),
        ({"kv_load_teirs": STORAGE}, 'unknown key "kv_load_teirs"'),
    ],
)
def test_a_filter_under_a_key_that_vllm_ignores_is_no_filter_and_a_fault(body: object, said: str) -> None:
    source = read(json.dumps(body))
    assert source.raw is MISSING
    assert [note.is_fault for note in source.lint] == [True]
    assert said in source.lint[0].message


def test_parameters_that_are_no_object_are_refused_with_their_path() -> None:
    with pytest.raises(InputError, match=r"^filter: kv_transfer_params: expected an object, found 5$"):
        read('{"model":"m","kv_transfer_params":5}')


class TestFiles:
    def test_a_file_may_hold_json_or_a_short_form(self, tmp_path: Path) -> None:
        file = tmp_path / "filter.json"
        file.write_bytes(b'\xef\xbb\xbf[{"medium":"storage"}]\r\n')
        assert read(f"@{file}") == FilterSource(STORAGE, str(file), "json")
        file.write_text("storage\n")
        assert read(f"@{file}") == FilterSource(STORAGE, str(file), "short form")

    def test_a_fault_names_the_file_and_the_line(self, tmp_path: Path) -> None:
        file = tmp_path / "filter.json"
        file.write_text('[\n  {"medium":}\n]')
        with pytest.raises(InputError) as raised:
            read(f"@{file}")
        assert str(raised.value).startswith(f"{file}:2:13: not JSON: expected a value")

    def test_bytes_that_are_no_text_are_refused_with_their_place(self, tmp_path: Path) -> None:
        file = tmp_path / "filter.json"
        file.write_bytes(b'[\n"\xff"]')
        with pytest.raises(InputError) as raised:
            read(f"@{file}")
        assert str(raised.value) == f"{file}:2:2: is not UTF-8 text: unexpected byte 0xff"

    def test_a_folder_a_missing_file_and_no_name_are_told_apart(self, tmp_path: Path) -> None:
        for argument, said in (
            (f"@{tmp_path}", "is a folder"),
            (f"@{tmp_path}/nothing", "no such file"),
            ("@", "without a file's name"),
            ("@a\0b", "no path of a file"),
        ):
            with pytest.raises(InputError, match=said):
                read(argument)


class TestStdin:
    def test_a_dash_reads_stdin(self) -> None:
        assert read_filter_argument("-", lambda: b"storage\n") == FilterSource(STORAGE, "stdin", "short form")

    def test_a_fault_names_stdin(self) -> None:
        with pytest.raises(InputError, match=r"^stdin:1:2: not JSON"):
            read_filter_argument("-", lambda: b"[")

    def test_where_there_is_no_stdin_a_dash_is_refused(self) -> None:
        with pytest.raises(InputError, match="stdin cannot be read here"):
            read("-")
