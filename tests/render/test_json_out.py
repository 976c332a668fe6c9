"""The `--json` document: one, stable, exact."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

import pytest

from kvtier_cli import __version__
from kvtier_cli.render.json_out import SCOPE, document, write


class Medium(Enum):
    STORAGE = "STORAGE"


@dataclass
class Tier:
    name: str
    medium: Medium | None


def test_the_envelope_comes_first_and_the_body_keeps_its_order() -> None:
    text = document("filter", {"fails_open": True, "entries": []}).decode()
    assert list(json.loads(text).items()) == [
        ("kvtier", __version__),
        ("schema", "kvtier.filter/1"),
        ("scope", SCOPE),
        ("fails_open", True),
        ("entries", []),
    ]
    assert text.startswith('{\n  "kvtier": ')
    assert text.endswith("}\n")


def test_dataclasses_and_enums_are_written_by_their_fields_and_values() -> None:
    body = json.loads(document("tiers", {"tiers": [Tier("nvme", Medium.STORAGE), Tier("peer", None)]}))
    assert body["tiers"] == [{"name": "nvme", "medium": "STORAGE"}, {"name": "peer", "medium": None}]


@pytest.mark.parametrize("surrogate", ["", "\udc80"])
@pytest.mark.parametrize("number", [2**53 + 1, 2**64, 2**200, -(2**63) - 1, -(2**90)])
def test_ids_of_any_size_stay_exact(number: int, surrogate: str) -> None:
    read = json.loads(document("lookup", {"blocks": [number], "file": surrogate}))
    assert (read["blocks"], read["file"]) == ([number], surrogate)


@pytest.mark.parametrize("text", ["plain", "\udc80"])
def test_what_is_no_number_is_null(text: str) -> None:
    read = json.loads(document("replay", {"rate": float("nan"), "rates": (float("inf"), 0.5), "file": text}))
    assert (read["rate"], read["rates"]) == (None, [None, 0.5])


def test_a_file_name_that_is_no_utf_8_comes_back_as_python_names_it() -> None:
    assert json.loads(document("scan", {"file": "kv-\udcff.bin"}))["file"] == "kv-\udcff.bin"


def test_control_codes_are_escaped_and_other_scripts_are_not() -> None:
    text = document("lookup", {"block": "\x1b[31m块"}).decode()
    assert '"\\u001b[31m块"' in text


def test_the_document_is_utf_8_whatever_the_locale(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write("lookup", {"block": "块"})
    assert "块".encode() in capsysbinary.readouterr().out
