"""The user's `config.toml`: what is right in it holds, what is wrong is said with the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.config import Settings, read_settings


def settings(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return read_settings(path)


def test_no_file_is_no_settings(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "config.toml") == Settings()


def test_theme_and_keys_are_read(tmp_path: Path) -> None:
    found = settings(tmp_path, '[dash]\ntheme = "light"\n[keys]\nplay = "ctrl+g"\nfind = "?,x"\nhelp = "f2"\n')
    assert (found.theme, found.keys["play"]) == ("light", "ctrl+g")
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[dash]\ntheme = "lihgt"', 'did you mean "light"?'),
        ('[keys]\nplai = "x"', 'did you mean "play"?'),
        ("[keys]\nplay = 3", "expected keys such as"),
        ('[keys]\nplay = "q"', "is the key of quit already"),
        ("dash = 1", "expected a table"),
        ("[keys", "config.toml: "),
    ],
)
def test_what_is_wrong_is_said_and_left_out(tmp_path: Path, text: str, said: str) -> None:
    found = settings(tmp_path, text)
    assert (found.theme, found.keys) == (None, {})
    assert len(found.remarks) == 1
    assert said in found.remarks[0]
