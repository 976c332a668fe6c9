"""Texts that are compared byte by byte with files under `golden/`. KVTIER_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

from tests.conftest import CHECKOUT, UPDATE_GOLDEN

FOLDER = CHECKOUT / "tests" / "golden"


def assert_golden(name: str, text: str) -> None:
    """`text` is what stands in the golden file `name`."""
    path = FOLDER / name
    if UPDATE_GOLDEN:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert text.encode() == path.read_bytes(), f"{name}: KVTIER_UPDATE_GOLDEN=1 accepts the new text"
