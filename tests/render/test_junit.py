"""JUnit XML parses as XML, says what failed, and survives whatever stands in files and names."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from kvtier_cli.render.junit import Case, Suite, junit_document

ANY_TEXT = st.text(st.characters(codec=None), max_size=20)


def test_suites_and_cases_are_counted_and_failures_have_their_lines() -> None:
    suites = [Suite("a.yaml", [Case("holds"), Case("fails", "1 of 2", ["first", "second"])]), Suite("b", [])]
    root = ET.fromstring(junit_document(suites))
    assert root.attrib == {"name": "kvtier", "tests": "2", "failures": "1", "errors": "0"}
    first, second = root
    assert (first.attrib["name"], first.attrib["failures"], second.attrib["tests"]) == ("a.yaml", "1", "0")
    held, failed = first
    assert (held.attrib, len(held)) == ({"classname": "a.yaml", "name": "holds"}, 0)
    assert (failed[0].tag, failed[0].attrib, failed[0].text) == ("failure", {"message": "1 of 2"}, "first\nsecond")


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_text_gives_a_document_that_parses(name: str, failure: str, detail: str) -> None:
    root = ET.fromstring(junit_document([Suite(name, [Case(name, failure, [detail])])]))
    assert root[0].attrib["tests"] == "1"


def test_control_characters_are_shown_as_escapes_and_markup_stays_text() -> None:
    (case,) = ET.fromstring(junit_document([Suite("s", [Case("\x00\x1b]]><a>&", "\ud800", ["\x07"])])])).iter(
        "testcase"
    )
    assert case.attrib["name"] == r"\x00\x1b]]><a>&"
    assert (case[0].attrib["message"], case[0].text) == (r"\ud800", r"\x07")
