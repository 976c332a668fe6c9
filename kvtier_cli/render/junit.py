"""JUnit XML for continuous integration: suites of test cases, some of which failed. Knows no figure and no fixture.

Whatever the texts hold comes out as well-formed XML 1.0: what XML has no character for is shown as its escape. There
are no times in it: the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvtier_cli.render.console import plain


class Case(NamedTuple):
    """One test case; `failure` says in a line why it failed (None: it passed), `details` in more."""

    name: str
    failure: str | None = None
    details: Sequence[str] = ()


class Suite(NamedTuple):
    """The test cases of one file."""

    name: str
    cases: Sequence[Case]


def junit_document(suites: Sequence[Suite]) -> bytes:
    """The document, in UTF-8."""
    from xml.etree import ElementTree as ET  # writes only: nothing foreign is parsed

    root = ET.Element("testsuites", {"name": "kvtier", **_counts([case for suite in suites for case in suite.cases])})
    for suite in suites:
        element = ET.SubElement(root, "testsuite", {"name": plain(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            child = ET.SubElement(element, "testcase", classname=plain(suite.name), name=plain(case.name))
            if case.failure is not None:
                failure = ET.SubElement(child, "failure", message=plain(case.failure))
                failure.text = "\n".join(map(plain, case.details))
    ET.indent(root)
    text: str = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failed = sum(case.failure is not None for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}
